"""Builds the next snapshot of a datasource: the manifests of intervals that have changed, and a list of all.

One statement reads the changed intervals with their segments, so a snapshot has whole publishes and replacements. A
process of the data plane writes the files meanwhile, and the rows that name them come last: if the builder is killed,
its files are orphans. A build whose time is over, or that deep storage refuses a file, keeps the manifests that it has
written: the next build of the same snapshot writes only the others. One process builds at a time for a datasource.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import IO, Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from controlplane.catalog.columns import highest_id, table_schema
from controlplane.common.database import clock, cursor, try_advisory_lock
from controlplane.common.errors import Unavailable
from controlplane.common.processes import conversation, write_line
from controlplane.datasources.models import Datasource
from controlplane.feed.manifest import publish_watermark, root_address
from controlplane.segments.columns import columns_of
from controlplane.segments.models import Interval, Manifest, Segment, Snapshot
from ingestion.specs.base import Message
from ingestion.specs.iceberg_partitions import Partition
from ingestion.specs.messages.iceberg import (
    ListedManifest,
    ManifestContent,
    ManifestList,
    ManifestPage,
    SnapshotOrder,
    WrittenFile,
    WrittenFiles,
)

MODULE = "ingestion.segments.iceberg"
LONGEST_S = 200.0  # for manifests: their list comes after that, and both before the time limit of Celery's tasks
_LOCK = 0x49434542 << 32
_PAGE = 200  # manifests
_CHANGED = """
    FROM segments_interval i
    LEFT JOIN segments_manifest m ON m.interval_id = i.id AND m.last_snapshot IS NULL
"""
_HAS_CHANGED = """
    i.datasource_id = %(datasource)s AND (i.segments > 0 OR m.id IS NOT NULL)
    AND (i.revision, %(root)s) IS DISTINCT FROM (m.revision, m.root)
"""
# With what a build that was cut off has written and ended: no snapshot has that yet.
_COUNT = f"""
    SELECT coalesce(sum(i.segments + 1), 0) + (
        SELECT count(*) FROM segments_manifest WHERE datasource_id = %(datasource)s AND last_snapshot >= %(newest)s
    ) {_CHANGED} WHERE {_HAS_CHANGED} OR i.datasource_id = %(datasource)s AND m.first_snapshot > %(newest)s
"""
# The files of an interval are one text: PostgreSQL writes thousands of them in less time than Python reads them.
_FILES = """
    SELECT count(*) AS segments, coalesce(sum(s.rows), 0)::bigint AS rows,
           coalesce(sum(s.size_bytes), 0)::bigint AS size_bytes,
           max(greatest(s.created_at, s.used_again_at)) AS changed_at,
           json_agg(json_build_array(
               s.path, s.rows, s.size_bytes,
               (extract(epoch FROM s.min_time) * 1000000)::bigint, (extract(epoch FROM s.max_time) * 1000000)::bigint
           ))::text AS files
    FROM segments_segment s
    WHERE s.datasource_id = i.datasource_id AND s.interval_start = i.start AND s.interval_end = i."end" AND s.used
"""
_INTERVALS = f"""
    SELECT i.id, i.start, i."end", i.revision,
           f.segments, f.rows, f.size_bytes, coalesce(f.changed_at, i.start), coalesce(f.files, '[]')
    {_CHANGED} CROSS JOIN LATERAL ({_FILES}) f
    WHERE {_HAS_CHANGED} ORDER BY i.start, i.id
"""
_END_MANIFESTS = """
    UPDATE segments_manifest SET last_snapshot = %s
    WHERE datasource_id = %s AND last_snapshot IS NULL AND interval_id = ANY(%s)
