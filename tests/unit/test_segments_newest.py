"""The newest rows of segments, read by the process's own functions: which they are, how they look, what is said of
files that are not what was registered.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.rows import JSON_TYPE, LIST_TYPE
from ingestion.segments.newest_rows import open_locked_engine, read_newest
from ingestion.segments.numbered_files import NumberedFiles
from ingestion.specs.messages.deep_storage import RegisteredFile
from ingestion.specs.messages.newest_rows import MAX_TEXT, RowsAnswer, RowsOrder
from ingestion.specs.messages.protocol import SegmentFile
from tests.support.desk import DAY_MS, JUNE_MS, Desk, batch_of, schema_of

DAYS = 5


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, schema_of())


def written(desk: Desk, rows: pa.Table) -> list[SegmentFile]:
    """One segment a day, the latest first."""
    desk.add(rows)
    files = desk.write()
    desk.index.close()
    return sorted(files, key=lambda f: f.max_time, reverse=True)


def asked(desk: Desk, files: list[SegmentFile], limit: int = 100, **order: Any) -> RowsAnswer:
    return read_newest(
        RowsOrder(
            deep_storage=str(desk.deep),
            files=[RegisteredFile(path=f.path, size_bytes=f.size_bytes, sha256=f.sha256) for f in files],
            last_ms=[round(f.max_time.timestamp() * 1000) for f in files],
            limit=limit,
            **{"masked": False, "reading_s": 60.0, **order},
        )
    )


def column(answer: RowsAnswer, name: str) -> list[Any]:
    place = [c.name for c in answer.columns].index(name)
    return [row[place] for row in answer.rows]


@pytest.fixture
def days(desk: Desk) -> list[SegmentFile]:
    """Rows 0 to 49, ten a day, an hour apart."""
    times = [day * DAY_MS + hour * 3_600_000 for day in range(DAYS) for hour in range(10)]
    return written(desk, batch_of(times, n=pa.array(range(50))))


def test_the_latest_come_first_and_no_more_files_are_read_than_they_need(desk: Desk, days: list[SegmentFile]) -> None:
    answer = asked(desk, days, limit=12)
    assert column(answer, "n") == list(range(49, 37, -1))
    assert column(answer, "__time")[0] == "2025-06-05T09:00:00.000Z"
    assert [(c.name, c.types) for c in answer.columns] == [("__time", ["timestamp"]), ("n", ["long"])]
    assert (answer.problems, answer.unread_ms, answer.files_read) == ([], None, 2)


def test_a_window_is_half_open(desk: Desk, days: list[SegmentFile]) -> None:
    start, end = JUNE_MS + DAY_MS, JUNE_MS + 2 * DAY_MS
    assert column(asked(desk, days, start_ms=start, end_ms=end), "n") == list(range(19, 9, -1))
    assert column(asked(desk, days, start_ms=start, end_ms=start), "n") == []


def test_files_that_are_not_what_was_registered_are_named_and_the_others_shown(
    desk: Desk, days: list[SegmentFile]
) -> None:
    gone, torn, changed, *whole = days
    (desk.deep / gone.path).unlink()
    content = (desk.deep / torn.path).read_bytes()
    (desk.deep / torn.path).write_bytes(content[:-1])
    content = (desk.deep / changed.path).read_bytes()
    (desk.deep / changed.path).write_bytes(b"PAR2" + content[4:])
    answer = asked(desk, days)
    assert [p.path for p in answer.problems] == [gone.path, torn.path, changed.path]
    first, second, third = (p.problem for p in answer.problems)
    assert first == "does not exist"
    assert second == f"has {torn.size_bytes - 1} bytes, not {torn.size_bytes}"
    assert third.startswith("has the SHA-256")
    assert column(answer, "n") == list(range(19, -1, -1))
    assert answer.files_read == len(whole)


def test_a_file_that_is_no_parquet_although_registered_so_is_named(desk: Desk, days: list[SegmentFile]) -> None:
    (desk.deep / "d/bad").write_bytes(b"bad")
    sha256 = hashlib.sha256(b"bad").hexdigest()
    bad = days[0].model_copy(update={"path": "d/bad", "size_bytes": 3, "sha256": sha256})
    answer = asked(desk, [bad, *days])
    assert [p.path for p in answer.problems] == ["d/bad"]
    assert column(answer, "n")[0] == 49


def test_every_type_is_shown_as_it_is_stored(desk: Desk) -> None:
    files = written(
        desk,
        batch_of(
            [0, 1, 2],
            text=pa.array(["é", "", None]),
            many=pa.array([["a", None], [], None], LIST_TYPE),
            large=pa.array([2**62, 0, None]),
            real=pa.array([0.5, math.inf, math.nan]),
            nested=pa.array(['{"a": [1]}', "null", None], pa.string()).cast(JSON_TYPE),
            TEXT=pa.array([None, "differs in case", None]),
        ),
    )
    answer = asked(desk, files)
    assert {c.name: c.types for c in answer.columns} == {
        "__time": ["timestamp"],
        "text": ["string"],
        "many": ["strings"],
        "large": ["long"],
        "real": ["double"],
        "nested": ["json"],
        "TEXT": ["string"],
    }
    assert column(answer, "text") == [None, "", "é"]
    assert column(answer, "TEXT") == [None, "differs in case", None]
    assert column(answer, "many") == [None, [], ["a", None]]
    assert column(answer, "large") == [None, 0, 2**62]
    assert column(answer, "real") == ["NaN", "Infinity", 0.5]
    assert column(answer, "nested") == [None, "null", '{"a": [1]}']


def test_what_is_masked_is_left_in_its_file(desk: Desk) -> None:
    secret = pa.array(["secret", None])
    files = written(
        desk,
        batch_of(
            [0, 1],
            text=secret,
            many=pa.array([["secret"], None], LIST_TYPE),
            nested=pa.array(['"secret"', None], pa.string()).cast(JSON_TYPE),
            n=pa.array([1, 2]),
        ),
    )
    answer = asked(desk, files, masked=True)
    for name in ("text", "many", "nested"):
        assert column(answer, name) == [None, {"masked": True}]
    assert column(answer, "n") == [2, 1]
    assert "secret" not in answer.model_dump_json()


def test_large_values_are_cut_and_their_size_is_told(desk: Desk) -> None:
    files = written(
        desk,
        batch_of(
            [0, 1, 2],
            text=pa.array(["ü" * 100_000, "x" * MAX_TEXT, "x" * (MAX_TEXT + 1)]),
            many=pa.array([["y" * 5_000], ["z"], None], LIST_TYPE),
        ),
    )
    answer = asked(desk, files)
    assert column(answer, "text") == [
        {"start": "x" * MAX_TEXT, "size_bytes": MAX_TEXT + 1},
        "x" * MAX_TEXT,
        {"start": "ü" * MAX_TEXT, "size_bytes": 200_000},
    ]
    assert column(answer, "many")[2]["size_bytes"] == 5_004  # as JSON: with brackets and quotes


def test_columns_that_only_some_files_have_are_null_in_the_others(tmp_path: Path) -> None:
    desk = Desk(tmp_path, schema_of())
    old = written(desk, batch_of([0], a=pa.array(["old"]), b=pa.array([1])))
    new = written(Desk(tmp_path, schema_of()), batch_of([DAY_MS], a=pa.array([2]), c=pa.array([True])))
    answer = asked(desk, [*new, *old])
    assert {c.name: c.types for c in answer.columns} == {
        "__time": ["timestamp"],
        "a": ["long", "string"],
        "b": ["long"],
        "c": ["boolean"],
    }
    assert (column(answer, "a"), column(answer, "b"), column(answer, "c")) == ([2, "old"], [None, 1], [True, None])


def test_when_the_time_is_up_it_says_from_where_on_nothing_was_read(desk: Desk, days: list[SegmentFile]) -> None:
    answer = asked(desk, days, reading_s=-1.0)
    assert (answer.rows, answer.unread_ms) == ([], round(days[0].max_time.timestamp() * 1000))


def test_deep_storage_that_makes_no_sense_is_refused(desk: Desk) -> None:
    order = RowsOrder(deep_storage="s3://", files=[], last_ms=[], limit=1, masked=False, reading_s=1)
    assert read_newest(order).refusal


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_parquet('{other}')",
        "SELECT * FROM read_parquet('segment://1')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY (SELECT 1) TO 'segment://0'",
        "COPY (SELECT 1) TO '{folder}/written.parquet'",
        "SET memory_limit = '50GB'",
        "SET enable_external_access = true",
        "SET allowed_paths = ['{other}']",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '{folder}/made.db'",
    ],
)
def test_duckdb_can_read_the_files_of_the_order_and_do_nothing_else(tmp_path: Path, statement: str) -> None:
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), other)
    engine = open_locked_engine(NumberedFiles(), 1)
    with pytest.raises(duckdb.Error):
        engine.execute(statement.format(other=other, folder=tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.parquet"]
