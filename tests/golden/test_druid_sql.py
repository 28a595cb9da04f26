"""Druid's SQL over rows: what a real Druid answered to each statement of its clients, and what Headgate's differs in.

Statements on the tables of a cluster are in ``tests/integration/test_druid_sql.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

from ingestion.query.druid.output import chunks
from ingestion.query.engine import read_checked, read_with_columns
from ingestion.query.output import BATCH_ROWS
from ingestion.query.statement import Refused
from ingestion.query.stored_sketches import add_sketch_functions
from ingestion.specs.messages.sql import DruidStatement, SqlColumn, SqlOrder, SqlStatement, SqlTable
from tests.support.druid_sql import DATASOURCE, ROLLUP, cases, on_cluster, rollup, rows, table

CASES = [case for case in cases() if not on_cluster(case)]
TABLES = {DATASOURCE: table(), ROLLUP: rollup()}
_TYPES = {
    "string": "VARCHAR",
    "binary": "BLOB",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "list<item: string>": "VARCHAR[]",
}
_EXTENSION = "Druid needs an extension for it, which the recorded one did not have."
_FRACTION = "Druid's estimate of 20 values is 20.00000094; Headgate counts them."
# Why Headgate's answer is another one.
DIFFERS = {
    "SELECT COUNT(DISTINCT page) AS d FROM wiki": "Druid estimates it (19 of 20); Headgate counts.",
    "SELECT APPROX_COUNT_DISTINCT(page) AS d FROM wiki": "Both estimate, each in its own way (19 and 20).",
    "SELECT STDDEV(added), VAR_POP(added), STDDEV_POP(price) FROM wiki": _EXTENSION,
    'SELECT * FROM "wiki" LIMIT 2': "Columns have the order in which Headgate saw them; JSON is a text.",
    "SELECT CAST('12' AS BIGINT) AS a, CAST(3.7 AS BIGINT) AS b, CAST(5 AS VARCHAR) AS c, CAST(TRUE AS VARCHAR) AS e": (
        "TRUE as a text is 'true'; Druid writes the constant as 1."
    ),
    "SELECT added, COUNT(*) AS c FROM wiki WHERE delta < -100 GROUP BY added ORDER BY added DESC LIMIT 5": (
        "NULL is the smallest value. In such a top list of one number Druid has it first in descending order, too."
    ),
    "SELECT MAX(country) AS x, MIN(page) AS n FROM wiki": "Druid has no MIN and MAX of texts.",
    "SELECT APPROX_QUANTILE_DS(delta, 0.5) AS m FROM wiki": "Druid's sketch of 128 is inexact for 300 values.",
    "SELECT HLL_SKETCH_ESTIMATE(DS_HLL(page)) AS d, HLL_SKETCH_ESTIMATE(DS_HLL(page), TRUE) AS r, "
    "THETA_SKETCH_ESTIMATE(DS_THETA(page)) AS t FROM wiki": _FRACTION,
    "SELECT APPROX_COUNT_DISTINCT_DS_HLL(page) AS h, APPROX_COUNT_DISTINCT_DS_THETA(page) AS t, "
    "HLL_SKETCH_ESTIMATE(DS_HLL(page)) AS e, APPROX_QUANTILE_DS(delta, 0.5) AS q FROM wiki WHERE country = 'FR'": (
        _FRACTION
    ),
    "SELECT APPROX_COUNT_DISTINCT_DS_HLL(s) AS e FROM (SELECT country, DS_HLL(page) AS s FROM wiki GROUP BY 1)": (
        "Druid merges sketches of a subquery by DS_HLL alone."
    ),
    "SELECT DS_GET_QUANTILE(deltas, 0.5) AS q FROM wiki_rollup WHERE country = 'US' ORDER BY __time": (
        "Druid reads quantiles of an aggregate alone."
    ),
    "SELECT pages_hll FROM wiki_rollup WHERE country = 'US' ORDER BY __time LIMIT 1": (
        "The bytes of equal sketches may have another order."
    ),
    "SELECT EXISTS (SELECT 1 FROM wiki WHERE delta = 149) AS e": "Druid has no EXISTS among the columns.",
}
# Rows with the same value have no order among them.
TIES = (
    "SELECT * FROM (SELECT country, SUM(added) AS added",
    'SELECT country AS country, COUNT(*) AS "count"',
    'SELECT country, AVG(price) AS "AVG(price)"',
)
# What Druid answers and Headgate refuses, with what the refusal names.
REFUSED = {
    "SELECT STRING_FORMAT('%s: %d', page, delta) AS f FROM wiki ORDER BY __time LIMIT 2": "STRING_FORMAT",
    "SELECT DECODE_BASE64_UTF8('aGk=') AS d, HUMAN_READABLE_BINARY_BYTE_FORMAT(1024) AS h": (
        "HUMAN_READABLE_BINARY_BYTE_FORMAT"
    ),
    "SELECT COUNT(DISTINCT tags) AS u, COUNT(tags) AS n FROM wiki": "COUNT of a column with several values",
    "SELECT APPROX_QUANTILE_DS(tags, 0.5) AS q FROM wiki": "APPROX_QUANTILE_DS can't read tags",
    "SELECT DS_HLL(page) AS q FROM wiki": "show a sketch",
    "SELECT DS_THETA(page) AS q FROM wiki WHERE delta = 0": "show a sketch",
    "SELECT DS_QUANTILES_SKETCH(delta) AS q FROM wiki WHERE delta = 0": "show a sketch",
    "SELECT HLL_SKETCH_TO_STRING(DS_HLL(page)) AS q FROM wiki": "HLL_SKETCH_TO_STRING",
    "SELECT HLL_SKETCH_ESTIMATE_WITH_ERROR_BOUNDS(DS_HLL(page)) AS q FROM wiki": "_WITH_ERROR_BOUNDS",
    "SELECT THETA_SKETCH_ESTIMATE_WITH_ERROR_BOUNDS(DS_THETA(page), 1) AS q FROM wiki": "_WITH_ERROR_BOUNDS",
    "SELECT DS_HISTOGRAM(DS_QUANTILES_SKETCH(delta, 1024), -50, 50) AS q FROM wiki": "DS_HISTOGRAM",
    "SELECT DS_CDF(DS_QUANTILES_SKETCH(delta, 1024), -50, 50) AS q FROM wiki": "DS_CDF",
    "SELECT DS_QUANTILE_SUMMARY(DS_QUANTILES_SKETCH(delta)) AS q FROM wiki WHERE delta = 0": "DS_QUANTILE_SUMMARY",
    "SELECT DS_TUPLE_DOUBLES_METRICS_SUM_ESTIMATE(DS_TUPLE_DOUBLES(page, delta)) AS q FROM wiki": "DS_TUPLE_DOUBLES",
}
# Functions of sketches beyond counts and quantiles.
BESIDE = r"\b(?:HLL_SKETCH_UNION|THETA_SKETCH_(?:UNION|INTERSECT|NOT)|DS_GET_QUANTILES|DS_RANK)\b"
REFUSED |= {
    case["body"]["query"]: f"({BESIDE}) is not supported" for case in CASES if re.search(BESIDE, case["body"]["query"])
}


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    found = duckdb.connect(":memory:", config={"threads": "1"})
    for name, stored in TABLES.items():
        found.register(f"rows_of_{name}", stored)
    add_sketch_functions(found, "sketch_distinct")
    yield found
    found.close()


def asked_of(body: dict[str, Any]) -> SqlStatement:
    context = body.get("context", {})
    druid = DruidStatement(
        parameters=body.get("parameters", []),
        zone=context.get("sqlTimeZone", "UTC"),
        outer_limit=context.get("sqlOuterLimit"),
        result_format=body.get("resultFormat", "object"),
        header=body.get("header", False),
        types_header=body.get("typesHeader", False),
        sql_types_header=body.get("sqlTypesHeader", False),
    )
    return SqlStatement(sql=body["query"], druid=druid, time_s=9, memory_bytes=2**27, temporary_bytes=1)


def columns_of(name: str) -> list[SqlColumn]:
    kinds = {f.name: str(f.type).replace("element", "item") for f in TABLES[name].schema}
    return [SqlColumn(id=1, name=column, type=_TYPES.get(kind, "TIMESTAMPTZ")) for column, kind in kinds.items()]


def answered(engine: duckdb.DuckDBPyConnection, body: dict[str, Any]) -> Any:
    """What the process of a query answers, on rows in memory. Raises ``Refused`` and DuckDB's errors."""
    asked = asked_of(body)
    assert asked.druid is not None
    statement, uses = read_checked(asked)
    for use in uses:
        if use.name not in TABLES:
            raise Refused(f"There is no table {use.name}.")
    tables = [SqlTable(columns=columns_of(use.name)) for use in uses]
    order = SqlOrder(deep_storage="", scratch="", format="druid", max_rows=9, tables=tables)
    for number, use in enumerate(uses):
        engine.execute(f'CREATE OR REPLACE VIEW "__headgate_t{number}" AS SELECT * FROM rows_of_{use.name}')
    statement = read_with_columns(asked, statement, uses, order)
    engine.execute(f"SET TimeZone = '{asked.druid.zone}'")
    reader: pa.RecordBatchReader = engine.sql(statement.sql).to_arrow_reader(BATCH_ROWS)
    text = b"".join(chunks(asked.druid, reader.schema, reader)).decode()
    return json.loads(text) if asked.druid.result_format in ("object", "array") else text


