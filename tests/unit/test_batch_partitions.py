"""Partitions by hash and by ranges: rows that may become one meet in one segment, of about the size that is wanted."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from ingestion.batch.errors import InputRefused
from ingestion.batch.partitions import SAMPLE_SIZE, Sample, find_ranges, hash_rows
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.specs.errors import SpecError
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.tasks.batch import options_without_effect, parse_batch_spec
from tests.support.batch_run import DAY_MS, JSON, START_MS, Run, below, spec_of

ROWS = 4_000
ROLLED_UP = {
    "dimensionsSpec": {"dimensions": ["page", {"name": "code", "type": "long"}]},
    "metricsSpec": [{"type": "count", "name": "rows"}, {"type": "longSum", "name": "n", "fieldName": "n"}],
    "granularitySpec": {"rollup": True, "segmentGranularity": "DAY", "queryGranularity": "HOUR"},
}


def records(rows: int = ROWS) -> list[dict[str, Any]]:
    dice = random.Random(rows)
    return [
        {
            "t": START_MS + dice.randrange(2 * DAY_MS),
            "page": dice.choice(["a", "b", "ö", None]),
            "code": dice.choice([*range(30), None]),
            "n": n,
        }
        for n in range(rows)
    ]


def run_of(tmp_path: Path, given: Sequence[dict[str, Any]], partitions: dict[str, Any] | None, **parts: Any) -> Run:
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "some.json").write_text("\n".join(json.dumps(record) for record in given))
    tuning = {"forceGuaranteedRollup": True, **({"partitionsSpec": partitions} if partitions else {})}
    spec = spec_of(below(folder), JSON, **{"schema": ROLLED_UP, "tuning": tuning, **parts})
    return Run(spec, folder, size=60_000, deep=tmp_path)


def tables(tmp_path: Path, files: Sequence[SegmentFile]) -> list[pd.DataFrame]:
    storage = LocalStorage(tmp_path / "deep", fsync=False)
    return [read_segment(storage, file.path).to_pandas() for file in files]


def pandas_says(given: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    table = pd.DataFrame(list(given))
    table["__time"] = pd.to_datetime(table["t"], unit="ms", utc=True).dt.floor("h")
    groups = table.groupby(["__time", "page", "code"], dropna=False).agg(rows=("n", "size"), n=("n", "sum"))
    return told(groups.reset_index())


def told(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    table = table[["__time", "page", "code", "rows", "n"]].copy()
    table["__time"] = table["__time"].dt.as_unit("ms")
    plain = table.astype({"code": float}).astype(object)
    return sorted(plain.where(plain.notna(), None).itertuples(index=False, name=None), key=repr)


def per_day(files: Sequence[SegmentFile]) -> list[int]:
    days = [file.interval_start for file in files]
    return [days.count(day) for day in sorted(set(days))]


@pytest.mark.parametrize(
    ("partitions", "wanted"),
    [
        ({"type": "hashed", "numShards": 3}, [3, 3]),
        ({"type": "hashed", "numShards": 4, "partitionDimensions": ["code"]}, [4, 4]),
        (None, [1, 1]),
        ({"type": "range", "partitionDimensions": ["page", "code"], "targetRowsPerSegment": 5_000_000}, [1, 1]),
    ],
)
def test_rows_that_may_become_one_are_one(tmp_path: Path, partitions: Any, wanted: list[int]) -> None:
    given = records()
    run = run_of(tmp_path, given, partitions)
    assert len(run.splits) > 3
    files = run.written(tmp_path)
    assert per_day(files) == wanted
    assert told(pd.concat(tables(tmp_path, files))) == pandas_says(given)


def test_a_hash_of_named_dimensions_keeps_their_values_together(tmp_path: Path) -> None:
    run = run_of(tmp_path, records(), {"type": "hashed", "numShards": 4, "partitionDimensions": ["code"]})
    files = run.written(tmp_path)
    for day in {file.interval_start for file in files}:
        mine = tables(tmp_path, [f for f in files if f.interval_start == day])
        codes = [{None if pd.isna(code) else code for code in table["code"]} for table in mine]
        assert sum(map(len, codes)) == len(set.union(*codes)) == 31


@pytest.mark.parametrize("kind", ["range", "single_dim"])
@pytest.mark.parametrize("size", [{"maxRowsPerSegment": 300}, {"targetRowsPerSegment": 300, "assumeGrouped": True}])
def test_ranges_do_not_overlap_and_have_about_the_size(tmp_path: Path, kind: str, size: dict[str, Any]) -> None:
    by = {"partitionDimension": "code"} if kind == "single_dim" else {"partitionDimensions": ["code", "page"]}
    given = records()
    run = run_of(tmp_path, given, {"type": kind, **by, **size})
    files = run.written(tmp_path)
    found = tables(tmp_path, files)
    assert told(pd.concat(found)) == pandas_says(given)
    columns = ["code"] if kind == "single_dim" else ["code", "page"]
    for day in {file.interval_start for file in files}:
        mine = [t for f, t in zip(files, found, strict=True) if f.interval_start == day]
        total = sum(map(len, mine))
        assert abs(len(mine) - total / 300) <= (2 if "maxRowsPerSegment" in size else 3)
        assert max(map(len, mine)) < 2 * total / len(mine)
        assert are_apart([sorted(ranked(table, columns)) for table in mine])


def ranked(table: pd.DataFrame, columns: list[str]) -> set[tuple[Any, ...]]:
    """Keys as they sort: nulls last."""
    rows = table[columns].astype(object).itertuples(index=False, name=None)
    return {tuple((1, "") if pd.isna(value) else (0, value) for value in row) for row in rows}


def are_apart(keys: list[list[tuple[Any, ...]]]) -> bool:
    keys.sort(key=lambda some: some[0])
    return all(before[-1] < after[0] for before, after in pairwise(keys))


def test_the_size_of_hashed_partitions_is_that_of_rows_that_have_become_one(tmp_path: Path) -> None:
    """4,000 records of two days in about 2,900 rows each would be seven partitions, were they counted."""
    given = [{**record, "code": record["n"] % 5, "page": "a"} for record in records()]
    run = run_of(tmp_path, given, {"type": "hashed", "targetRowsPerSegment": 60})
    files = run.written(tmp_path)
    assert told(pd.concat(tables(tmp_path, files))) == pandas_says(given)
    assert per_day(files) == [2, 2]  # 24 hours × 5 codes, 60 a segment


def test_values_of_several_types_meet_where_they_are_the_same(tmp_path: Path) -> None:
    schema = {**ROLLED_UP, "dimensionsSpec": {"useSchemaDiscovery": True}, "metricsSpec": ROLLED_UP["metricsSpec"]}
    values = [1, 1.0, 2, 2.5, None]
    given = [{"t": START_MS, "page": "x" * 200, "code": values[n // 800], "n": n} for n in range(ROWS)]
    run = run_of(tmp_path, given, {"type": "hashed", "numShards": 4}, schema=schema)
    found = pd.concat(tables(tmp_path, run.written(tmp_path)))
    assert sorted(repr(code) for code in found["code"].astype(object)) == ["1.0", "2.0", "2.5", "nan"]
    assert sorted(found["rows"]) == [800, 800, 800, 1600]


def test_without_rollup_each_row_stays(tmp_path: Path) -> None:
    schema = {**ROLLED_UP, "metricsSpec": [], "granularitySpec": {"rollup": False, "segmentGranularity": "DAY"}}
    schema["dimensionsSpec"] = {"dimensions": ["page", {"name": "n", "type": "long"}]}
    by = {"type": "range", "partitionDimensions": ["n"], "maxRowsPerSegment": 500}
    run = run_of(tmp_path, records(), by, schema=schema)
    files = run.written(tmp_path)
    found = tables(tmp_path, files)
    assert sorted(n for table in found for n in table["n"]) == list(range(ROWS))
    assert per_day(files) == [-(-rows // 500) for _, rows in sorted(run.rows.items())]
    for day in {file.interval_start for file in files}:
        mine = [t for f, t in zip(files, found, strict=True) if f.interval_start == day]
        assert are_apart([sorted((n,) for n in table["n"]) for table in mine])


def test_dimensions_without_ranges_are_refused(tmp_path: Path) -> None:
    schema = {**ROLLED_UP, "dimensionsSpec": {"dimensions": ["page"]}}
    given = [{**record, "page": ["a", "b"]} for record in records(10)]
    by = {"type": "single_dim", "partitionDimension": "page", "maxRowsPerSegment": 5}
    with pytest.raises(InputRefused, match="'page' has lists or JSON, which have no ranges: use hashed"):
        run_of(tmp_path, given, by, schema=schema).written(tmp_path)


def test_a_dimension_that_no_record_has_is_one_value(tmp_path: Path) -> None:
    schema = {**ROLLED_UP, "dimensionsSpec": {"dimensions": ["page", "code", "none"]}}
    by = {"type": "range", "partitionDimensions": ["none"], "maxRowsPerSegment": 5}
    assert per_day(run_of(tmp_path, records(200), by, schema=schema).written(tmp_path)) == [1, 1]


def test_samples_of_parts_are_that_of_the_whole_and_tell_how_many_there_are() -> None:
    numbers = pa.array([n % 50_000 for n in range(100_000)])
    values = pa.table([numbers], names=["c0"])
    whole = Sample.of(hash_rows([numbers]), values)
    parts = [Sample.of(hash_rows([numbers[i : i + 7_000]]), values.slice(i, 7_000)) for i in range(0, 100_000, 7_000)]
    joined = parts[0]
    for part in parts[1:]:
        joined = part.joined(joined)
    assert joined.hashes.tolist() == whole.hashes.tolist() and len(whole.hashes) == SAMPLE_SIZE
    assert joined.values is not None and whole.values is not None
    assert sorted(joined.values.column(0).to_pylist()) == sorted(whole.values.column(0).to_pylist())
    assert abs(whole.distinct - 50_000) < 5_000
    assert Sample.of(hash_rows([numbers[:700]]), None).distinct == 700


def test_a_range_begins_with_its_bound_and_nulls_come_last() -> None:
    bounds = pa.table({"c0": pa.array(["b", "d"])})
    values = pa.table({"c0": pa.array(["a", None, "b", "c", "d", "z", ""])})
    assert find_ranges(values, bounds).tolist() == [0, 2, 1, 1, 2, 2, 0]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"partitionsSpec": {"type": "hashed"}}, "needs forceGuaranteedRollup true, as in Druid"),
    ({"forceGuaranteedRollup": True, "partitionsSpec": {"type": "dynamic"}}, "type hashed, range or single_dim"),
    ({"hashed": {"numShards": 2, "targetRowsPerSegment": 5}}, "either numShards or targetRowsPerSegment"),
    ({"hashed": {"numShards": 0}}, "numShards"),
    ({"hashed": {"numShards": 20_001}}, "20000"),
    ({"hashed": {"partitionFunction": "md5"}}, "murmur3_32_abs"),
    ({"hashed": {"partitionDimensions": ["n"]}}, "'n', which is not a dimension"),
    ({"hashed": {"partitionDimensions": ["other"]}}, "'other', which is not a dimension"),
    ({"hashed": {"partitionDimensions": ["page", "page"]}}, "twice"),
    ({"range": {"maxRowsPerSegment": 5}}, "partitionDimensions"),
    ({"range": {"partitionDimensions": [], "maxRowsPerSegment": 5}}, "partitionDimensions"),
    ({"range": {"partitionDimensions": ["__time"], "maxRowsPerSegment": 5}}, "'__time', which is not a dimension"),
    ({"range": {"partitionDimensions": ["page"]}}, "either targetRowsPerSegment or maxRowsPerSegment"),
    (
        {"range": {"partitionDimensions": ["page"], "maxRowsPerSegment": 5, "targetRowsPerSegment": 5}},
        "either targetRowsPerSegment or maxRowsPerSegment",
    ),
    ({"single_dim": {"partitionDimensions": ["page"], "maxRowsPerSegment": 5}}, "partitionDimension"),
    ({"hashed": {}, "maxRowsPerSegment": 5}, "has its own size"),
    ({"hashed": {}, "io": {"appendToExisting": True}}, "appendToExisting exclude each other"),
    (
        {"range": {"partitionDimensions": ["page"], "maxRowsPerSegment": 5}, "io": {"type": "index"}},
        "range is for index_parallel",
    ),
]


@pytest.mark.parametrize(("given", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_druid_refuses_too_is_refused_by_name(given: dict[str, Any], why: str) -> None:
    tuning = {name: value for name, value in given.items() if name not in ("hashed", "range", "single_dim", "io")}
    for kind in ("hashed", "range", "single_dim"):
        if kind in given:
            tuning |= {"forceGuaranteedRollup": True, "partitionsSpec": {"type": kind, **given[kind]}}
    with pytest.raises(SpecError, match=why):
        parse_batch_spec(document(tuning, **given.get("io", {})))


def document(tuning: dict[str, Any], **io: Any) -> dict[str, Any]:
    source = {"inputSource": {"type": "inline", "data": "x"}, "inputFormat": JSON}
    schema = {"dataSource": "w", "timestampSpec": {}, **ROLLED_UP}
    reading = {"type": "index_parallel", **source, **io}
    return {
        "type": reading["type"],
        "spec": {"dataSchema": schema, "ioConfig": reading, "tuningConfig": {"type": reading["type"], **tuning}},
    }


def test_what_is_left_out_is_as_in_druid() -> None:
    spec = parse_batch_spec(document({"forceGuaranteedRollup": True, "maxRowsPerSegment": 7})).spec.tuningConfig
    assert spec.dividing is not None and spec.dividing.partitions_of(15) == 3
    hashes = {"type": "hashed", "numShards": -1, "targetRowsPerSegment": -1, "partitionFunction": "murmur3_32_abs"}
    given = parse_batch_spec(document({"forceGuaranteedRollup": True, "partitionsSpec": hashes}, type="index"))
    assert given.spec.tuningConfig.dividing is not None
    assert [given.spec.tuningConfig.dividing.partitions_of(n) for n in (1, 5_000_000, 5_000_001)] == [1, 1, 2]
    [option] = options_without_effect(given.canonical())
    assert option.startswith("tuningConfig.partitionsSpec.partitionFunction: ")
