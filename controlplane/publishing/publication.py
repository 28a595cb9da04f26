"""A publication: what one publish writes, by whichever writer. The one door to segments.

=====================  ==========================  =============  ================================  ===================
writer                 segments go to              offsets        replaces                          and, with it
=====================  ==========================  =============  ================================  ===================
stream (``publish``)   the interval's version      settles; may   nothing                           quarantines
                                                   move stored
replay of records of   the interval's version      settled before nothing; its records leave the    books move
a topic (``publish``)                                             quarantine
replay of records of   the interval's version      none           the same                          books move
files
(``file_replay_publish``)
part of a rewind       the interval's version      settled before the segments that its records were the part is done
(``rewinds``)                                                     in
batch, appending       the interval's version      none           nothing                           the task ends
batch, overwriting     a new version               none           all segments in its intervals     the task ends
batch, re-indexing     a new version               none           the segments that it read         the task ends
merge (``replace``)    the interval's version      none           the segments that it read         the job ends
=====================  ==========================  =============  ================================  ===================

A merge has no fence, no publish id and no counters, as no record ends by it: it inserts ``NewSegments``, and its
``Replacement`` answers a retry. All others register a ``Publication``.

The intervals' rows come first, then everything else in one round trip. Not through the ORM: these statements run for
every batch of every indexer, and it would cost more than the database does.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from psycopg.types.json import Jsonb

from controlplane.common.database import cursor, pipeline
from controlplane.common.errors import InvalidInput
from controlplane.publishing.fence import LockedFence
from controlplane.publishing.postgres_ranges import span
from controlplane.segments.models import columns_json, fingerprint
from ingestion.specs.counters import PUBLISHED, Counters
from ingestion.specs.messages.protocol import Outcomes, SegmentFile

Interval = tuple[datetime, datetime]
Parameters = dict[str, Any]

_SUMMED_COLUMNS = [*PUBLISHED, "segments", "size_bytes"]
_TOTALS = f"""
    UPDATE publishing_indexerfence SET {", ".join(f"{n} = {n} + %({n})s" for n in _SUMMED_COLUMNS)},
        publishes = publishes + 1,
        published_today = %(published)s + CASE WHEN published_on = %(today)s THEN published_today ELSE 0 END,
        published_on = %(today)s, last_publish_at = %(now)s,
        first_publish_at = coalesce(first_publish_at, %(now)s) WHERE id = %(fence)s
"""
_INTERVALS = """
    INSERT INTO segments_interval
        (datasource_id, start, "end", version, next_partition, segments, rows, size_bytes, min_time, max_time, revision)
    SELECT %(datasource)s, w.start, w.stop, %(version)s, w.n, w.n, w.rows, w.size_bytes, w.low, w.high, 1
    FROM unnest(
        %(starts)s::timestamptz[], %(ends)s::timestamptz[], %(files)s::int[], %(rows)s::int8[], %(sizes)s::int8[],
        %(min_times)s::timestamptz[], %(max_times)s::timestamptz[]
    ) AS w(start, stop, n, rows, size_bytes, low, high) ORDER BY 2, 3
    ON CONFLICT (datasource_id, start, "end") DO UPDATE SET
        next_partition = segments_interval.next_partition + excluded.next_partition,
        segments = segments_interval.segments + excluded.segments,
        rows = segments_interval.rows + excluded.rows,
        size_bytes = segments_interval.size_bytes + excluded.size_bytes,
        min_time = least(segments_interval.min_time, excluded.min_time),
        max_time = greatest(segments_interval.max_time, excluded.max_time),
        revision = segments_interval.revision + 1
    RETURNING start, "end", version, next_partition
"""
KNOWN_SCHEMAS = """
    SELECT s.fingerprint FROM publishing_indexerfence f
    JOIN segments_segmentschema s ON s.datasource_id = f.datasource_id
    WHERE f.task_id = %(task)s AND f.number = %(number)s AND s.fingerprint = ANY(%(fingerprints)s::text[])
