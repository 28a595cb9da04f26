"""Segments merged into one: it holds what ingestion would have written of all their records at once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ingestion.compaction.merging import merge
from ingestion.rows import JSON_TYPE, LIST_TYPE, join_rows
from ingestion.segments.errors import DamagedSegment
from ingestion.segments.table_shape import Shape, int64s
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.desk import DAY_MS, batch_of, schema_of
from tests.support.shelf import Shelf, told

SUMS = [
    {"type": "count", "name": "n"},
    {"type": "longSum", "name": "sum", "fieldName": "v"},
    {"type": "doubleSum", "name": "dsum", "fieldName": "v"},
    {"type": "longMin", "name": "min", "fieldName": "v"},
    {"type": "doubleMax", "name": "max", "fieldName": "v"},
]


def a_batch(dice: random.Random, rows: int = 40) -> pa.Table:
    """Rows of one day with many equal ones, and columns that come, go and change their type."""
    columns: dict[str, pa.Array] = {}
    if dice.random() < 0.7:
        of: Any = dice.choice([(pa.string(), ["x", "y", "1", None]), (pa.int64(), [1, 2, None])])
        columns["a"] = pa.array([dice.choice(of[1]) for _ in range(rows)], of[0])
    columns["A"] = pa.array([dice.choice([0.5, 1.0, float("nan"), None]) for _ in range(rows)], pa.float64())
    if dice.random() < 0.5:
        columns["list"] = pa.array([dice.choice([["a"], ["a", "b"], None]) for _ in range(rows)], LIST_TYPE)
    if dice.random() < 0.5:
        texts = pa.array([dice.choice(['{"a":1}', "[1]", None]) for _ in range(rows)], pa.string())
        columns["json"] = texts.cast(JSON_TYPE)
    values = [dice.choice([None, 1, -5, 2**62]) for _ in range(rows)]
    small = [None if v is None else v % 7 for v in values]
    columns |= {
        "n": pa.array([1] * rows),
        "sum": pa.array(values, pa.int64()),
        "dsum": pa.array(small, pa.float64()),
        "min": pa.array(small, pa.int64()),
        "max": pa.array(small, pa.float64()),
    }
    return batch_of([dice.choice([0, 1, 60_000, DAY_MS - 1]) for _ in range(rows)], **columns)


@pytest.mark.parametrize("rollup", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_many_files_become_what_one_batch_of_all_records_would_be(tmp_path: Path, rollup: bool, seed: int) -> None:
    dice = random.Random(seed)
    shelf = Shelf(tmp_path, schema_of(rollup, SUMS))
    batches = [a_batch(dice) for _ in range(12)]
    for batch in batches:
        shelf.add(batch)
    numbered = [b.set_column(0, "__row", pa.array(np.arange(len(b)) + 40 * i)) for i, b in enumerate(batches)]
    [expected] = shelf.write(join_rows(numbered))
    job = shelf.job()
    merged = merge(job, shelf.storage, shelf.scratch, shelf.ids)
    [file] = merged.files
    assert merged.read == {s.id: s.rows for s in job.segments}
    assert merged.counted == ({"n": (480, 480)} if rollup else {})
    assert file.rows == expected.rows
    assert {(c.name, c.type) for c in file.columns} == {(c.name, c.type) for c in expected.columns}
    assert (file.min_time, file.max_time, file.offsets) == (expected.min_time, expected.max_time, {})
    found = shelf.rows([file])
    assert told(found) == told(shelf.rows([expected]))
    assert is_sorted(found, shelf.schema)
    assert [p for p in shelf.scratch.rglob("*") if p.is_file()] == []


def is_sorted(rows: pa.Table, schema: DataSchema) -> bool:
    """Whether the order in which ingestion sorts leaves every key where it is."""
    shape = Shape(rollup=False, aggregations=Shape.of(schema).aggregations, lead=0)
    keys = shape.keys(rows)
    names = [f"k{i}" for i in range(len(keys))]
    table = pa.table(keys, names=names)
    again = table.sort_by([(name, "ascending") for name in names])
    unmoved = table.equals(again) or repr(table.to_pylist()) == repr(again.to_pylist())  # NaN is not equal to NaN
    return unmoved and bool((np.diff(int64s(keys[0].cast("int64"))) >= 0).all())


def test_files_end_at_the_wanted_number_of_rows(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, schema_of())
    for n in range(5):
        shelf.add(batch_of(list(range(n, 1000, 5)), v=pa.array(range(200))))
    files = merge(shelf.job(max_rows_per_segment=400), shelf.storage, shelf.scratch, shelf.ids).files
    assert [f.rows for f in files] == [400, 400, 200]
    assert files[0].max_time < files[1].min_time


def test_little_memory_is_enough_for_many_rows(tmp_path: Path) -> None:
    """Four times what it may hold."""
    dice = np.random.default_rng(1)
    shelf = Shelf(tmp_path, schema_of())
    for _ in range(8):
        times = dice.integers(0, DAY_MS, 200_000).tolist()
        texts = pc.utf8_lpad(pa.array(dice.integers(0, 2**60, 200_000)).cast(pa.string()), 32, "0")
        shelf.add(batch_of(times, v=texts))
    [file] = merge(shelf.job(), shelf.storage, shelf.scratch, shelf.ids, memory_bytes=24 * 1024 * 1024).files
    assert file.rows == 1_600_000
    assert is_sorted(shelf.rows([file]), shelf.schema)


def test_a_file_that_is_not_what_was_registered_is_not_merged(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, schema_of())
    shelf.add(batch_of([1, 2], v=pa.array([1, 2])))
    job = shelf.job()
    other = job.segments[0].model_copy(update={"sha256": "0" * 64})
    with pytest.raises(DamagedSegment, match="has the SHA-256"):
        merge(job.model_copy(update={"segments": [other]}), shelf.storage, shelf.scratch, shelf.ids)
    gone = job.segments[0].model_copy(update={"path": "d/none.parquet"})
    with pytest.raises(DamagedSegment, match="does not exist"):
        merge(job.model_copy(update={"segments": [gone]}), shelf.storage, shelf.scratch, shelf.ids)
