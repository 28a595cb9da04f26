"""Segments whose columns differ, read together: every column in the type that holds both."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from controlplane.segments.selectors.columns import widest_type
from ingestion.rows import TIME, TIME_TYPE
from ingestion.segments.errors import DamagedSegment
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segments
from ingestion.segments.writer import columns_of

COLUMNS = {
    "boolean": pa.array([True, None]),
    "double": pa.array([1.5, None]),
    "json": pa.array(['{"a":1}', None], pa.json_()),
    "long": pa.array([1, None]),
    "string": pa.array(["x", None]),
    "strings": pa.array([["y", None], None], pa.list_(pa.string())),
}


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    """A file for each type, called as it."""
    for name, column in COLUMNS.items():
        times = pa.array([0, 1], pa.int64()).view(TIME_TYPE)
        pq.write_table(pa.table({TIME: times, "v": column, name: pa.array([1, 2])}), tmp_path / name)
    return LocalStorage(tmp_path)


@pytest.mark.parametrize("order", list(permutations(COLUMNS, 2)))
def test_two_segments_have_the_type_that_the_schema_shows(storage: LocalStorage, order: tuple[str, str]) -> None:
    found = read_segments(storage, order).read_all()
    types = {column.name: column.type for column in columns_of(found.schema)}
    assert types == {TIME: "timestamp", "v": widest_type(set(order)), order[0]: "long", order[1]: "long"}
    assert found[order[0]].to_pylist() == [1, 2, None, None]
    assert found["v"].null_count == 2


@pytest.mark.parametrize(
    ("order", "shown", "values"),
    [
        (["long", "double"], "double", [1.0, 1.5]),
        (["string", "long", "double", "boolean"], "string", ["x", "1", "1.5", "true"]),
        (["long", "double", "string", "json"], "json", ["1", "1.5", '"x"', '{"a":1}']),
        (["json", "boolean", "strings"], "json", ['{"a":1}', "true", '["y", null]']),
        (["strings", "string", "long"], "strings", [["y", None], ["x"], ["1"]]),
    ],
)
def test_values_of_several_segments(storage: LocalStorage, order: list[str], shown: str, values: list[object]) -> None:
    """The reader has docs/reference/data-schema.md right; so has DuckDB, which reads them a batch at a time."""
    assert widest_type(set(order)) == shown
    rows = duckdb.from_arrow(read_segments(storage, order))
    assert rows.filter("v IS NOT NULL").project("v").fetchall() == [(v,) for v in values]


def test_files_with_milliseconds_and_with_microseconds_are_read_together(tmp_path: Path) -> None:
    """Files of earlier versions have the former, later ones the latter; a row's time is the same."""
    rows = pa.table({TIME: pa.array([123, 86_400_000], pa.int64()).view(TIME_TYPE), "n": pa.array([1, 2])})
    pq.write_table(rows, tmp_path / "earlier")
    pq.write_table(rows, tmp_path / "later", coerce_timestamps="us")
    kinds = [pq.read_schema(tmp_path / name).field(TIME).type.unit for name in ("earlier", "later")]
    assert kinds == ["ms", "us"]
    found = read_segments(LocalStorage(tmp_path), ["earlier", "later"]).read_all()
    assert found.to_pylist() == [*rows.to_pylist(), *rows.to_pylist()]
    for name in ("earlier", "later"):
        assert columns_of(pq.read_schema(tmp_path / name)) == columns_of(rows.schema)


def test_no_segments_no_rows(storage: LocalStorage) -> None:
    assert read_segments(storage, []).read_all().num_rows == 0


def test_what_is_no_segment(storage: LocalStorage, tmp_path: Path) -> None:
    (tmp_path / "torn").write_bytes((tmp_path / "long").read_bytes()[:-1])
    with pytest.raises(DamagedSegment, match="torn can't be read as Parquet"):
        read_segments(storage, ["long", "torn"])
