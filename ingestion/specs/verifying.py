"""The messages between who knows the segments and the process that looks at their files: JSON, one in a line.

The control plane sends a ``VerifyOrder``, then one ``RegisteredFile`` after the other. Each is answered with a
``Verified``.
"""

from __future__ import annotations

from ingestion.specs.base import Message


class VerifyOrder(Message):
    """Where the files are."""

    deep_storage: str


class RegisteredFile(Message):
    """What was registered of a segment's file."""

    path: str  # relative to deep storage
    size_bytes: int
    sha256: str


class Verified(Message):
    """What came of looking at one file."""

    damage: str = ""  # what is wrong with the file
    # Why it can't be looked at. Both empty: it is well.
    refusal: str = ""
