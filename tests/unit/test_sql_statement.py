"""What of a user's SQL is taken and what is refused: the attack list, and statements that must go on to work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingestion.query.engine import read_checked
from ingestion.query.statement import RESERVED, Refused
from ingestion.specs.messages.sql import SqlStatement, SqlTableUse

ATTACKS = {
    # files
    "SELECT * FROM read_csv('/etc/passwd')": "READ_CSV",
    "SELECT * FROM read_csv_auto('/etc/passwd')": "Only datasources",
    "SELECT * FROM read_parquet('/x.parquet')": "Only datasources",
    "SELECT * FROM parquet_scan('/x.parquet')": "Only datasources",
    "SELECT * FROM parquet_metadata('/x.parquet')": "Only datasources",
    "SELECT * FROM read_json('/x.json')": "Only datasources",
    "SELECT * FROM read_text('/etc/passwd')": "Only datasources",
    "SELECT * FROM read_blob('/etc/passwd')": "Only datasources",
    "SELECT * FROM sniff_csv('/etc/passwd')": "Only datasources",
    "SELECT * FROM glob('/*')": "Only datasources",
    "FROM glob('/*')": "Only datasources",
    "SELECT * FROM sqlite_scan('a.db', 't')": "Only datasources",
    "SELECT * FROM postgres_scan('host=x', 'public', 't')": "Only datasources",
    "SELECT (SELECT content FROM read_text('/etc/passwd'))": "Only datasources",
    "SELECT * FROM t WHERE x IN (SELECT content FROM read_text('/etc/passwd'))": "Only datasources",
    "WITH a AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM a": "Only datasources",
    "SELECT * FROM t, LATERAL read_text(t.path)": "",
    "SELECT * FROM t, read_text('/etc/passwd')": "Only datasources",
    "SELECT * FROM (FROM read_text('/etc/passwd'))": "Only datasources",
    # statements
    "COPY (SELECT 1) TO '/tmp/x.csv'": "Only SELECT",
    "COPY t TO '/tmp/x.csv'": "Only SELECT",
    "ATTACH '/tmp/x.db'": "Only SELECT",
    "DETACH x": "Only SELECT",
    "PRAGMA database_list": "Only SELECT",
    "SET memory_limit = '50GB'": "Only SELECT",
    "RESET memory_limit": "",
    "INSTALL httpfs": "Only SELECT",
    "LOAD httpfs": "Only SELECT",
    "CALL pragma_version()": "Only SELECT",
    "CREATE TABLE x AS SELECT 1": "Only SELECT",
    "CREATE MACRO f(a) AS a": "Only SELECT",
    "CREATE SECRET s (TYPE s3)": "",
    "INSERT INTO t VALUES (1)": "Only SELECT",
    "DELETE FROM t": "Only SELECT",
    "DROP VIEW t": "Only SELECT",
    "EXPORT DATABASE '/tmp/x'": "",
    "USE x": "Only SELECT",
    "SHOW TABLES": "Only SELECT",
    "DESCRIBE t": "Only SELECT",
    "SUMMARIZE t": "Only SELECT",
    "PIVOT t ON x USING sum(y)": "Only SELECT",
    "CHECKPOINT": "Only SELECT",
    "VACUUM": "Only SELECT",
    "BEGIN": "Only SELECT",
    "EXECUTE x": "Only SELECT",
    "SELECT 1; SELECT 2": "Send one statement",
    "SELECT 1; COPY t TO '/tmp/x.csv'": "Send one statement",
    "SELECT 1 INTO x": "not allowed",
    "EXPLAIN COPY t TO '/tmp/x.csv'": "Only SELECT",
    "EXPLAIN ANALYZE SET x = 1": "Only SELECT",
    "": "empty",
    ";": "empty",
    "-- SELECT 1": "empty",
    "/* SELECT 1 */": "empty",
    "SELECT 1 /*; COPY t TO 'x'": "",
    # functions
    "SELECT getenv('AWS_SECRET_ACCESS_KEY')": "getenv() is not allowed",
    "SELECT \"getenv\"('HOME')": "getenv() is not allowed",
    "SELECT current_setting('memory_limit')": "current_setting() is not allowed",
    "SELECT main.current_setting('memory_limit')": "",
    "SELECT system.main.current_setting('x')": "",
    "SELECT nextval('s')": "not allowed",
    "SELECT getvariable('x')": "not allowed",
    "SELECT write_log('x')": "not allowed",
    "SELECT current_query()": "not allowed",
    "SELECT duckdb_secrets()": "not allowed",
    "SELECT * FROM query('SELECT 1')": "Only datasources",
    "SELECT * FROM query_table('t')": "Only datasources",
    "SELECT * FROM json_execute_serialized_sql('x')": "Only datasources",
    "SELECT * FROM duckdb_settings()": "Only datasources",
    "FROM duckdb_secrets()": "Only datasources",
    "SELECT * FROM pragma_table_info('t')": "Only datasources",
    "SELECT list_aggregate([1], 'sum')": "not allowed",
    "SELECT x.getenv() FROM t": "not allowed",
    "SELECT 'HOME'.getenv()": "",
    "SELECT sum(x) OVER (PARTITION BY getenv('A')) FROM t": "not allowed",
    "SELECT x FROM t ORDER BY getenv('A')": "not allowed",
    "SELECT x FROM t LIMIT (SELECT getenv('A')::INT)": "",
    "SELECT list_transform(['HOME'], x -> getenv(x))": "not allowed",
    "SELECT * FROM t JOIN u ON getenv('A') = t.x": "not allowed",
    "SELECT * REPLACE (getenv('A') AS x) FROM t": "not allowed",
    "SELECT * FROM (VALUES (getenv('A')))": "not allowed",
    # names
    f"SELECT * FROM {RESERVED}t0": "reserved",
    f"SELECT * FROM t, {RESERVED}t0 AS u": "reserved",
    f'SELECT * FROM t, "{RESERVED.upper()}T0"': "reserved",
    f"WITH {RESERVED}t0 AS (SELECT 1) SELECT * FROM t": "reserved",
    f"SELECT * FROM t AS {RESERVED}t1": "reserved",
    "SELECT * FROM a.b.c": "team.datasource",
    "SELECT * FROM t AT (VERSION => 1)": "without more",
    "SELECT * FROM t TABLESAMPLE 10%": "",
    "SELECT * FROM t USING SAMPLE 10": "",
    "SELECT ?": "not allowed",
    "SELECT $1": "not allowed",
    "SELECT $name": "not allowed",
    "SELECT " + "(" * 100 + "1" + ")" * 100: "nested",
    "SELECT 1 " + " " * 100_000: "more than",
    "SELECT * FROM " + ", ".join(f"t{n}" for n in range(60)): "50 are allowed",
    "SELECT \ud800": "",
    "SELECT 'a": "can't be read",
}
LEGITIMATE = """
SELECT carrier, count(*) AS n, sum(delay) FILTER (WHERE delay > 0) FROM flights GROUP BY ALL HAVING n > 1 ORDER
  BY 2 DESC NULLS LAST LIMIT 3;
