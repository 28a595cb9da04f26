"""What DuckDB can reach once it is locked, and how the two parsers agree: on files that pyarrow has written."""

from __future__ import annotations

from pathlib import Path

import duckdb
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.query.engine import open_locked, open_unlocked, read_checked
from ingestion.specs.messages.sql import SqlColumn, SqlOrder, SqlStatement, SqlTable

ASKED = SqlStatement(sql="SELECT 1", time_s=10, memory_bytes=2**28, temporary_bytes=2**20)
COLUMNS = [
    SqlColumn(id=1, name="__time", type="TIMESTAMPTZ"),
    SqlColumn(id=2, name='a "b"', type="VARCHAR"),
    SqlColumn(id=3, name="secret", type="BIGINT", masked=True),
    SqlColumn(id=9, name="later", type="DOUBLE"),
]


def write(place: Path) -> int:
    fields = [("t", pa.timestamp("us", "UTC"), 1), ("x", pa.string(), 2), ("secret", pa.int64(), 3)]
    schema = pa.schema([pa.field(n, t, metadata={"PARQUET:field_id": str(i)}) for n, t, i in fields])
    pq.write_table(pa.table([pa.array([0], fields[0][1]), ["x"], [42]], schema=schema), place)
    return place.stat().st_size


@pytest.fixture
def engine(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    """With one of two files."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "scratch").mkdir()
    size = write(tmp_path / "deep" / "a.parquet")
    write(tmp_path / "deep" / "b.parquet")
    order = SqlOrder(
        deep_storage=str(tmp_path / "deep"),
        tables=[SqlTable(columns=COLUMNS, files=[("a.parquet", size)]), SqlTable(columns=COLUMNS, files=[])],
        scratch=str(tmp_path / "scratch"),
        format="json",
        max_rows=10,
    )
    return open_locked(ASKED, order)


def test_columns_are_found_by_id_and_masked_ones_are_null(engine: duckdb.DuckDBPyConnection) -> None:
    assert engine.sql('SELECT "a ""b""", secret, later FROM __headgate_t0').fetchall() == [("x", None, None)]
    described = engine.sql("SELECT * FROM __headgate_t1")
    assert (described.columns, described.fetchall()) == (["__time", 'a "b"', "secret", "later"], [])
    plan = engine.sql("EXPLAIN SELECT * FROM __headgate_t0 WHERE secret = 42").fetchall()[0][1]
    assert "c3" not in plan, "the values are not even read"


def test_a_database_that_forks_inherit_has_no_threads() -> None:
    """A fork has none of its parent's threads: DuckDB would wait for them, or end."""
    before = psutil.Process().num_threads()
    ready = open_unlocked(external=True)
    ready.sql("SELECT sum(range) FROM range(1000)").fetchall()
    assert psutil.Process().num_threads() == before
    ready.execute("SET threads = 2")
    assert psutil.Process().num_threads() > before, "this is what a query does in its fork"


ATTACKS = [
    "SELECT * FROM read_parquet('{deep}/b.parquet')",
    "SELECT * FROM '{deep}/b.parquet'",
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT * FROM glob('{deep}/*')",
    "COPY (SELECT 1) TO '{deep}/c.parquet'",
    "COPY (SELECT 1) TO '{deep}/a.parquet'",
    "COPY (SELECT 1) TO '/tmp/headgate-attack.csv'",
    "ATTACH '{deep}/x.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '50GB'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET allowed_paths = ['/']",
    "SET temp_directory = '/'",
    "RESET allowed_paths",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_lock_holds_without_the_checks(engine: duckdb.DuckDBPyConnection, tmp_path: Path, attack: str) -> None:
    """Row 32 of the security checklist: should both checks let something through, DuckDB refuses it."""
    before = (tmp_path / "deep" / "a.parquet").read_bytes()
    statement = attack.format(deep=tmp_path / "deep")
    try:
        found = engine.execute(statement).fetchall()
    except duckdb.Error:
        found = []
    assert found == []
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["a.parquet", "b.parquet"]
    assert (tmp_path / "deep" / "a.parquet").read_bytes() == before


SAME = """
SELECT 7 / 2, 7 // 2, -7 % 3, 2 ** 3, 1e400 > 1, 0.1 + 0.2, 1::DECIMAL(4,2) / 3;
SELECT date_trunc('week', TIMESTAMP '2026-11-28 10:00:00'), date_part('dow', DATE '2026-11-28'), DATE
  '2026-01-31' + INTERVAL 1 MONTH;
SELECT strftime(TIMESTAMP '2026-11-28 10:00:00', '%H:%M'), strptime('28.11.2026', '%d.%m.%Y'), epoch_ms(1000),
  epoch_ms(TIMESTAMP '2026-01-01');
SELECT date_diff('day', DATE '2026-01-01', DATE '2026-02-01'), datediff('month', DATE '2026-01-01', DATE
  '2026-02-01'), date_add(DATE '2026-01-01', INTERVAL 1 DAY);
SELECT substring('headgate', 2, 3), 'headgate'[2:3], left('abc', 2), position('c' IN 'abc'),
  regexp_replace('aab', 'a', 'x', 'g'), split_part('a-b', '-', 2);
SELECT [1, 2, 3][1], [1, 2, 3][-1], {'a': 1}.a, MAP {'k': 'v'}['k'], list_transform([1, 2], lambda x: x * 2),
  '{"a": [1]}' -> '$.a[0]', '{"a": "b"}' ->> 'a';
SELECT x, count(*), string_agg(y, '-' ORDER BY y DESC), list(y ORDER BY y), quantile_cont(z, 0.5), arg_max(y, z)
  FROM (VALUES (1, 'a', 1.5), (1, 'b', 2.5), (2, 'c', 3)) v(x, y, z) GROUP BY x ORDER BY x;
SELECT x, row_number() OVER (ORDER BY x DESC), sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT
  ROW), lag(x, 1, 0) OVER (ORDER BY x) FROM range(4) r(x) ORDER BY ALL;
SELECT 'a' LIKE 'A', 'a' ILIKE 'A', 'ab' SIMILAR TO 'a.', 'a' GLOB '*', NULL IS DISTINCT FROM 1, coalesce(NULL,
  2), nullif(1, 1), if(true, 1, 2), greatest(1, 2);
SELECT trim('  a '), ltrim('xa', 'x'), length('ä'), strlen('ä'), concat('a', NULL, 'b'), 'a' || 'b', chr(65),
  md5('a'), lpad('1', 3, '0'), round(2.5), round(1.256, 2), log(100), ln(1);
SELECT extract(epoch FROM TIMESTAMP '2026-01-01'), extract(year FROM DATE '2026-01-01'), TIMESTAMPTZ '2026-01-01
  00:00:00+01', TIMESTAMP '2026-01-01' AT TIME ZONE 'Europe/Berlin', time_bucket(INTERVAL '15 minutes',
  TIMESTAMP '2026-01-01 10:17:00'), to_timestamp(0), make_date(2026, 1, 2);
SELECT DISTINCT ON (x) x, y FROM (VALUES (1, 2), (1, 1)) v(x, y) ORDER BY x, y;
SELECT a.x FROM range(3) a(x) LEFT JOIN range(2) b(x) ON a.x = b.x WHERE b.x IS NULL;
SELECT x FROM range(3) a(x) EXCEPT SELECT x FROM range(1) b(x) ORDER BY x DESC LIMIT 1 OFFSET 1;
WITH a(p, q) AS (SELECT 1, 2), b AS MATERIALIZED (SELECT * FROM a) SELECT b.*, b.p + 1 AS r FROM b;
SELECT sum(x) FILTER (x > 1), count(DISTINCT x % 2), bool_or(x > 1), any_value(x), max(x, 2), median(x),
  mode(1), stddev_pop(x) FROM range(4) r(x);
"""


@pytest.mark.parametrize("sql", SAME.strip().removesuffix(";").split(";\n"))
def test_what_runs_means_what_was_written(engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    """sqlglot writes another text from its tree."""
    statement, _ = read_checked(ASKED.model_copy(update={"sql": sql}))
    assert engine.sql(statement.sql).fetchall() == engine.sql(sql).fetchall()
