"""Segments of an interval written anew by one process: the rows are those that a batch task would have written."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pytest

from ingestion.batch.errors import InputRefused
from ingestion.batch.rewrite_interval import rewrite_interval
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.schema.granularity import Granularity
from ingestion.specs.tasks.batch import BatchSpec
from ingestion.specs.tasks.reindexing import SegmentContents
from ingestion.specs.tasks.segment_tasks import parse_compact_task
from tests.support.batch_run import DAY_MS, JSON, START_MS, Run, below, spec_of
from tests.support.column_ids import some_ids

ROWS, FILES = 3_000, 5
METRICS = [{"type": "count", "name": "rows"}, {"type": "longSum", "name": "n", "fieldName": "n"}]


def written(tmp_path: Path, rollup: bool) -> list[SegmentFile]:
    """Several files of a day, in which some rows are equal."""
    dice, files = random.Random(7), []
    schema = {
        "dimensionsSpec": {"dimensions": ["page", {"name": "code", "type": "long"}]},
        "metricsSpec": METRICS if rollup else [],
        "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": rollup},
    }
    for number in range(FILES):
        folder = tmp_path / f"input-{number}"
        folder.mkdir()
        records = [
            {"t": START_MS + dice.randrange(DAY_MS), "page": dice.choice("abc"), "code": dice.randrange(40), "n": n}
            for n in range(ROWS // FILES)
        ]
        (folder / "some.json").write_text("\n".join(map(json.dumps, records)))
        files += Run(spec_of(below(folder), JSON, schema=schema), folder, deep=tmp_path).written(tmp_path)
    return files


def anew(files: list[SegmentFile], rollup: bool, partitions: dict[str, Any]) -> BatchSpec:
    tuning = {"type": "index_parallel", "forceGuaranteedRollup": True, "partitionsSpec": partitions}
    document = {"type": "compact", "dataSource": "w", "interval": "2025-01-01/P1D", "tuningConfig": tuning}
    columns = {c.name: c.type for f in files for c in f.columns if c.name != "__time"}
    schema = {"dimensionsSpec": {"dimensions": ["page"]}, "metricsSpec": METRICS if rollup else []}
    metrics = spec_of(below(Path("/")), JSON, schema=schema).dataSchema.metricsSpec
    return parse_compact_task(document).batch_task(SegmentContents(columns, metrics, rollup, Granularity.DAY)).spec


def inputs(files: list[SegmentFile]) -> list[InputSegment]:
    return [InputSegment(id=uuid4(), path=f.path, rows=f.rows, size_bytes=f.size_bytes, sha256=f.sha256) for f in files]


def table(tmp_path: Path, file: SegmentFile) -> pd.DataFrame:
    return read_segment(LocalStorage(tmp_path / "deep", fsync=False), file.path).to_pandas()


def told(tmp_path: Path, files: list[SegmentFile]) -> list[str]:
    whole = pd.concat([table(tmp_path, f) for f in files])
    return sorted(map(repr, whole[sorted(whole.columns)].to_numpy().tolist()))


@pytest.mark.parametrize("rollup", [False, True])
@pytest.mark.parametrize(
    "partitions",
    [
        {"type": "range", "partitionDimensions": ["code"], "targetRowsPerSegment": 400},
        {"type": "single_dim", "partitionDimension": "page", "maxRowsPerSegment": 700},
        {"type": "hashed", "numShards": 3},
        {"type": "hashed", "targetRowsPerSegment": 500, "partitionDimensions": ["page"]},
    ],
)
def test_it_writes_what_a_batch_task_would(tmp_path: Path, rollup: bool, partitions: dict[str, Any]) -> None:
    files = written(tmp_path, rollup)
    spec = anew(files, rollup, partitions)
    storage = LocalStorage(tmp_path / "deep", fsync=False)
    made = rewrite_interval(spec, inputs(files), "v", storage, tmp_path / "scratch", some_ids())
    wanted = Run(spec, tmp_path, deep=tmp_path, segments=inputs(files)).written(tmp_path)
    assert told(tmp_path, made) == told(tmp_path, wanted)
    assert sorted(f.rows for f in made) == sorted(f.rows for f in wanted) and len(made) > 1
    before, after = sum(f.rows for f in files), sum(f.rows for f in made)
    assert after < before if rollup else after == before == ROWS
    assert {(f.interval_start, f.interval_end) for f in made} == {(f.interval_start, f.interval_end) for f in files}


def test_ranges_of_its_files_do_not_overlap(tmp_path: Path) -> None:
    files = written(tmp_path, False)
    spec = anew(files, False, {"type": "range", "partitionDimensions": ["code"], "targetRowsPerSegment": 500})
    storage = LocalStorage(tmp_path / "deep", fsync=False)
    made = rewrite_interval(spec, inputs(files), "v", storage, tmp_path / "scratch", some_ids())
    ends = sorted((t["code"].min(), t["code"].max()) for t in (table(tmp_path, f) for f in made))
    assert len(ends) > 3 and all(one[1] < other[0] for one, other in pairwise(ends))


def test_rows_that_would_be_lost_are_refused(tmp_path: Path) -> None:
    files = written(tmp_path, False)
    spec = anew(files, False, {"type": "hashed", "numShards": 2})
    storage = LocalStorage(tmp_path / "deep", fsync=False)
    wrong = [f.model_copy(update={"rows": f.rows + 1}) for f in inputs(files)]
    with pytest.raises(InputRefused, match=f"{FILES} of {ROWS + FILES} rows can't be rewritten"):
        rewrite_interval(spec, wrong, "v", storage, tmp_path / "scratch", some_ids())