"""
# In order, so that two publishes do not wait for each other.
_SCHEMAS = """
    INSERT INTO segments_segmentschema (datasource_id, fingerprint, columns, extents)
    SELECT f.datasource_id, w.fingerprint, w.columns, w.extents FROM publishing_indexerfence f,
        unnest(%(fingerprints)s::text[], %(columns)s::jsonb[], %(extents)s::bool[]) AS w(fingerprint, columns, extents)
    WHERE f.task_id = %(task)s AND f.number = %(number)s ORDER BY 2 ON CONFLICT DO NOTHING
"""
_SEGMENTS = """
    INSERT INTO segments_segment
        (id, datasource_id, interval_start, interval_end, version, partition_num, rows, size_bytes, sha256, path,
         min_time, max_time, schema_id, task_id, used, created_at)
    SELECT w.id, %(datasource)s, w.start, w.stop, w.version, w.number, w.rows, w.size_bytes, w.sha256, w.path,
           w.low, w.high,
           (SELECT id FROM segments_segmentschema WHERE datasource_id = %(datasource)s AND fingerprint = w.schema),
           %(task)s, true, %(now)s
    FROM unnest(
        %(ids)s::uuid[], %(starts)s::timestamptz[], %(ends)s::timestamptz[], %(versions)s::text[], %(numbers)s::int[],
        %(rows)s::int8[], %(sizes)s::int8[], %(sha256s)s::text[], %(paths)s::text[], %(min_times)s::timestamptz[],
        %(max_times)s::timestamptz[], %(schemas)s::text[]
    ) AS w(id, start, stop, version, number, rows, size_bytes, sha256, path, low, high, schema)
"""
_RECEIPTS = """
    INSERT INTO publishing_receipt
        (publish_id, task_id, indexer, key_id, hull, outcomes, segment_ids, replay, created_at)
    SELECT %(publish)s, %(task)s, %(number)s, w.key, w.hull, w.outcomes, %(segments)s, %(replay)s, %(now)s
    FROM unnest(%(keys)s::int8[], %(hulls)s::int8range[], %(outcomes)s::jsonb[]) AS w(key, hull, outcomes)
"""
_PUBLISH = """
    INSERT INTO publishing_publish (id, fence_id, epoch, abandoned, segment_ids, counters, created_at)
    VALUES (%(publish)s, %(fence)s, %(epoch)s, false, %(segments)s, %(counters)s, %(now)s)