FROM flights;
FROM flights SELECT carrier;
VALUES (1), (2);
SELECT * EXCLUDE (carrier), f.* FROM flights f QUALIFY row_number() OVER (PARTITION BY carrier ORDER BY __time)
  = 1;
WITH RECURSIVE c AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM c WHERE x < 5) SELECT sum(x) FROM c;
SELECT a.carrier FROM flights a LEFT JOIN "my-team".flights b USING (carrier) WHERE a.delay IN (SELECT
  max(delay) FROM flights);
SELECT date_trunc('hour', __time) AS hour, approx_count_distinct(carrier), quantile_cont(delay, 0.9) FROM
  flights GROUP BY 1;
SELECT time_bucket(INTERVAL '5 minutes', __time), strftime(__time, '%Y'), extract(hour FROM __time),
  epoch_ms(__time) FROM flights;
SELECT CASE WHEN delay > 0 THEN 'late' ELSE 'ok' END, CAST(delay AS DOUBLE), TRY_CAST(carrier AS DATE),
  carrier::VARCHAR FROM flights;
SELECT j ->> '$.a', json_extract_string(j, '$.b'), tags[1], tags[1:2], len(tags) FROM flights;
SELECT unnest(tags) AS tag, count(*) FROM flights GROUP BY 1;
SELECT tag FROM flights, unnest(tags) AS u(tag);
SELECT list_transform(tags, x -> upper(x)), list_filter(tags, lambda x: x > 'a') FROM flights;
SELECT arg_max(carrier, delay), string_agg(carrier, ', ' ORDER BY delay), first(carrier), list(DISTINCT carrier)
  FROM flights;
