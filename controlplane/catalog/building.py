"""Builds the next snapshot of a datasource: the manifests of intervals that have changed, and a list of all.

One statement reads the changed intervals with their segments, so a snapshot has whole publishes and replacements. A
process of the data plane writes the files meanwhile, and the rows that name them come last: if the builder is killed,
its files are orphans. One process builds at a time for a datasource.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, islice
from typing import IO, Any

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
from controlplane.segments.models import Manifest, Segment, Snapshot
from ingestion.specs.base import Message
from ingestion.specs.iceberg_partitions import Partition
from ingestion.specs.messages.iceberg import (
    ListedFile,
    ListedManifest,
    ManifestContent,
    ManifestList,
    ManifestPage,
    SnapshotOrder,
    WrittenFile,
    WrittenFiles,
)

MODULE = "ingestion.segments.iceberg"
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
_COUNT = f"SELECT coalesce(sum(i.segments + 1), 0) {_CHANGED} WHERE {_HAS_CHANGED}"
_SEGMENTS = f"""
    SELECT i.id, i.start, i."end", i.revision, s.path, s.rows, s.size_bytes,
           (extract(epoch FROM s.min_time) * 1000000)::bigint, (extract(epoch FROM s.max_time) * 1000000)::bigint,
           greatest(s.created_at, s.used_again_at)
    {_CHANGED}
    LEFT JOIN segments_segment s ON s.datasource_id = i.datasource_id AND s.interval_start = i.start
      AND s.interval_end = i."end" AND s.used
    WHERE {_HAS_CHANGED} ORDER BY i.start, i.id
"""

_END_MANIFESTS = """
    UPDATE segments_manifest SET last_snapshot = %s
    WHERE datasource_id = %s AND last_snapshot IS NULL AND interval_id = ANY(%s)
"""


@dataclass(frozen=True)
class _Changed:
    """An interval, and its segments in use; none of one that is to leave the table."""

    id: int
    start: datetime
    end: datetime
    revision: int
    files: list[ListedFile]
    changed_at: datetime | None  # when the last of these came into use


@dataclass
class _Built:
    """What has been written so far."""

    changed: list[int] = field(default_factory=list)
    manifests: list[Manifest] = field(default_factory=list)
    spans: dict[int, tuple[datetime, datetime]] = field(default_factory=dict)  # of intervals, by id
    folder: tuple[datetime, datetime] | None = None  # the interval whose folder takes the list
    changed_at: list[datetime] = field(default_factory=list)  # when segments came into use, of each interval the last


def count_changed_segments(datasource: Datasource) -> int:
    """How many segments the next snapshot has to read; 0 when nothing has changed since the last one."""
    with cursor() as c:
        [(count,)] = c.execute(_COUNT, _facts(datasource)).fetchall()
    return int(count)


def _facts(datasource: Datasource) -> dict[str, Any]:
    """What both statements ask for. Files that have another address of deep storage within are not true any more."""
    return {"datasource": datasource.pk, "root": root_address()}


def build(datasource: Datasource) -> bool:
    """Build the next snapshot; False when another process does. Raises ``Unavailable``."""
    with try_advisory_lock(_LOCK + datasource.pk) as won:
        if won and count_changed_segments(datasource):
            _build(datasource)
    return won


def _build(datasource: Datasource) -> None:
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
    with conversation(MODULE) as (stdin, stdout):
        writer = _Writer(stdin, stdout)
        writer.write(order)
        built = _write_manifests(datasource, order, writer)
        created_until = clock()
        listed = _listed(datasource, built)
        if built.folder is None:
            return
        start, end = built.folder
        [written] = writer.write(ManifestList(start=start, end=end, manifests=[entry for entry, _ in listed]))
    snapshot = Snapshot(
        datasource=datasource,
        number=number,
        changed_at=max([earlier, *built.changed_at, *_last_removal(datasource)]),
        created_until=created_until,
        unused_after=unused_after,
        leased_until=timezone.now() + settings.SNAPSHOT_LEASE,
        last_column=last_column,
        root=order.root,
        path=written.path,
        segments=sum(entry.segments for entry, _ in listed),
        rows=sum(entry.rows for entry, _ in listed),
        size_bytes=sum(size for _, size in listed),
    )
    _commit(snapshot, built)


def _last_removal(datasource: Datasource) -> list[datetime]:
    """When a segment of it became unused last; none if none did."""
    unused = Segment.objects.filter(datasource=datasource, used=False, unused_at__isnull=False).order_by("-unused_at")
    return [at for at in unused.values_list("unused_at", flat=True)[:1] if at is not None]


@transaction.atomic
def _commit(snapshot: Snapshot, built: _Built) -> None:
    with cursor() as c:
        c.execute(_END_MANIFESTS, [snapshot.number - 1, snapshot.datasource_id, built.changed])
    Manifest.objects.bulk_create(built.manifests, batch_size=5_000)
    snapshot.save(force_insert=True)


def _write_manifests(datasource: Datasource, order: SnapshotOrder, writer: _Writer) -> _Built:
    built = _Built()
    with transaction.atomic(), connection.chunked_cursor() as rows:
        rows.execute(_SEGMENTS, _facts(datasource))
        intervals = _intervals(rows)
        while page := list(islice(intervals, _PAGE)):
            built.changed += [interval.id for interval in page]
            built.folder = page[-1].start, page[-1].end
            present = [interval for interval in page if interval.files]
            built.changed_at += [interval.changed_at for interval in present if interval.changed_at]
            contents = [ManifestContent(start=i.start, end=i.end, files=i.files) for i in present]
            files = writer.write(ManifestPage(manifests=contents)) if contents else []
            for interval, file in zip(present, files, strict=True):
                built.spans[interval.id] = interval.start, interval.end
                built.manifests.append(_manifest(datasource, order, interval, file))
    return built


def _intervals(rows: Any) -> Iterator[_Changed]:
    for (number, start, end, revision), found in groupby(rows, key=lambda row: row[:4]):
        segments = [row[4:] for row in found if row[4] is not None]
        changed_at = max((segment[5] for segment in segments), default=None)
        yield _Changed(number, start, end, revision, [segment[:5] for segment in segments], changed_at)


def _manifest(datasource: Datasource, order: SnapshotOrder, interval: _Changed, file: WrittenFile) -> Manifest:
    return Manifest(
        datasource=datasource,
        interval_id=interval.id,
        revision=interval.revision,
        first_snapshot=order.number,
        root=order.root,
        path=file.path,
        length=file.length,
        segments=len(interval.files),
        rows=sum(rows for _, rows, *_ in interval.files),
        size_bytes=sum(size for _, _, size, *_ in interval.files),
    )


def _listed(datasource: Datasource, built: _Built) -> list[tuple[ListedManifest, int]]:
    """All manifests of the snapshot, in the order of time, each with the bytes of its segments."""
    changed = set(built.changed)
    earlier = Manifest.objects.filter(datasource=datasource, last_snapshot=None).select_related("interval")
    found = [(built.spans[m.interval_id], m) for m in built.manifests]
    found += [((m.interval.start, m.interval.end), m) for m in earlier if m.interval_id not in changed]
    return [(_entry(span, manifest), manifest.size_bytes) for span, manifest in sorted(found, key=lambda f: f[0])]


def _entry(span: tuple[datetime, datetime], manifest: Manifest) -> ListedManifest:
    partition = Partition.of(*span)
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
