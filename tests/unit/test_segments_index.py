"""Rows of many batches: whatever was persisted on the way, the segments are those of one batch of all rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.rows import JSON_TYPE, LIST_TYPE, TIME_TYPE, join_rows
from ingestion.segments import index as index_module
from ingestion.segments.batch import write_segments
from ingestion.segments.reader import read_segment
from ingestion.specs.messages.protocol import SegmentFile
from ingestion.specs.offsets import expanded
from tests.support.column_ids import some_ids
from tests.support.desk import DAY_MS, JUNE_MS, Desk, batch_of, numbers, schema_of

METRICS = [
    {"type": "count", "name": "n"},
    {"type": "longSum", "name": "sum", "fieldName": "v"},
    {"type": "doubleSum", "name": "dsum", "fieldName": "v"},
    {"type": "longMin", "name": "min", "fieldName": "v"},
    {"type": "doubleMax", "name": "max", "fieldName": "v"},
    {"type": "longFirst", "name": "first", "fieldName": "v"},
    {"type": "stringLast", "name": "last", "fieldName": "v"},
]
SUMS = METRICS[:5]


# The same segments as of one batch

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "long": (pa.int64(), st.integers(-3, 3) | st.sampled_from([2**53 + 1, 2**53])),
    "double": (pa.float64(), st.sampled_from([0.5, 1.0, 2.0, float("nan"), 2.0**53])),
    "string": (pa.string(), st.sampled_from(["", "a", "b", "1", "é", "\U0001f600", "\uffff"])),
    "boolean": (pa.bool_(), st.booleans()),
    "list": (LIST_TYPE, st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2)),
    "json": (JSON_TYPE, st.sampled_from(['{"a":1}', "[1]", '"a"'])),
    "nulls": (pa.string(), st.none()),
}
TIMES = st.sampled_from([0, 1, 2, 60_000, DAY_MS - 1, DAY_MS, 40 * DAY_MS]) | st.integers(0, 3 * DAY_MS)


@st.composite
def batches(draw: st.DrawFn, rollup: bool) -> tuple[pa.Table, list[int], list[int]]:
    """Rows with dimensions that come, go and change their type; partitions and offsets of all their records."""
    size = draw(st.integers(1, 8))
    times = draw(st.lists(TIMES, min_size=size, max_size=size))
    columns: dict[str, pa.Array] = {}
    for name in draw(st.permutations(["a", "__row", "records"])):
        if draw(st.booleans()):
            kind, of_kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
            held = draw(st.lists(st.none() | of_kind, min_size=size, max_size=size))
            columns[name] = pa.array(held, pa.string()).cast(kind) if kind == JSON_TYPE else pa.array(held, kind)
    values = draw(st.lists(st.none() | st.integers(-5, 5), min_size=size, max_size=size))
    columns |= {
        "n": pa.array([1] * size),
        "sum": pa.array(values, pa.int64()),
        "dsum": pa.array(values, pa.float64()),
        "min": pa.array(values, pa.int64()),
        "max": pa.array(values, pa.float64()),
        "first": pa.array(values, pa.int64()),
        "last": pa.array([None if v is None else str(v) for v in values], pa.string()),
    }
    if rollup:
        happened = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
        columns["__record_time"] = pa.array(happened, pa.int64()).view(TIME_TYPE)
    partitions = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    return batch_of(times, **columns), partitions, draw(st.lists(st.integers(1, 3), min_size=size, max_size=size))


@settings(max_examples=15)
@given(data=st.data(), rollup=st.booleans(), in_memory=st.integers(1, 20), most=st.integers(1, 12))
def test_the_segments_are_those_of_one_batch(
    data: st.DataObject, rollup: bool, in_memory: int, most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("index")
    schema = schema_of(rollup, METRICS)
    tuning: dict[str, Any] = {"maxRowsInMemory": in_memory, "maxRowsPerSegment": most, "maxPendingPersists": 1}
    desk = Desk(place, schema, **tuning)
    tables: list[pa.Table] = []
    partitions: list[int] = []
    offsets: list[int] = []
    at = {0: 0, 1: 0, 2: 0}
    for table, of, steps in data.draw(st.lists(batches(rollup), min_size=1, max_size=8)):
        here = []
        for partition, step in zip(of, steps, strict=True):
            at[partition] += step
            here.append(at[partition])
        desk.index.add(table, np.array(of), np.array(here))
        tables.append(table.set_column(0, "__row", pa.array(np.arange(len(table)) + len(partitions))))
        partitions += of
        offsets += here
    expected = write_segments(
        join_rows(tables), np.array(partitions), np.array(offsets), schema=schema, version="v",
        storage=desk.storage, scratch=place / "other", ids=some_ids(), max_rows_per_segment=most,
    )  # fmt: skip
    files = desk.write()
    assert [_told(f) for f in files] == [_told(f) for f in expected]
    for file, other in zip(files, expected, strict=True):
        found, wanted = (read_segment(desk.storage, f.path) for f in (file, other))
        assert found.schema == wanted.schema
        assert repr(found.to_pylist()) == repr(wanted.to_pylist())  # NaN is not NaN, but looks like it
    assert [_told(f) for f in desk.write()] == [_told(f) for f in expected]
    desk.index.close()
    assert list(desk.scratch.rglob("*")) == []


def _told(file: SegmentFile) -> dict[str, Any]:
    return file.model_dump(exclude={"path", "sha256", "size_bytes"})


RECORDS = st.lists(
    st.tuples(
        st.integers(0, 3).map(lambda h: h * DAY_MS // 2),  # the row's time
        st.integers(0, 50),  # when it happened, later than that
        st.sampled_from(["x", "y", None]),
        st.none() | st.integers(-(2**62), 2**62),
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=30)
@given(records=RECORDS, size=st.integers(1, 20), in_memory=st.integers(1, 40))
def test_rollup_adds_up(
    records: list[tuple[int, int, str | None, int | None]],
    size: int,
    in_memory: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """What is expected is reckoned here, record by record; sums wrap around."""
    desk = Desk(tmp_path_factory.mktemp("rollup"), schema_of(True, METRICS), maxRowsInMemory=in_memory)
    for start in range(0, len(records), size):
        some = records[start : start + size]
        values = [r[3] for r in some]
        longs = pa.array(values, pa.int64())
        desk.add(
            batch_of(
                [r[0] for r in some],
                d=pa.array([r[2] for r in some], pa.string()),
                n=pa.array([1] * len(some)),
                sum=longs,
                dsum=pa.array([None if v is None else float(v % 8) for v in values], pa.float64()),
                min=longs,
                max=longs.cast(pa.float64(), safe=False),
                first=longs,
                last=longs.cast(pa.string()),
                __record_time=pa.array([r[0] + r[1] for r in some], pa.int64()).view(TIME_TYPE),
            )
        )
    files = desk.write()
    found = {(r.pop("__time"), r.pop("d")): r for r in desk.read(files)}
    keys = {(r[0], r[2]) for r in records}
    assert len(found) == len(keys) == sum(f.rows for f in files)
    for time, d in keys:
        mine = [r for r in records if (r[0], r[2]) == (time, d)]
        held = [r[3] for r in mine if r[3] is not None]
        in_order = sorted(mine, key=lambda r: r[1])
        assert found[_utc(JUNE_MS + time), d] == {
            "n": len(mine),
            "sum": (sum(held) + 2**63) % 2**64 - 2**63 if held else None,
            "dsum": float(sum(v % 8 for v in held)) if held else None,
            "min": min(held, default=None),
            "max": max(map(float, held), default=None),
            "first": in_order[0][3],
            "last": None if in_order[-1][3] is None else str(in_order[-1][3]),
        }
    for file in files:
        held_offsets = sorted(expanded(file.offsets[0]))
        assert held_offsets == [
            i for i, r in enumerate(records) if file.interval_start <= _utc(JUNE_MS + r[0]) < file.interval_end
        ]
    desk.index.close()


def _utc(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def test_any_is_one_of_the_values_that_are_there(desk: Callable[..., Desk]) -> None:
    metrics = [{"type": "longAny", "name": "m", "fieldName": "v"}]
    one = desk(schema_of(True, metrics), maxRowsInMemory=1)
    for value in (None, 5, None, 7):
        one.add(batch_of([0], m=pa.array([value], pa.int64())))
    assert one.read(one.write())[0]["m"] in (5, 7)


def test_pieces_of_a_long_interval_know_their_records(desk: Callable[..., Desk]) -> None:
    """Rows of two records each, of different batches; the last row's second record comes with the last batch."""
    one = desk(schema_of(True, SUMS), maxRowsInMemory=4, maxRowsPerSegment=3)
    for first in (0, 4, 0, 4):
        rows = range(first, first + 4)
        ones = pa.array([1] * 4)
        values = dict.fromkeys(("n", "sum", "min"), ones) | {n: ones.cast(pa.float64()) for n in ("dsum", "max")}
        one.add(batch_of([r * 1000 for r in rows], **values))
    files = one.write()
    assert [f.rows for f in files] == [3, 3, 2]
    assert [f.offsets[0] for f in files] == [
        [(0, 3), (8, 11)],
        [(3, 6), (11, 14)],
        [(6, 8), (14, 16)],
    ]
    assert [r["n"] for r in one.read(files)] == [2] * 8