SELECT lag(delay) OVER w, rank() OVER w, sum(delay) OVER (ORDER BY __time ROWS BETWEEN 1 PRECEDING AND CURRENT
  ROW) FROM flights WINDOW w AS (ORDER BY __time);
SELECT now() - INTERVAL 1 DAY, current_date, current_timestamp, today();
SELECT carrier FROM flights UNION ALL BY NAME SELECT carrier FROM flights ORDER BY ALL;
SELECT carrier, grouping(carrier), sum(delay) FROM flights GROUP BY ROLLUP (carrier);
SELECT carrier FROM flights GROUP BY GROUPING SETS ((carrier), ());
SELECT DISTINCT ON (carrier) carrier, delay FROM flights ORDER BY carrier, delay;
SELECT COLUMNS('d.*') FROM flights;
SELECT * REPLACE (delay * 2 AS delay), * RENAME (delay AS d) FROM flights;
SELECT x FROM range(10) r(x) WHERE x BETWEEN 1 AND 3 AND x IS DISTINCT FROM 2 AND NOT x = 4;
SELECT carrier FROM flights WHERE carrier ILIKE 'a%' OR carrier SIMILAR TO 'b.*' OR regexp_matches(carrier, 'c')
  OR carrier IS NULL;
SELECT coalesce(carrier, 'none'), nullif(delay, 0), greatest(1, delay), substring(carrier, 1, 2), trim(carrier),
  a || b, 7 // 2, 7 % 2 FROM flights;
SELECT * FROM flights a ASOF JOIN flights b ON a.delay >= b.delay;
SELECT * FROM flights a SEMI JOIN flights b USING (carrier);
SELECT {'a': 1, 'b': [1, 2]}, [1, 2], MAP {'a': 1}, DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:00', 1e3, -1,
  'it''s', true, NULL;
