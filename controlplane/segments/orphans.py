"""Files in deep storage that no segment names: left by publishes that never committed, and of the catalog's the old.

A process of the data plane lists them and deletes what it is told (the control plane has no access to deep storage of
its own); here it is decided. A file goes only if

* it is older than a grace period, by its storage's clock against the database's, and
* no row of a segment, used or not, of a held file, a manifest or a snapshot names it, asked after it was listed.

A publish that commits meanwhile is safe: an indexer gives up what it has not published when the lock of its records
ends, and after ``SAFE_GRACE`` at the latest, and abandons it for good; one that slept for so long has been declared
lost meanwhile. A file older than the grace period, which is longer, is therefore registered already, and the question
that comes after the listing sees it; or it never will be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from controlplane.common.errors import Unavailable
from controlplane.common.processes import conversation, write_line
from controlplane.segments.models import HeldFile, Manifest, Segment, Snapshot
from ingestion.specs.messages.deep_storage import SweepEnd, SweepOrder, SweepPage, SweepVerdict

MODULE = "ingestion.segments.sweep"
# A file younger than this may still be published: see ``LONGEST_S`` in ingestion/task/publishing.py.
SAFE_GRACE = timedelta(hours=6)


@dataclass
class Cleanup:
    """What a clean-up found and did. ``orphans`` counts old files that no segment names, deleted or not."""

    dry_run: bool
    orphans: int = 0
    orphan_bytes: int = 0
    end: SweepEnd = field(default_factory=SweepEnd)

    def summary(self) -> str:
        """For a person, on one line."""
        end = self.end
        named = end.looked_at - end.young - end.foreign - self.orphans
        if self.dry_run:
            did = f"{self.orphans:,} files ({self.orphan_bytes:,} bytes) would be deleted"
        else:
            did = f"{end.deleted:,} files ({end.deleted_bytes:,} bytes) deleted"
        failed = f", {end.failed:,} could not be deleted" if end.failed else ""
        early = "" if end.complete else ". Not everything was checked"
        problem = f". {end.error}" if end.error else ""
        return (
            f"{did}{failed}, of {end.looked_at:,} checked: {named:,} belong to segments, {end.young:,} are too young, "
            f"{end.foreign:,} are not Headgate's{early}{problem}"
        )


def clean_up(*, grace: timedelta, dry_run: bool = False, seconds: float | None = None) -> Cleanup:
    """Delete orphans older than ``grace``; with ``dry_run`` only count them. Ends early after ``seconds``.

    Raises ``Unavailable`` when the process that lists dies. What else went wrong is in ``end.error``.
    """
    order = SweepOrder(deep_storage=settings.DEEP_STORAGE, now=_database_time(), grace=grace, seconds=seconds)
    cleanup = Cleanup(dry_run)
    with conversation(MODULE) as (stdin, stdout):
        write_line(stdin, order.model_dump_json())
        while line := stdout.readline():
            if not line.startswith('{"files"'):
                cleanup.end = SweepEnd.model_validate_json(line)
                return cleanup
            page = SweepPage.model_validate_json(line)
            orphans = _orphans(page)
            cleanup.orphans += len(orphans)
            cleanup.orphan_bytes += sum(page.files[position].size_bytes for position in orphans)
            write_line(stdin, SweepVerdict(delete=[] if dry_run else orphans).model_dump_json())
    raise Unavailable("The process that looks through deep storage ended unexpectedly. See its log.")


def _orphans(page: SweepPage) -> list[int]:
    paths = [file.path for file in page.files]
    named = {path for rows in (HeldFile, Segment, Manifest, Snapshot) for path in _named(rows.objects.all(), paths)}
    return [position for position, path in enumerate(paths) if path not in named]


def _named(rows: QuerySet[Any], paths: list[str]) -> list[str]:
    return list(rows.filter(path__in=paths).values_list("path", flat=True))


def _database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now
