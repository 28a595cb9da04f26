"""What a compact task that writes rows anew says nothing of is what the segments have, of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd

from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.granularity import Granularity
from ingestion.specs.tasks.batch import BatchSpec
from ingestion.specs.tasks.reindexing import SegmentContents
from ingestion.specs.tasks.segment_tasks import parse_compact_task
from tests.support.batch_run import DAY_MS, JSON, START_MS, Run, below, spec_of

ROWS = 400
METRICS = [
    {"type": "count", "name": "rows"},
    {"type": "longSum", "name": "sum", "fieldName": "n"},
    {"type": "doubleMin", "name": "least", "fieldName": "price"},
    {"type": "longMax", "name": "most", "fieldName": "n"},
    {"type": "floatSum", "name": "total", "fieldName": "quarter"},
    {"type": "stringAny", "name": "any", "fieldName": "group"},
    {"type": "HLLSketchBuild", "name": "users", "fieldName": "n"},
    {"type": "thetaSketch", "name": "theta", "fieldName": "n"},
    {"type": "quantilesDoublesSketch", "name": "quantiles", "fieldName": "n"},
]


def record(n: int) -> dict[str, Any]:
    whole = {
        "t": START_MS + n * 3 * DAY_MS // ROWS,
        "text": f"é{n % 5}",
        "digits": str(n),
        "tags": [f"b{n % 3}", "a"],
        "n": n,
        "price": n / 8,
        "quarter": n / 4,
        "ok": n % 2 == 0,
        "more": {"a": [n, "x"], "b": None},
        "group": "one",
    }
    return {name: value for place, (name, value) in enumerate(whole.items()) if name in ("t", "n") or n % 11 != place}


def written(tmp_path: Path, schema: dict[str, Any]) -> tuple[BatchSpec, list[SegmentFile]]:
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "some.json").write_text("\n".join(json.dumps(record(n)) for n in range(ROWS)))
    spec = spec_of(below(folder), JSON, schema=schema)
    return spec, Run(spec, folder, deep=tmp_path).written(tmp_path)


def anew(tmp_path: Path, schema: DataSchema, files: list[SegmentFile], **parts: Any) -> list[SegmentFile]:
    document = {"type": "compact", "dataSource": "w", "interval": "2025-01-01/P3D", **parts}
    columns = {c.name: c.type for f in files for c in f.columns if c.name != "__time"}
    held = SegmentContents(columns, schema.metricsSpec, schema.granularitySpec.rollup, Granularity.DAY)
    inputs = [
        InputSegment(id=uuid4(), path=f.path, rows=f.rows, size_bytes=f.size_bytes, sha256=f.sha256) for f in files
    ]
    run = Run(parse_compact_task(document).batch_task(held).spec, tmp_path, deep=tmp_path, segments=inputs)
    assert run.summed("parse_exceptions") == 0
    return run.written(tmp_path)


def table(tmp_path: Path, files: list[SegmentFile]) -> pd.DataFrame:
    storage = LocalStorage(tmp_path / "deep", fsync=False)
    return pd.concat([read_segment(storage, f.path).to_pandas() for f in files], ignore_index=True)


def rows_of(found: pd.DataFrame) -> list[list[str]]:
    """In some order that is the same for the same rows."""
    return sorted(found[sorted(found.columns)].astype(object).map(repr).to_numpy().tolist())


def test_rows_of_every_kind_of_column_stay_what_they_are(tmp_path: Path) -> None:
    hours = {"segmentGranularity": "HOUR", "rollup": False}
    named = ["text", "digits", "tags", {"name": "n", "type": "long"}, {"name": "price", "type": "float"}]
    kinds = [{"name": "more", "type": "json"}, *({"name": name, "type": "auto"} for name in ("ok", "group", "quarter"))]
    schema: dict[str, Any] = {"dimensionsSpec": {"dimensions": [*named, *kinds]}, "granularitySpec": hours}
    spec, files = written(tmp_path, schema)
    types = {c.name: c.type for f in files for c in f.columns}
    assert {types[n] for n in ("digits", "tags", "n", "price", "ok", "more")} == {
        "string",
        "strings",
        "long",
        "double",
        "boolean",
        "json",
    }
    made = anew(tmp_path, spec.dataSchema, files, segmentGranularity="DAY")
    assert len(files) > 24 and len(made) == 3
    assert {c.name: c.type for f in made for c in f.columns} == types
    assert rows_of(table(tmp_path, made)) == rows_of(table(tmp_path, files))


def test_metrics_are_those_of_all_records(tmp_path: Path) -> None:
    """Rolled up by hour and then by day they are what they are by day at once."""
    by_hour: dict[str, Any] = {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": True}
    dimensions = {"dimensions": ["text"]}
    (tmp_path / "steps").mkdir()
    (tmp_path / "once").mkdir()
    schema: dict[str, Any] = {"dimensionsSpec": dimensions, "metricsSpec": METRICS, "granularitySpec": by_hour}
    spec, files = written(tmp_path / "steps", schema)
    made = anew(tmp_path / "steps", spec.dataSchema, files, granularitySpec={"queryGranularity": "DAY"})
    by_day = {**schema, "granularitySpec": {**by_hour, "queryGranularity": "DAY"}}
    _, wanted = written(tmp_path / "once", by_day)
    found, expected = table(tmp_path / "steps", made), table(tmp_path / "once", wanted)
    assert len(found) == len(expected) < len(table(tmp_path / "steps", files))
    plain = [c for c in expected.columns if c not in ("users", "theta", "quantiles")]
    assert rows_of(found[plain]) == rows_of(expected[plain])
    assert found["rows"].sum() == ROWS
    assert {c.name: c.type for f in made for c in f.columns} == {c.name: c.type for f in wanted for c in f.columns}


def test_a_task_with_partitions_alone_writes_the_same_rows_by_them(tmp_path: Path) -> None:
    by_hour: dict[str, Any] = {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": True}
    schema = {"dimensionsSpec": {"dimensions": ["text"]}, "metricsSpec": METRICS[:5], "granularitySpec": by_hour}
    spec, files = written(tmp_path, schema)
    ranges = {"type": "single_dim", "partitionDimension": "text", "maxRowsPerSegment": 40}
    tuning = {"type": "index_parallel", "forceGuaranteedRollup": True, "partitionsSpec": ranges}
    task = parse_compact_task(
        {"type": "compact", "dataSource": "w", "interval": "2025-01-01/P3D", "tuningConfig": tuning}
    )
    assert task.rewrites_rows and not task.changes.any
    made = anew(tmp_path, spec.dataSchema, files, tuningConfig=tuning)
    assert rows_of(table(tmp_path, made)) == rows_of(table(tmp_path, files))
    parts = [(f.interval_start, frozenset(table(tmp_path, [f])["text"].dropna())) for f in made]
    for day in {day for day, _ in parts}:
        texts = [some for where, some in parts if where == day]
        assert len(texts) > 1 and sum(map(len, texts)) == len(frozenset.union(*texts)) == 5
    dynamic = {"type": "index_parallel", "partitionsSpec": {"type": "dynamic"}}
    assert not parse_compact_task(
        {"type": "compact", "dataSource": "w", "interval": "2025/P3D", "tuningConfig": dynamic}
    ).rewrites_rows