def test_records_without_rows_are_in_no_segment(desk: Callable[..., Desk]) -> None:
    """Of four records two became rows; of the next two none."""
    one = desk(maxRowsInMemory=2)
    one.add(batch_of([5, 3]).set_column(0, "__row", pa.array([0, 3], pa.int32())), records=4)
    one.add(batch_of([]), records=2)
    one.add(batch_of([4]))
    (file,) = one.write()
    assert file.offsets == {0: [(0, 1), (3, 4), (6, 7)]}


# Bounds


def test_nothing_is_kept_on_disk_before_it_must(desk: Callable[..., Desk]) -> None:
    one = desk(maxRowsInMemory=101)
    one.add(numbers(100))
    one.settle()
    assert one.spilled == []
    assert (one.index.rows, one.index.full) == (100, False)
    one.add(numbers(1, seed=2))
    one.settle()
    assert len(one.spilled) == 1
    assert (one.index.rows, one.index.size_bytes) == (101, 0)
    assert one.write()[0].rows == 101


def test_bytes_in_memory_are_bounded(desk: Callable[..., Desk]) -> None:
    """Half of the bound is for what gathers, half for what is being persisted; a batch is taken in whole."""
    one = desk(maxBytesInMemory=1024 * 1024)
    for seed in range(40):
        one.add(batch := numbers(5_000, seed))
        assert one.index.size_bytes <= 1024 * 1024 + 2 * (batch.nbytes + 8 * 5_000)
    one.settle()
    assert len(one.spilled) > 3
    assert one.write()[0].rows == 200_000