def test_a_real_druid_was_asked() -> None:
    assert len(CASES) > 150
    queries = {case["body"]["query"] for case in CASES}
    assert set(DIFFERS) | set(REFUSED) <= queries


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["body"]["query"][:60])
def test_the_answer_is_druids(engine: duckdb.DuckDBPyConnection, case: dict[str, Any]) -> None:
    query = case["body"]["query"]
    if query in REFUSED:
        with pytest.raises(Refused, match=REFUSED[query]):
            answered(engine, case["body"])
    elif query in DIFFERS:
        assert answered(engine, case["body"]) != case["answer"]
    elif query.startswith(TIES):
        assert sorted(answered(engine, case["body"]), key=str) == sorted(case["answer"], key=str)
    elif case["status"] == 200:
        assert answered(engine, case["body"]) == case["answer"]
    else:
        with pytest.raises((Refused, duckdb.Error)):
            answered(engine, case["body"])


def test_a_filter_is_that_of_every_part_of_a_sketch(engine: duckdb.DuckDBPyConnection) -> None:
    """The expression of a merged sketch has its aggregate twice."""
    by_country = "(SELECT country, DS_QUANTILES_SKETCH(delta) AS q FROM wiki GROUP BY 1)"
    query = f"SELECT APPROX_QUANTILE_DS(q, 0.9) FILTER (WHERE country = 'FR') AS p FROM {by_country}"
    assert answered(engine, {"query": query}) == [{"p": 114.0}]