"""
_SETTLE = "INSERT INTO publishing_settledrange (span, settled_at) SELECT unnest(%s::int8range[]), now()"


def store_schemas(task_id: str, number: int, files: Iterable[SegmentFile]) -> None:
    """Write the schemas of the files that are not there yet; the indexer's fence says of which datasource.

    To be committed before the publish begins: whoever has the same new schema would wait for the end of that.
    """
    schemas = fingerprints(files)
    if not schemas:
        return
    indexer: Parameters = {"task": task_id, "number": number}
    with cursor() as c:
        existing = {name for (name,) in c.execute(KNOWN_SCHEMAS, {**indexer, "fingerprints": list(schemas)}).fetchall()}
    new = {name: file for name, file in schemas.items() if name not in existing}
    if new:
        columns = [json.dumps(columns_json(f.columns)) for f in new.values()]
        extents = [f.extents for f in new.values()]
        with transaction.atomic(), cursor() as c:
            c.execute(_SCHEMAS, {**indexer, "fingerprints": list(new), "columns": columns, "extents": extents})


def fingerprints(files: Iterable[SegmentFile]) -> dict[str, SegmentFile]:
    """The schemas that files have, each with one of its files."""
    return {_fingerprint(f): f for f in files}


def _fingerprint(file: SegmentFile) -> str:
    return fingerprint(columns_json(file.columns), file.extents)


@dataclass(frozen=True)
class NewSegments:
    """Files on their way to be segments of a datasource, in the caller's transaction. Their schemas are there."""

    datasource: int
    folder: str  # the datasource's in deep storage
    version: str  # what new intervals get
    task_id: str
    at: datetime
    files: Sequence[SegmentFile]

    def insert(self) -> list[uuid.UUID]:
        """Their ids, in their order; they have numbers, and their intervals' sums and revisions have grown."""
        numbered = self.numbered()
        with cursor() as c:
            c.execute(_SEGMENTS, numbered)
        ids: list[uuid.UUID] = numbered["ids"]
        return ids

    def numbered(self) -> Parameters:
        """What ``_SEGMENTS`` takes. Numbers of a refused publish are not used again. Raises ``InvalidInput``."""
        check_paths(self.folder, self.files)
        numbers = self._partition_numbers()
        places = [numbers[(f.interval_start, f.interval_end)] for f in self.files]
        return {
            "datasource": self.datasource,
            "task": self.task_id,
            "now": self.at,
            "ids": [uuid.uuid4() for _ in self.files],
            "starts": [f.interval_start for f in self.files],
            "ends": [f.interval_end for f in self.files],
            "versions": [version for version, _ in places],
            "numbers": [next(number) for _, number in places],
            "rows": [f.rows for f in self.files],
            "sizes": [f.size_bytes for f in self.files],
            "sha256s": [f.sha256 for f in self.files],
            "paths": [f.path for f in self.files],
            "min_times": [f.min_time for f in self.files],
            "max_times": [f.max_time for f in self.files],
            "schemas": [_fingerprint(f) for f in self.files],
        }

    def _partition_numbers(self) -> dict[Interval, tuple[str, itertools.count[int]]]:
        """Take numbers for each interval, add to its sums and to its revision, its row locked from here on."""
        wanted: dict[Interval, list[SegmentFile]] = {}
        for file in self.files:
            wanted.setdefault((file.interval_start, file.interval_end), []).append(file)
        if not wanted:
            return {}
        groups = [wanted[interval] for interval in sorted(wanted)]
        with cursor() as c:
            taken = c.execute(
                _INTERVALS,
                {
                    "datasource": self.datasource,
                    "version": self.version,
                    "starts": [files[0].interval_start for files in groups],
                    "ends": [files[0].interval_end for files in groups],
                    "files": [len(files) for files in groups],
                    "rows": [sum(f.rows for f in files) for files in groups],
                    "sizes": [sum(f.size_bytes for f in files) for files in groups],
                    "min_times": [min(f.min_time for f in files) for files in groups],
                    "max_times": [max(f.max_time for f in files) for files in groups],
                },
            ).fetchall()
        return {
            (start, end): (version, itertools.count(after - len(wanted[(start, end)])))
            for start, end, version, after in taken
        }


