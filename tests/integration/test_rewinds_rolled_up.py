"""Rollup with real files: after a rewind the sums are those of a clean run, whether its rows were merged or not."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from controlplane.publishing import fence, rewinds
from controlplane.publishing.models import RewindPart
from controlplane.publishing.publish import publish
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.replace import ReplaceTarget, prepare_replace, replace
from controlplane.publishing.rewind_plan import Readers, parts_of
from controlplane.publishing.rewind_selection import Choice, select
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.segments.models import Segment
from controlplane.sources.models import Source
from ingestion.client.memory import MemoryColumns, MemoryControlPlane
from ingestion.compaction.merging import merge
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.specs import offsets
from ingestion.specs.messages.compaction import CompactionJob, InputSegment, ReplaceRequest
from ingestion.specs.messages.protocol import Column, PublishRequest
from ingestion.specs.schema.data_schema import DataSchema
from tests.integration.test_rewinds import begun
from tests.support.publishes import DAY, make_source

Run = Callable[..., MemoryControlPlane]
RECORDS = 80
METRICS = [
    {"type": "count", "name": "count"},
    {"type": "longSum", "name": "sum", "fieldName": "v"},
    {"type": "doubleMax", "name": "max", "fieldName": "v"},
    {"type": "doubleSum", "name": "mean", "fieldName": "half"},
]
ONLY_A_AND_B = {"type": "in", "dimension": "kind", "values": ["a", "b"]}
# What the versions differ in; their metrics are the same, or nothing would be merged.
VERSIONS: dict[int, dict[str, Any]] = {
    1: {},
    2: {
        "filter": ONLY_A_AND_B,
        "transforms": [{"type": "expression", "name": "v", "expression": '"v" * 10'}],
    },
}
Sums = dict[tuple[Any, str], tuple[float, ...]]


def record(n: int) -> bytes:
    """Of two days and four hours, with many equal ones."""
    time = DAY + timedelta(days=n % 2, hours=n // 2 % 2, minutes=n % 60)
    return json.dumps({"time": time.isoformat(), "kind": "abc"[n % 3], "v": n, "half": n / 2}).encode()


def schema(version: int) -> dict[str, Any]:
    return {
        "dimensionsSpec": {"dimensions": ["kind"]},
        "metricsSpec": METRICS,
        "granularitySpec": {"rollup": True, "queryGranularity": "HOUR", "segmentGranularity": "DAY"},
        "transformSpec": VERSIONS[version],
    }


@dataclass
class World:
    """A datasource ``d`` in the metadata store, its files, and what has read each record."""

    source: Source
    run_indexer: Run
    folder: Path
    version: dict[int, int] = field(default_factory=dict)
    columns: dict[str, list[Column]] = field(default_factory=dict)  # of each file
    ids: ColumnIds = field(default_factory=lambda: ColumnIds(MemoryColumns().ids))

    def read(self, numbers: list[int], version: int, task: str = "task-1", *, again: bool = False) -> None:
        """These records, as one publish."""
        epoch = fence.take_epoch(
            task_id=task, datasource=self.source.datasource, source=self.source, rewinds=again
        ).epoch
        what = self.decoded(numbers, version).model_copy(update={"epoch": epoch, "topic_id": self.source.topic_id})
        publish(task_id=task, number=0, request=what)
        self.columns |= {f.path: f.columns for f in what.segments}
        self.version |= dict.fromkeys(numbers, version)

    def decoded(self, numbers: list[int], version: int) -> PublishRequest:
        source = MemoryLeasedSource([(0, n, record(n)) for n in numbers], batch_records=RECORDS)
        [made] = self.run_indexer(source, **schema(version)).published
        return made

    def merge(self, day: int) -> None:
        """All that is in use of a day: its rollup is perfect then."""
        start = DAY + timedelta(days=day)
        used = list(Segment.objects.filter(used=True, interval_start=start).order_by("partition_num"))
        storage, scratch = LocalStorage(self.folder / "segments", fsync=False), self.folder / f"merge-{uuid.uuid4()}"
        given = DataSchema.model_validate(
            {"dataSource": "d", "timestampSpec": {"column": "time"}, **schema(1), "transformSpec": {}}
        )
        job = CompactionJob(
            job_id="compact_1",
            attempt=1,
            interval_start=start,
            interval_end=start + timedelta(days=1),
            version=used[0].version,
            data_schema=given,
            rollup=True,
            segments=[
                InputSegment(id=s.pk, path=s.path, rows=s.rows, size_bytes=s.size_bytes, sha256=s.sha256) for s in used
            ],
            schemas=[self.columns[s.path] for s in used],
            max_rows_per_segment=1_000_000,
            deep_storage=str(storage),
        )
        scratch.mkdir()
        merged = merge(job, storage, scratch, self.ids)
        what = ReplaceRequest(replace_id=uuid.uuid4(), attempt=1, read=merged.read, segments=merged.files)
        target = ReplaceTarget(self.source.datasource, start, start + timedelta(days=1), "compact_1", True)
        prepare_replace(target, what)
        replace(target, what)
        self.columns |= {f.path: f.columns for f in merged.files}

    def rewind(self, low: int, high: int, version: int) -> list[RewindPart]:
        groups, loose = select(self.source, Choice(offsets={0: [(low, high)]}))
        assert not [g.refusal for g in groups if g.refusal]
        parts = []
        for plan in parts_of(groups, loose, Readers(self.source.pk)):
            parts.append(begun(self.source, plan, f"rewind_{uuid.uuid4().hex[:8]}"))
            self.read(list(offsets.expanded(plan.ranges[0])), version, parts[-1].task_id, again=True)
        return parts

    def rows(self) -> list[dict[str, Any]]:
        """Of all segments in use."""
        storage = LocalStorage(self.folder / "segments", fsync=False)
        tables = [read_segment(storage, s.path) for s in Segment.objects.filter(used=True)]
        return [row for table in tables for row in table.to_pylist()]

    def check(self, *, perfect: bool = False) -> None:
        """The sums are those of a clean run: of each version one that reads only what it has read in the end."""
        clean: list[dict[str, Any]] = []
        for version in sorted({*self.version.values()}):
            files = self.decoded([n for n, v in sorted(self.version.items()) if v == version], version).segments
            storage = LocalStorage(self.folder / "segments", fsync=False)
            clean += [row for f in files for row in read_segment(storage, f.path).to_pylist()]
        found = self.rows()
        assert sums(found) == sums(clean)
        assert not perfect or len(found) == len(sums(found))
        assert datasource_totals(self.source.datasource).adds_up
        assert datasource_totals(self.source.datasource).polled == len(self.version)


def sums(rows: list[dict[str, Any]]) -> Sums:
    """Of all rows of an hour and a kind."""
    found: Sums = {}
    for row in rows:
        key = row["__time"], row["kind"]
        count, total, most, half = found.get(key, (0, 0, 0.0, 0.0))
        found[key] = count + row["count"], total + row["sum"], max(most, row["max"]), half + row["mean"]
    return found


@pytest.fixture
def world(db: None, run_indexer: Run, tmp_path: Path) -> World:
    """Three publishes by the first version, then one by the second."""
    make_receipt_partitions()
    world = World(make_source("d"), run_indexer, tmp_path)
    for first, last, version in ((0, 20, 1), (20, 45, 1), (45, 60, 1), (60, RECORDS, 2)):
        world.read(list(range(first, last)), version)
    world.check()
    return world


@pytest.mark.parametrize("merged", [False, True], ids=["as published", "merged before"])
def test_sums_after_a_rewind_are_those_of_a_clean_run(world: World, merged: bool) -> None:
    if merged:
        for day in (0, 1):
            world.merge(day)
        world.check(perfect=True)
    before = sums(world.rows())
    parts = world.rewind(20, 45, 2)
    assert {world.version[n] for n in range(20, 45)} == {2}
    assert (world.version[0], world.version[RECORDS - 1]) == ((2 if merged else 1), 2)
    world.check()
    for part in parts:
        rewinds.undo_part(part.pk, "somebody")
    assert sums(world.rows()) == before


def test_rollup_is_perfect_again_when_a_rewind_was_merged(world: World) -> None:
    """A record that comes late joins the rows of those that were read twice."""
    world.rewind(0, 45, 2)
    world.read([RECORDS, RECORDS + 1, RECORDS + 2], 2)
    for day in (0, 1):
        world.merge(day)
    world.check(perfect=True)
    before = dict(world.version)
    world.rewind(0, 1, 1)
    mixed = {n for n, v in before.items() if n % 2 == 0 and (v == 1 or n % 3 < 2)}
    assert world.version == {**before, **dict.fromkeys(mixed, 1)}, "all with a row in the merged segment of that day"
    world.check()