SELECT (SELECT count(*) FROM flights WHERE delay = f.delay) FROM flights f;
SELECT count(*) FROM flights /* a comment with COPY */;
SELECT count(*) FROM flights; -- no more;
SELECT timezone('Europe/Berlin', __time), __time AT TIME ZONE 'Europe/Berlin' FROM flights;
"""


def checked(sql: str) -> list[SqlTableUse]:
    asked = SqlStatement(sql=sql, time_s=10, memory_bytes=2**28, temporary_bytes=2**20)
    return read_checked(asked)[1]


@pytest.mark.parametrize(
    ("attack", "why"), ATTACKS.items(), ids=lambda value: str(value)[:60].encode("ascii", "replace")
)
def test_attacks_are_refused(attack: str, why: str) -> None:
    """Row 32 of the security checklist: each attack is refused with its reason."""
    with pytest.raises(Refused) as refused:
        checked(attack)
    assert why in str(refused.value)


@pytest.mark.parametrize("sql", LEGITIMATE.strip().removesuffix(";").split(";\n"))
def test_what_analysts_write_is_taken(sql: str) -> None:
    tables = checked(sql)
    assert {t.name for t in tables} <= {"flights"}


GOLDEN = Path(__file__).parents[1] / "golden/sql_attacks.sql"
LISTED = [line for line in GOLDEN.read_text().splitlines() if line and not line.startswith("--#")]


@pytest.mark.parametrize("attack", [line.removesuffix(";") for line in LISTED], ids=range(len(LISTED)))
def test_each_attack_of_the_list_is_refused(attack: str) -> None:
    """Row 32 of the security checklist: files, settings, other statements, and our own names, wherever they are."""
    with pytest.raises(Refused) as refused:
        checked(attack)
    assert not re.search("TokenType|<class|sqlglot|SENTINEL", str(refused.value))


# Taken as a table's name, which the control plane looks for among the user's datasources.
NAMES = {
    "FROM '/etc/passwd'": "/etc/passwd",
    "SELECT * FROM '/deep/**/*.parquet'": "/deep/**/*.parquet",
    'SELECT * FROM "/etc/passwd"': "/etc/passwd",
    "SELECT * FROM 's3://bucket/a.parquet'": "s3://bucket/a.parquet",
    "SELECT * FROM 'https://example.com/a.csv'": "https://example.com/a.csv",
    'SELECT * FROM "file:///etc/passwd"': "file:///etc/passwd",
    "SELECT * FROM '../../etc/passwd'": "../../etc/passwd",
    "SELECT * FROM ＇／etc／passwd＇": "＇／etc／passwd＇",
    'SELECT * FROM "a.csv" JOIN t ON true': "a.csv",
    "WITH a AS (FROM 'a.json') FROM a": "a.json",
    "SELECT (SELECT max(x) FROM 'a.csv')": "a.csv",
    "SELECT * FROM duckdb_settings": "duckdb_settings",
    "SELECT * FROM sqlite_master": "sqlite_master",
    "SELECT * FROM pg_catalog.pg_tables": "pg_tables",
    "SELECT * FROM information_schema.tables": "tables",
    "SELECT * FROM main.df": "df",
    "FROM (SHOW TABLES)": "SHOW",
    "SELECT * FROM locals": "locals",
}


@pytest.mark.parametrize(("sql", "name"), NAMES.items(), ids=range(len(NAMES)))
def test_a_name_of_anything_is_a_name_of_a_datasource(sql: str, name: str) -> None:
    """Row 32 of the security checklist: no replacement scan, system table or Python variable is behind a name."""
    asked = SqlStatement(sql=sql, time_s=10, memory_bytes=2**28, temporary_bytes=2**20)
    statement, tables = read_checked(asked)
    assert name in [t.name for t in tables]
    assert name not in re.sub(r'AS "[^"]*"', "", statement.sql)


FAULTS = {
    "SELECT 1 FROM": "The name of a table is missing (line 1, column 13).",
    "SELECT 1 +": "A part is missing (line 1, column 10).",
    "SELECT\na b c": "A word or a sign is not expected here (line 2, column 5).",
    "SELECT (1": "Expecting ) (line 1, column 9).",
    "SELECT CASE WHEN 1 THEN 2": "Expected END after CASE (line 1, column 25).",
    "SELECT 'a": "A text, a name in quotes or a comment has no end.",
    "SELECT x -> ": "A part is missing (line 1, column 11).",
    "SELECT ?": "Parameters are not allowed: ?",
    "SELECT * FROM t FOR UPDATE": "FOR UPDATE and FOR SHARE are not allowed: SELECT * FROM t",
    "WITH a AS (DELETE FROM t RETURNING *) FROM a": "A change of data is not allowed: DELETE FROM t RETURNING *",
    "FROM (SUMMARIZE t)": "This part is not allowed: SUMMARIZE t",
}


@pytest.mark.parametrize(("sql", "said"), FAULTS.items(), ids=list(FAULTS))
def test_faults_are_said_in_plain_words(sql: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        checked(sql)
    assert str(refused.value).removeprefix("The statement can't be read: ") == said