@pytest.mark.parametrize("waiting", [0, 2])
def test_who_adds_waits_for_persists(desk: Callable[..., Desk], waiting: int) -> None:
    """Every batch is persisted: one at a time, and as many as may wait are in memory."""
    one = desk(maxRowsInMemory=1, maxPendingPersists=waiting)
    for seed in range(30):
        one.add(batch := numbers(2_000, seed))
        assert one.index.size_bytes <= (1 + waiting) * (batch.nbytes + 8 * 2_000)
    assert one.write()[0].rows == 60_000


def test_a_persist_every_so_often(tmp_path: Path) -> None:
    now = [0.0]
    one = Desk(tmp_path, schema_of(), clock=lambda: now[0], intermediatePersistPeriod="PT1M")
    for second, files in ((0.0, 0), (59.0, 0), (60.0, 1), (119.0, 1), (120.0, 2)):
        now[0] = second
        one.add(numbers(10, int(second)))
        one.settle()
        assert len(one.spilled) == files, second
    one.index.close()


@pytest.mark.parametrize(
    ("tuning", "times"),
    [
        ({"maxRowsPerSegment": 3}, [0, 1, DAY_MS, DAY_MS + 1, DAY_MS + 2]),
        ({"maxTotalRows": 5}, [0, DAY_MS, 2 * DAY_MS, 3 * DAY_MS, 4 * DAY_MS]),
        ({}, [day * DAY_MS for day in range(index_module.MAX_INTERVALS + 1)]),
    ],
)
@pytest.mark.parametrize("in_memory", [1, 1_000])
def test_when_it_is_full(desk: Callable[..., Desk], tuning: dict[str, int], times: list[int], in_memory: int) -> None:
    one = desk(**tuning, maxRowsInMemory=in_memory)
    for time in times:
        assert not one.index.full
        one.add(batch_of([time]))
    assert one.index.full
    one.index.clear()
    assert not one.index.full


