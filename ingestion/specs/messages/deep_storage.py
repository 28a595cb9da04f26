"""The messages between who knows the segments and processes that work on their files: JSON, one in a line.

Deleting: the control plane sends a ``DeleteOrder``, then one ``DeletePage`` after the other. Each is answered with a
``DeletedPage``.

Sweeping: the control plane sends a ``SweepOrder``; then, as often as the process sends a ``SweepPage``, a
``SweepVerdict``, until a ``SweepEnd`` comes. The process sends a page only when the last one's verdict is carried out.

Verifying: the control plane sends a ``VerifyOrder``, then one ``RegisteredFile`` after the other. Each is answered with
a ``Verified``.

Probing: the control plane sends a ``ProbeOrder``, which is answered with ``Probed``.

Their ``deep_storage`` is a path or a URL. ``local_folder`` reads it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import Field

from ingestion.specs.base import Message


def local_folder(location: str) -> Path | None:
    """The local folder of a path or of a ``file://`` URL with any host. None for other URLs."""
    if "://" not in location:
        return Path(location)
    parts = urlsplit(location)
    return Path(unquote(parts.path)) if parts.scheme.lower() == "file" else None


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


class SweepOrder(Message):
    """What to look through. Only files older than the grace, by the control plane's ``now``, are in the pages."""

    deep_storage: str
    now: datetime
    grace: timedelta = Field(ge=timedelta(0))
    seconds: float | None = Field(default=None, gt=0)  # end after this long


class SweptFile(Message):
    path: str
    size_bytes: int


class SweepPage(Message):
    """Old files that may be nobody's."""

    files: list[SweptFile]


class SweepVerdict(Message):
    """Which files of the page to delete, by their place in it."""

    delete: list[int]


class SweepEnd(Message):
    """What a sweep over deep storage came to."""

    looked_at: int = 0
    young: int = 0  # files that were left alone for their age
    foreign: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    failed: int = 0
    complete: bool = True
    error: str = ""  # what went wrong first; empty if nothing did


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


class ProbeOrder(Message):
    """Which deep storage to try with a file of its own."""

    deep_storage: str


class Probed(Message):
    """What of write, read, list and delete has worked, and why the next one has not."""

    done: list[str] = []
    error: str = ""  # empty if all has
    free_bytes: int | None = None  # of a folder