def test_a_size_may_be_a_parameter(engine: duckdb.DuckDBPyConnection) -> None:
    body = {"query": "SELECT APPROX_COUNT_DISTINCT_DS_HLL(page, ?) AS d FROM wiki"}
    assert answered(engine, body | {"parameters": [{"type": "INTEGER", "value": 12}]}) == [{"d": 20}]


@pytest.mark.parametrize(
    ("expression", "said"),
    {
        "SUM(pages_hll)": "SUM of a sketch is not supported",
        "COUNT(DISTINCT deltas)": "COUNT of a sketch is not supported",
        "UPPER(DS_HLL(country))": "UPPER of a sketch is not supported",
        "HLL_SKETCH_ESTIMATE(country)": "HLL_SKETCH_ESTIMATE takes a sketch of its kind, not",
        "* FROM (SELECT DS_HLL(country) AS s FROM wiki_rollup) --": "can't show a sketch",
        "CONCAT(DS_HLL(country), 'x')": "can't show a sketch",
        "DS_HLL(country, 22)": "lgK, a number from 4 to 21, not 22",
        "DS_QUANTILES_SKETCH(n, 100)": "a size that is a power of two, not 100",
        "APPROX_QUANTILE_DS(deltas, 1.5)": "a number from 0 to 1, not",
        "APPROX_QUANTILE_DS(deltas, 0.5) OVER ()": "OVER is not supported",
        "APPROX_COUNT_DISTINCT_DS_HLL(DISTINCT country)": "takes no DISTINCT",
        "DS_GET_QUANTILE(deltas)": "DS_GET_QUANTILE takes 2 arguments, not 1",
        "DS_CDF(deltas, 1)": "DS_CDF is not supported. The functions of sketches are APPROX_COUNT_DISTINCT_DS_HLL,",
    }.items(),
)
def test_a_wrong_use_of_a_sketch_is_named(engine: duckdb.DuckDBPyConnection, expression: str, said: str) -> None:
    with pytest.raises(Refused, match=re.escape(said)):
        answered(engine, {"query": f"SELECT {expression} AS x FROM wiki_rollup"})