def test_it_is_full_when_offsets_are_in_too_many_pieces(desk: Callable[..., Desk]) -> None:
    """Every second offset is a range of its own; so is each of two partitions' that alternate, or of two days'."""
    count = index_module.MAX_RANGES + 1
    whole = np.zeros(count, np.int64)
    same_day, two_days = np.zeros(count, np.int64), np.arange(count) % 2 * DAY_MS
    for partitions, offsets, times in (
        (whole, np.arange(count) * 2, same_day),
        (np.arange(count) % 2, np.arange(count) // 2, same_day),
        (whole, np.arange(count), two_days),
    ):
        one = desk()
        rows = pa.table(
            {"__row": pa.array(np.arange(count, dtype=np.int32)), "__time": pa.array(times + JUNE_MS).view(TIME_TYPE)}
        )
        one.index.add(rows, partitions, offsets)
        assert one.index.full


def test_rows_are_counted_after_rollup_once_they_are_persisted(desk: Callable[..., Desk]) -> None:
    one = desk(schema_of(True, METRICS[:1]), maxRowsInMemory=10)
    one.add(batch_of([0] * 9, n=pa.array([1] * 9)))
    assert one.index.rows == 9
    one.add(batch_of([0], n=pa.array([1])))
    one.settle()
    assert one.index.rows == 1
    assert one.read(one.write()) == [{"__time": _utc(JUNE_MS), "n": 10}]


@pytest.mark.parametrize("rollup", [False, True])
def test_many_runs_are_merged_step_by_step(desk: Callable[..., Desk], rollup: bool) -> None:
    """150 runs that all overlap: in the end few are left, and no row is lost."""
    one = desk(schema_of(rollup), maxRowsInMemory=1)
    for n in range(150):
        one.add(batch_of([n % 7, DAY_MS - n], n=pa.array([n, -n])))
    files = one.write()
    assert len(one.spilled) <= 16
    rows = one.read(files)
    assert sorted(r["n"] for r in rows) == sorted([*range(150), *(-n for n in range(150))])
    assert [r["__time"] for r in rows] == sorted(r["__time"] for r in rows)
    assert [f.offsets for f in files] == [{0: [(0, 1), (2, 300)]}, {0: [(1, 2)]}]


def test_after_clear_it_begins_anew(desk: Callable[..., Desk]) -> None:
    one = desk(maxRowsInMemory=10)
    one.add(numbers(25).append_column("gone", pa.array(["x"] * 25)))
    one.index.clear()
    assert (one.index.rows, one.index.size_bytes, one.spilled) == (0, 0, [])
    assert one.write() == []
    one.add(batch_of([1], kept=pa.array(["y"])))
    (file,) = one.write()
    assert [c.name for c in file.columns] == ["__time", "kept"]
    assert file.offsets == {0: [(25, 26)]}
