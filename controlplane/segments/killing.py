"""Deletes the files of segments that are not in use, and then their rows.

In this order, each step committed before the next:

1. The segment's row says that its file may be gone (``kill_began_at``): from here on nobody can use it again.
2. A process of the data plane deletes the file. One that is not there is deleted already.
3. The row goes, and leaves a ``KilledSegment``, by which a record's fate still leads on.

Who is killed between two steps has left a row that says so: the next run begins with those, at 2. A row is never gone
before its file; should a file come back, nobody names it, and the clean-up of orphans deletes it.

What was in use less than a snapshot's lease ago stays, whoever asks: somebody may be reading it. So does what belongs
to a snapshot of the catalog that a reader was given (``snapshot_leases``).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from controlplane.common.database import try_advisory_lock
from controlplane.common.errors import Unavailable
from controlplane.common.processes import conversation, write_line
from controlplane.datasources.models import Datasource
from controlplane.segments.marking import Amount, SegmentSelection
from controlplane.segments.models import KilledSegment, Segment
from controlplane.segments.snapshot_leases import hold_leases, leased
from ingestion.specs.base import Message
from ingestion.specs.messages.deep_storage import DeletedPage, DeleteOrder, DeletePage

MODULE = "ingestion.segments.deletion"
BATCH_SIZE = 500
_LOCK = 0x4B494C4C
Files = Sequence[tuple[uuid.UUID, str]]
Delete = Callable[[list[str]], DeletedPage]


@dataclass
class KillResult:
    """What a run has done."""

    segments: int = 0
    size_bytes: int = 0
    failed: int = 0
    error: str = ""  # what went wrong first

    def summary(self) -> str:
        """For a person, on one line."""
        failed = f", {self.failed:,} could not be deleted: {self.error}" if self.failed or self.error else ""
        return f"{self.segments:,} unused segments ({self.size_bytes:,} bytes) deleted{failed}"


def due_filter(now: datetime) -> Q:
    """Segments whose files go unless they are ``leased``: see ``deletion_time``."""
    leased = now - settings.SNAPSHOT_LEASE
    removed = Q(replaced_by=None, unused_at__lt=now - settings.KILL_BUFFER_PERIOD)
    replaced = Q(replaced_by__isnull=False, unused_at__lt=now - settings.KILL_REPLACED_AFTER)
    return Q(used=False, unused_at__lt=leased) & (Q(kill_began_at__isnull=False) | removed | replaced)


def deletion_time(segment: Segment) -> datetime | None:
    """When the file of an unused segment goes, at the earliest; None for one in use.

    The segment comes from ``snapshot_leases.with_leases``.
    """
    if segment.used or segment.unused_at is None:
        return None
    buffer = settings.KILL_BUFFER_PERIOD if segment.replaced_by is None else settings.KILL_REPLACED_AFTER
    lease = settings.SNAPSHOT_LEASE
    earliest: datetime = segment.unused_at + (lease if segment.kill_began_at is not None else max(buffer, lease))
    return earliest if segment.leased_until is None else max(earliest, segment.leased_until)


def amount_of(segments: QuerySet[Segment]) -> Amount:
    """How many these are, and what they hold."""
    sums = segments.order_by().aggregate(n=Count("pk"), rows=Sum("rows"), size=Sum("size_bytes"))
    return Amount(sums["n"], int(sums["rows"] or 0), int(sums["size"] or 0))


def deletable_segments(datasource: Datasource, chosen: SegmentSelection) -> QuerySet[Segment]:
    """Those of the chosen that are not in use and that nobody has given up yet."""
    return chosen.segments(datasource).filter(used=False, kill_began_at=None)


def run(*, seconds: float) -> KillResult:
    """Delete what is due, for so long at most. One run at a time: another does nothing.

    Raises ``Unavailable`` when the process that deletes dies.
    """
    killed = KillResult()
    until = time.monotonic() + seconds
    with try_advisory_lock(_LOCK) as won:
        if not won or not Segment.objects.filter(due_filter(timezone.now())).exists():
            return killed
        with conversation(MODULE) as (stdin, stdout):
            opened = _request(stdin, stdout, DeleteOrder(deep_storage=settings.DEEP_STORAGE))
            killed.error = opened.error
            while not opened.error and time.monotonic() < until:
                if not kill_batch(killed, lambda paths: _request(stdin, stdout, DeletePage(paths=paths))):
                    break
    return killed


def kill_given_up(
    ids: Sequence[uuid.UUID], go_on: Callable[[KillResult], bool], *, at_once: int = BATCH_SIZE
) -> KillResult:
    """Delete what no lease holds any more of these, which were given up; beside a ``run``, too.

    ``go_on``: asked before each batch of ``at_once``. Raises ``Unavailable``.
    """
    killed = KillResult()
    at_once = min(at_once, BATCH_SIZE)
    with conversation(MODULE) as (stdin, stdout):
        opened = _request(stdin, stdout, DeleteOrder(deep_storage=settings.DEEP_STORAGE))
        killed.error = opened.error
        for first in range(0, len(ids), at_once):
            if opened.error or not go_on(killed):
                break
            kill_batch(
                killed, lambda paths: _request(stdin, stdout, DeletePage(paths=paths)), ids[first : first + at_once]
            )
    return killed


def kill_batch(killed: KillResult, delete: Delete, among: Sequence[uuid.UUID] | None = None) -> bool:
    """Some hundred segments, through all steps; whether there may be more. ``delete`` deletes files."""
    files = begin_deletion(timezone.now(), among)
    if not files:
        return False
    answer = delete([path for _, path in files])
    failed = set(answer.failed)
    deleted = finish_deletion([pk for position, (pk, _) in enumerate(files) if position not in failed])
    killed.segments += deleted.segments
    killed.size_bytes += deleted.size_bytes
    killed.failed = max(killed.failed, len(failed))  # those come first the next time, too
    killed.error = killed.error or answer.error
    return deleted.segments > 0


@transaction.atomic
def begin_deletion(now: datetime, among: Sequence[uuid.UUID] | None = None) -> Files:
    """Step 1: the segments that are next, those first whose deletion had begun. ``among``: of these only."""
    hold_leases()
    waiting = Segment.objects.select_for_update(skip_locked=True).filter(due_filter(now)).exclude(leased())
    if among is not None:
        waiting = waiting.filter(pk__in=among)
    files = list(waiting.order_by("kill_began_at", "unused_at").values_list("pk", "path")[:BATCH_SIZE])
    Segment.objects.filter(pk__in=[pk for pk, _ in files], kill_began_at=None).update(kill_began_at=now)
    return files


@transaction.atomic
def finish_deletion(ids: Sequence[uuid.UUID]) -> Amount:
    """Step 3: their files are gone."""
    rows = Segment.objects.select_for_update().filter(pk__in=ids, used=False, kill_began_at__isnull=False)
    segments = list(rows.order_by("pk"))
    now = timezone.now()
    KilledSegment.objects.bulk_create(
        KilledSegment(
            pk=s.pk,
            datasource_id=s.datasource_id,
            rows=s.rows,
            size_bytes=s.size_bytes,
            min_time=s.min_time,
            max_time=s.max_time,
            created_at=s.created_at,
            unused_at=s.unused_at or now,
            replaced_by=s.replaced_by,
            removal_id=s.removal_id,
            killed_at=now,
        )
        for s in segments
    )
    Segment.objects.filter(pk__in=[s.pk for s in segments]).delete()
    return Amount(len(segments), sum(s.rows for s in segments), sum(s.size_bytes for s in segments))


def _request(stdin: IO[str], stdout: IO[str], message: Message) -> DeletedPage:
    write_line(stdin, message.model_dump_json())
    line = stdout.readline()
    if not line:
        raise Unavailable("The process that deletes files in deep storage ended unexpectedly. See its log.")
    return DeletedPage.model_validate_json(line)