"""
_Span = tuple[datetime, datetime]


class _Changed(NamedTuple):
    """An interval, and its segments in use; none of one that is to leave the table."""

    id: int
    start: datetime
    end: datetime
    revision: int
    segments: int
    rows: int
    size_bytes: int
    changed_at: datetime  # when the last of these came into use
    files: str


class _True(NamedTuple):
    """A manifest that the snapshot has, and its interval."""

    start: datetime
    end: datetime
    path: str
    length: int
    first_snapshot: int
    segments: int
    rows: int
    size_bytes: int
    changed_at: datetime


class Outcome(Enum):
    """Of a build."""

    BUILT = 1  # or nothing has changed
    UNFINISHED = 2  # its time was over: another build goes on from there
    ELSEWHERE = 3  # another process builds


@dataclass
class _Built:
    """What has been written so far."""

    changed: list[int] = field(default_factory=list)
    manifests: list[Manifest] = field(default_factory=list)
    spans: dict[int, _Span] = field(default_factory=dict)  # of intervals, by id


def count_changed_segments(datasource: Datasource) -> int:
    """How many segments the next snapshot has to read, about; 0 when nothing has changed since the last one."""
    newest = Snapshot.objects.filter(datasource=datasource).order_by("-number").values_list("number", flat=True).first()
    with cursor() as c:
        [(count,)] = c.execute(_COUNT, {**_facts(datasource), "newest": newest or 0}).fetchall()
    return int(count)


def _facts(datasource: Datasource) -> dict[str, Any]:
    """What both statements ask for. Files that have another address of deep storage within are not true any more."""
    return {"datasource": datasource.pk, "root": root_address()}


def build(datasource: Datasource, seconds: float) -> Outcome:
    """Build the next snapshot, in so many seconds at most for its manifests. Raises ``Unavailable``."""
    with try_advisory_lock(_LOCK + datasource.pk) as won:
        if not won:
            return Outcome.ELSEWHERE
        is_built = not count_changed_segments(datasource) or _build(datasource, time.monotonic() + seconds)
    return Outcome.BUILT if is_built else Outcome.UNFINISHED


def _build(datasource: Datasource, until: float) -> bool:
    """Whether it was finished before ``until``, and is there."""
    last = Snapshot.objects.filter(datasource=datasource).order_by("-number").first()
    number, earlier = (last.number + 1, last.changed_at) if last else (1, datasource.created_at)
    unused_after = publish_watermark()
    columns = list(columns_of(datasource))
    last_column = highest_id(columns)
    order = SnapshotOrder(
        deep_storage=settings.DEEP_STORAGE,
        root=root_address(),
        datasource=datasource.name,
        number=number,
        table_schema=json.dumps(table_schema(columns, last_column)),
    )
    built = _Built()
    try:
        with conversation(MODULE) as (stdin, stdout):
            writer = _Writer(stdin, stdout)
            writer.write(order)
            if not _write_manifests(datasource, order, writer, built, until):
                _keep(datasource, number, built)
                return False
            created_until = clock()
            manifests = _true_manifests(datasource, built)
            start, end = _folder(datasource)
            [written] = writer.write(ManifestList(start=start, end=end, manifests=[_entry(m) for m in manifests]))
    except Unavailable:
        _keep(datasource, number, built)
        raise
    snapshot = Snapshot(
        datasource=datasource,
        number=number,
        changed_at=max([earlier, *(m.changed_at for m in manifests), *_last_removal(datasource)]),
        created_until=created_until,
        unused_after=unused_after,
        leased_until=timezone.now() + settings.SNAPSHOT_LEASE,
        last_column=last_column,
        root=order.root,
        path=written.path,
        segments=sum(m.segments for m in manifests),
        rows=sum(m.rows for m in manifests),
        size_bytes=sum(m.size_bytes for m in manifests),
    )
    with transaction.atomic():
        _keep(datasource, number, built)
        snapshot.save(force_insert=True)
    return True


def _folder(datasource: Datasource) -> _Span:
    """The interval whose folder takes the list: the latest."""
    intervals = Interval.objects.filter(datasource=datasource).order_by("-start", "-end")
    return intervals.values_list("start", "end")[0]


def _last_removal(datasource: Datasource) -> list[datetime]:
    """When a segment of it became unused last; none if none did."""
    unused = Segment.objects.filter(datasource=datasource, used=False, unused_at__isnull=False).order_by("-unused_at")
    return [at for at in unused.values_list("unused_at", flat=True)[:1] if at is not None]


@transaction.atomic
def _keep(datasource: Datasource, number: int, built: _Built) -> None:
    """From snapshot ``number`` on these manifests are true, and no earlier ones of their intervals."""
    with cursor() as c:
        c.execute(_END_MANIFESTS, [number - 1, datasource.pk, built.changed])
    Manifest.objects.bulk_create(built.manifests, batch_size=5_000)


def _write_manifests(
    datasource: Datasource, order: SnapshotOrder, writer: _Writer, built: _Built, until: float
) -> bool:
    """Those that have changed, page by page; False when some are left ``until`` then."""
    with transaction.atomic(), connection.chunked_cursor() as rows:
        rows.execute(_INTERVALS, _facts(datasource))
        intervals = (_Changed(*row) for row in rows)
        while page := list(islice(intervals, _PAGE)):
            if built.changed and time.monotonic() > until:
                return False
            present = [interval for interval in page if interval.segments]
            contents = [ManifestContent(start=i.start, end=i.end, files=i.files) for i in present]
            files = writer.write(ManifestPage(manifests=contents)) if contents else []
            built.changed += [interval.id for interval in page]
            for interval, file in zip(present, files, strict=True):
                built.spans[interval.id] = interval.start, interval.end
                built.manifests.append(_manifest(datasource, order, interval, file))
    return True


def _manifest(datasource: Datasource, order: SnapshotOrder, interval: _Changed, file: WrittenFile) -> Manifest:
    return Manifest(
        datasource=datasource,
        interval_id=interval.id,
        revision=interval.revision,
        first_snapshot=order.number,
        changed_at=interval.changed_at,
        root=order.root,
        path=file.path,
        length=file.length,
        segments=interval.segments,
        rows=interval.rows,
        size_bytes=interval.size_bytes,
    )


def _true_manifests(datasource: Datasource, built: _Built) -> list[_True]:
    """All manifests of the snapshot, in the order of time."""
    found = [
        _True(*built.spans[m.interval_id], *(getattr(m, name) for name in _True._fields[2:])) for m in built.manifests
    ]
    # Plain rows: a thousand objects of the models take longer than all else that the request does itself.
    earlier = Manifest.objects.filter(datasource=datasource, last_snapshot=None).exclude(interval__in=built.changed)
    found += map(_True._make, earlier.values_list("interval__start", "interval__end", *_True._fields[2:]))
    return sorted(found)


def _entry(manifest: _True) -> ListedManifest:
    partition = Partition.of(manifest.start, manifest.end)
    return ListedManifest(
        path=manifest.path,
        length=manifest.length,
        spec=partition.spec,
        value=partition.value,
        number=manifest.first_snapshot,
        segments=manifest.segments,
        rows=manifest.rows,
    )


class _Writer:
    """The process that writes the files. Its requests raise ``Unavailable``."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        self._stdin = stdin
        self._stdout = stdout

    def write(self, message: Message) -> list[WrittenFile]:
        """The files that the message asks for, in its order."""
        write_line(self._stdin, message.model_dump_json())
        line = self._stdout.readline()
        if not line:
            raise Unavailable("The process that writes the catalog's files ended unexpectedly. See its log.")
        answer = WrittenFiles.model_validate_json(line)
        if answer.error:
            raise Unavailable(f"Deep storage did not store the catalog's files: {answer.error}")
        return answer.files
