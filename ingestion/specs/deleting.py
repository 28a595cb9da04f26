"""The messages between who knows the segments and the process that deletes their files: JSON, one in a line.

The control plane sends a ``DeleteOrder``, then one ``DeletePage`` after the other. Each is answered with a
``DeletedPage``.
"""

from __future__ import annotations

from ingestion.specs.base import Message


class DeleteOrder(Message):
    """Where the files are."""

    deep_storage: str


class DeletePage(Message):
    """Files to delete, by their paths below deep storage."""

    paths: list[str]


class DeletedPage(Message):
    """What came of a page, or of the order, which is answered like an empty page."""

    # The places in the page of files that may be there still. All others are gone, or were not there.
    failed: list[int] = []
    error: str = ""  # what went wrong first; empty if nothing did
