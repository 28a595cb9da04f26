"""The messages between who knows the segments and the process that sweeps deep storage: JSON, one in a line.

The control plane sends a ``SweepOrder``; then, as often as the process sends a ``SweepPage``, a ``SweepVerdict``, until
a ``SweepEnd`` comes. The process sends a page only when the last one's verdict is carried out.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import Field

from ingestion.specs.base import Message


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
