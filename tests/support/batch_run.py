"""A batch task's steps without Spark, over files of a test."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ingestion.batch.inputs import Inputs
from ingestion.batch.partitions import PartitionKeys, Sample, plan_partitions
from ingestion.batch.reading import Chunk, IntervalMs, Reader, SplitReport
from ingestion.batch.shuffle_partitions import ShufflePartitions
from ingestion.batch.split_quarantine import MAX_BYTES, QuarantineLimits
from ingestion.batch.splits import pack_splits, plan_splits
from ingestion.batch.writing import write_bin
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.specs.inputs.input_source import LocalInputSource
from ingestion.specs.messages.batch_protocol import Reachable
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.tasks.batch import BatchSpec, parse_batch_spec
from tests.support.column_ids import some_ids

START_MS, DAY_MS = 1_735_689_600_000, 86_400_000  # 2025-01-01
ROOM = QuarantineLimits(100, MAX_BYTES)
JSON, CSV = {"type": "json"}, {"type": "csv", "findColumnsFromHeader": True}


def spec_of(source: dict[str, Any], form: dict[str, Any] | None, **parts: dict[str, Any]) -> BatchSpec:
    schema = {
        "dataSource": "w",
        "timestampSpec": {"column": "t", "format": "millis"},
        "dimensionsSpec": {"dimensions": ["page", {"name": "n", "type": "long"}]},
        "granularitySpec": {"rollup": False},
        **parts.get("schema", {}),
    }
    document = {
        "type": "index_parallel",
        "dataSchema": schema,
        "ioConfig": {"inputSource": source, **({"inputFormat": form} if form else {}), **parts.get("io", {})},
        "tuningConfig": parts.get("tuning", {}),
    }
    return parse_batch_spec(document).spec


def below(folder: Path, wildcard: str = "*") -> dict[str, Any]:
    return {"type": "local", "baseDir": str(folder), "filter": wildcard}


def local(**named: Any) -> LocalInputSource:
    return LocalInputSource(type="local", **named)


class Run:
    """A task's steps, one after the other; splits of ``size`` bytes."""

    def __init__(
        self,
        spec: BatchSpec,
        folder: Path,
        size: int = 10_000,
        careful: bool = False,
        deep: Path | None = None,
        segments: Sequence[InputSegment] = (),
        reachable: Reachable | None = None,
        room: QuarantineLimits = ROOM,
    ) -> None:
        inputs = Inputs(reachable or Reachable(local_folders=[str(folder)]))
        whole = [p for s in plan_splits(spec, inputs, 1, segments) for p in s.parts]
        self.splits = pack_splits(whole, size, 100)
        self.spec, self.told = spec, [SplitReport(s.number) for s in self.splits]
        self.chunks: list[tuple[int, Chunk]] = []
        storage = LocalStorage((deep or folder) / "deep", fsync=False)
        reader = Reader(spec, inputs, storage, room, careful=careful)
        try:
            for split, told in zip(self.splits, self.told, strict=True):
                self.chunks += [(split.number, chunk) for chunk in reader.chunks(split, told)]
        finally:
            reader.close()

    @property
    def rows(self) -> Counter[IntervalMs]:
        found: Counter[IntervalMs] = Counter()
        for _, chunk in self.chunks:
            found[chunk.place] += chunk.rows
        return found

    def summed(self, name: str) -> int:
        return sum(getattr(t, name) for t in self.told)

    def written(self, deep: Path, writers: int = 2) -> list[SegmentFile]:
        storage = LocalStorage(deep / "deep", fsync=False)
        files: list[SegmentFile] = []
        for _, mine in sorted(self.dealt(writers).items()):
            done = write_bin(mine, self.spec, "v", storage, deep / "scratch", some_ids())
            assert done.records == sum(c.rows for c in mine)
            files += done.files
        return files

    def dealt(self, writers: int) -> dict[int, list[Chunk]]:
        """What each bin gets."""
        found: dict[int, list[Chunk]] = {}
        if self.spec.tuningConfig.dividing is None:
            lanes = ShufflePartitions.of(writers)
            shares = lanes.shares(self.rows, self.spec.tuningConfig.rows_per_segment, writers)
            writer_of = {lane: number for number, share in enumerate(shares) for lane in share}
            for split, chunk in self.chunks:
                found.setdefault(writer_of[lanes.lane_of(chunk.place, split, chunk.number)], []).append(chunk)
            return found
        keys = PartitionKeys.of(self.spec, [c.held for _, c in self.chunks])
        samples: dict[IntervalMs, Sample] = {}
        for split, chunk in self.chunks if keys.needs_sample else ():
            sample = keys.sampled(split, chunk)
            samples[chunk.place] = samples[chunk.place].joined(sample) if chunk.place in samples else sample
        division = plan_partitions(self.spec, keys, self.rows, samples, writers)
        for number, piece in (some for _, chunk in self.chunks for some in division.pieces(chunk)):
            found.setdefault(number, []).append(piece)
        return found

    def stored(self, deep: Path) -> pd.DataFrame:
        storage = LocalStorage(deep / "deep", fsync=False)
        found = [read_segment(storage, file.path).to_pandas() for file in self.written(deep)]
        return pd.concat(found, ignore_index=True)


def a_table(rows: int, days: int = 3) -> pd.DataFrame:
    dice = random.Random(rows)
    return pd.DataFrame(
        {
            "t": [START_MS + dice.randrange(days * DAY_MS) for _ in range(rows)],
            "page": [dice.choice(["main", "öther", "a,b", 'in "quotes"', None]) for _ in range(rows)],
            "n": range(rows),
        }
    )


def is_same(stored: pd.DataFrame, wanted: pd.DataFrame) -> bool:
    stored = stored.sort_values("n").reset_index(drop=True)
    times = stored["__time"].dt.as_unit("ms").astype("int64")
    both = [(times, wanted["t"]), (stored["n"], wanted["n"]), (stored["page"].fillna(""), wanted["page"].fillna(""))]
    return len(stored) == len(wanted) and all(bool((a == b).all()) for a, b in both)