@dataclass(frozen=True)
class Publication:
    """What one publish writes, in the caller's transaction, which holds the fence's lock; see the table above."""

    id: uuid.UUID
    fence: LockedFence
    segments: Sequence[SegmentFile]
    counters: Counters
    outcomes: Mapping[int, Outcomes] = field(default_factory=dict)  # of each partition's offsets
    keys: Mapping[int, int] = field(default_factory=dict)  # partition → progress key
    settles: Sequence[Any] = ()  # ranges of offsets that end by this

    def register(self) -> list[str]:
        """Write all of it and return the segments' ids, in their order.

        Raises ``InvalidInput``; PostgreSQL raises 23P01 when a range that it settles overlaps what is settled.
        """
        new = self._new_segments().numbered()
        ids = [str(i) for i in new["ids"]]
        shown = Jsonb(ids)
        with pipeline() as cursors:
            c = cursors()
            if ids:
                c.execute(_SEGMENTS, new)
            c.execute(_RECEIPTS, self._receipts(shown))
            c.execute(_PUBLISH, self._publish(shown))
            c.execute(_TOTALS, self._totals())
            if self.settles:
                c.execute(_SETTLE, (list(self.settles),))
        return ids

    def _new_segments(self) -> NewSegments:
        fence = self.fence
        return NewSegments(fence.datasource, fence.folder, fence.version, fence.task_id, fence.at, self.segments)

    def _receipts(self, segment_ids: Jsonb) -> Parameters:
        outcomes = sorted(self._receipt_outcomes().items())
        keys = [self.keys[partition] for partition, _ in outcomes]
        return {
            "publish": self.id,
            "task": self.fence.task_id,
            "number": self.fence.number,
            "segments": segment_ids,
            "replay": self.fence.replay or self.fence.rewinds,
            "now": self.fence.at,
            "keys": keys,
            "hulls": [span(key, *_hull(ended)) for key, (_, ended) in zip(keys, outcomes, strict=True)],
            "outcomes": [json.dumps(ended) for _, ended in outcomes],
        }

    def _receipt_outcomes(self) -> dict[int, dict[str, list[list[int]]]]:
        out: dict[int, dict[str, list[list[int]]]] = {}
        for index, segment in enumerate(self.segments):
            for partition, ranges in segment.offsets.items():
                stored = out.setdefault(partition, {}).setdefault("stored", [])
                stored.extend([start, end, index] for start, end in ranges)
        if self.counters.further_rows:
            out = {partition: _split_further(ended["stored"]) for partition, ended in out.items()}
        for partition, outcomes in self.outcomes.items():
            for name in Outcomes.model_fields:
                ranges = getattr(outcomes, name)
                if ranges:
                    out.setdefault(partition, {})[name] = [list(r) for r in ranges]
        return out

    def _publish(self, segment_ids: Jsonb) -> Parameters:
        return {
            "publish": self.id,
            "fence": self.fence.id,
            "epoch": self.fence.epoch,
            "segments": segment_ids,
            "counters": Jsonb({name: n for name, n in self.counters if n}),
            "now": self.fence.at,
        }

    def _totals(self) -> Parameters:
        return {
            **{name: getattr(self.counters, name) for name in PUBLISHED},
            "segments": len(self.segments),
            "size_bytes": sum(f.size_bytes for f in self.segments),
            "now": self.fence.at,
            "today": self.fence.at.astimezone(UTC).date(),
            "fence": self.fence.id,
        }


def check_paths(folder: str, files: Sequence[SegmentFile]) -> None:
    """A task names files in its own datasource's folder, whatever has become of its application.

    Raises ``InvalidInput``, as for an interval that ends before it begins.
    """
    if len({f.path for f in files}) != len(files):
        raise InvalidInput("Two segments have the same path.")
    for file in files:
        first, *below = file.path.split("/")
        if first != folder or not below or "\0" in file.path or {"", ".", ".."} & set(below):
            raise InvalidInput(f"{file.path!r} is not the path of a file in the folder {folder}.")
        if file.interval_start >= file.interval_end:
            raise InvalidInput(f"The interval of {file.path!r} ends before it begins.")


def check_times(files: Sequence[SegmentFile]) -> None:
    """Raise ``InvalidInput`` for one that says of its rows what can't be so of rows without offsets."""
    for file in files:
        if file.offsets or not file.interval_start <= file.min_time <= file.max_time < file.interval_end:
            raise InvalidInput(f"{file.path} has rows outside of its interval, or names offsets.")


def check_counters(expected: Mapping[str, tuple[int, int]], of: str) -> None:
    """Raise ``InvalidInput`` unless counters say what was brought. ``expected``: what they say, and should."""
    wrong = [
        f"{name} is {said} but the {of} make {should}" for name, (said, should) in expected.items() if said != should
    ]
    if wrong:
        raise InvalidInput(f"The counters do not match the {of}: {'; '.join(wrong)}.")


def _split_further(stored_ranges: list[list[int]]) -> dict[str, list[list[int]]]:
    """Of offsets with rows in several segments one is where they are ``stored``; the others are ``further``."""
    stored, further, covered_to = [], [], 0  # known: up to which offset all that come are
    for start, end, index in sorted(stored_ranges):
        if start < covered_to:
            further.append([start, min(end, covered_to), index])
        if end > covered_to:
            stored.append([max(start, covered_to), end, index])
        covered_to = max(covered_to, end)
    return {"stored": stored, "further": further} if further else {"stored": stored}


def _hull(ended: dict[str, list[list[int]]]) -> tuple[int, int]:
    every = [r for ranges in ended.values() for r in ranges]
    return min(r[0] for r in every), max(r[1] for r in every)