V = "(SELECT tags, delta, page AS v, 'a' AS m FROM wiki)"
SPRING, AUTUMN = 1743298200000, 1761442200000  # half an hour after the clocks of Zurich were moved in 2025, in ms
HOUR_MS = 3_600_000
MEANT = {
    # A column that is named like a part of the translation.
    f"SELECT COUNT(*) AS x FROM {V} WHERE tags > v": 240,  # a small letter is behind a P
    f"SELECT COUNT(*) AS x FROM {V} WHERE tags <= v": 0,
    f"SELECT MV_TO_STRING(REPLACE(tags, 'a', v), '-') AS x FROM {V} WHERE delta = -148": "Page 2-b",
    f"SELECT MV_LENGTH(MV_FILTER_ONLY(tags, ARRAY[v, m])) AS x FROM {V} WHERE delta = -148": 1,
    """SELECT "a.b""c" AS x FROM (SELECT 5 AS "a.b""c")""": 5,
    'SELECT "count" AS x FROM (SELECT 7 AS "count")': 7,
    "SELECT COUNT(*) AS x FROM wiki; -- the end": 300,
    "/* first */ SELECT COUNT(*) AS x FROM (SELECT page FROM wiki LIMIT 0);;": 0,
    "SELECT 9223372036854775807 AS x": 2**63 - 1,
    f"SELECT COUNT(*) AS x FROM wiki WHERE delta IN ({', '.join(map(str, range(0, 9000, 2)))})": 75,
} | {
    f"SELECT TIMESTAMP_TO_MILLIS({function}(MILLIS_TO_TIMESTAMP({at}), {rest}, 'Europe/Zurich')) AS x": value
    for function, at, rest, value in (
        ("TIME_FLOOR", SPRING, "'PT1H', NULL", SPRING - HOUR_MS // 2),
        ("TIME_FLOOR", AUTUMN, "'PT1H', NULL", AUTUMN - HOUR_MS // 2),
        ("TIME_FLOOR", SPRING, "'P1D', NULL", SPRING - 5 * HOUR_MS // 2),
        ("TIME_CEIL", SPRING, "'P1D', NULL", SPRING + 41 * HOUR_MS // 2),  # a day of 23 hours
        ("TIME_SHIFT", SPRING, "'P1D', -1", SPRING - 24 * HOUR_MS + HOUR_MS),
    )
}


@pytest.mark.parametrize(("query", "value"), MEANT.items(), ids=[query[:60] for query in MEANT])
def test_what_was_not_recorded(engine: duckdb.DuckDBPyConnection, query: str, value: Any) -> None:
    """The values follow from the rows, see ``tests.support.druid_sql``."""
    assert answered(engine, {"query": query}) == [{"x": value}]


def test_an_interval_is_of_the_querys_zone(engine: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT COUNT(*) AS x FROM wiki WHERE TIME_IN_INTERVAL(__time, '2025-06-02/P1D')"
    zone = "America/Los_Angeles"
    days = [datetime.fromisoformat(row["t"]).astimezone(ZoneInfo(zone)).date() for row in rows()]
    expected = days.count(date(2025, 6, 2))
    assert 0 < expected < 300
    assert answered(engine, {"query": query, "context": {"sqlTimeZone": zone}}) == [{"x": expected}]
