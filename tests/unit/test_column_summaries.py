"""What a dry run says of columns: of segments of any order and number the same, and which of them would change."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from controlplane.publishing.rewind_changes import MAX_COLUMNS, changed_columns, shown_changes
from ingestion.segments.errors import DamagedSegment
from ingestion.segments.local import LocalStorage
from ingestion.specs.messages.protocol import ColumnSummary
from ingestion.task.column_summaries import summarise

TIMES = [datetime(2025, 6, 1, hour, tzinfo=UTC) for hour in range(4)]


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def write(folder: Path, name: str, **columns: Any) -> str:
    times = TIMES[: len(next(iter(columns.values())))]
    pq.write_table(pa.table({"__time": times, **columns}), folder / name)
    return name


def test_order_and_number_of_segments_do_not_matter(tmp_path: Path, storage: LocalStorage) -> None:
    whole = write(
        tmp_path, "a", n=[1, 2, None, 4], tags=[["x"], None, [], ["y", "z"]], **{"odd name": ["a", "b", "c", None]}
    )
    halves = [
        write(tmp_path, "b", n=[1, 2], tags=[["x"], None], **{"odd name": ["a", "b"]}),
        write(tmp_path, "c", n=pa.array([None, 4], pa.int64()), tags=[[], ["y", "z"]], **{"odd name": ["c", None]}),
    ]
    told = {s.name: (s.type, s.values, s.total) for s in summarise(storage, [whole])}
    assert told["n"] == ("long", 3, 7)
    assert told["odd name"] == ("string", 3, None)
    assert (told["tags"][1], told["__time"]) == (3, ("timestamp", 4, None))
    both = {s.name: s for s in summarise(storage, halves)}
    assert both["n"] == {s.name: s for s in summarise(storage, [whole])}["n"]
    names = [c["name"] for c in changed_columns(summarise(storage, [whole]), summarise(storage, halves))["columns"]]
    assert names == ["__time"]  # the halves begin again at the first hour


def test_changed_new_and_vanished_columns_are_named(tmp_path: Path, storage: LocalStorage) -> None:
    old = write(tmp_path, "a", same=["x", "y"], n=[1, 2], word=["a", "b"], gone=[1.5, 2.5])
    new = write(tmp_path, "b", same=["x", "y"], n=[1.5, 2.0], word=["a", "c"], fresh=[None, "v"])
    changes = changed_columns(summarise(storage, [old]), summarise(storage, [new]))
    told = {
        c["name"]: (
            c["type_before"],
            c["type_after"],
            c["values_before"],
            c["values_after"],
            c["sum_before"],
            c["sum_after"],
        )
        for c in changes["columns"]
    }
    assert told == {
        "n": ("long", "double", 2, 2, 3, 3.5),
        "word": ("string", "string", 2, 2, None, None),
        "gone": ("double", None, 2, 0, 4.0, None),
        "fresh": (None, "string", 0, 1, None, None),
    }
    shown = {c["name"]: c for c in shown_changes(changes, ["n"])["columns"]}
    assert (shown["n"]["sum_before"], shown["n"]["sum_after"], shown["gone"]["sum_before"]) == (None, None, 4.0)


def test_what_is_no_number_has_no_sum_and_many_columns_are_counted(tmp_path: Path, storage: LocalStorage) -> None:
    file = write(tmp_path, "a", n=[float("inf"), float("nan")], flag=[True, False], blob=[b"\x00", b"\xff"])
    assert {s.name: s.total for s in summarise(storage, [file])} == {
        "__time": None,
        "n": None,
        "flag": None,
        "blob": None,
    }
    many = [ColumnSummary(name=f"c{n:03}", type="long", values=1, checksum=n) for n in range(MAX_COLUMNS + 50)]
    changes = changed_columns(many, [])
    assert (len(changes["columns"]), changes["more"], changes["columns"][0]["name"]) == (MAX_COLUMNS, 50, "c000")


def test_what_is_no_parquet_is_said(tmp_path: Path, storage: LocalStorage) -> None:
    (tmp_path / "a").write_bytes(b"no parquet")
    with pytest.raises(DamagedSegment, match="can't be read as Parquet"):
        summarise(storage, ["a"])
