"""Druid's SQL over rows: what a real Druid answered to each statement of its clients, and what Headgate's differs in.

Statements on the tables of a cluster are in ``tests/integration/test_druid_sql.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from ingestion.query.druid.output import chunks
from ingestion.query.engine import read_checked, read_with_columns
from ingestion.query.output import BATCH_ROWS
from ingestion.query.statement import Refused
from ingestion.specs.messages.sql import DruidStatement, SqlColumn, SqlOrder, SqlStatement, SqlTable
from tests.support.druid_sql import cases, on_cluster, table

CASES = [case for case in cases() if not on_cluster(case)]
_TYPES = {"string": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE", "list<item: string>": "VARCHAR[]"}
_EXTENSION = "Druid needs an extension for it, which the recorded one did not have."
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
}


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    found = duckdb.connect(":memory:", config={"threads": "1"})
    found.register("rows_of_druid", table())
    for number in range(5):
        found.execute(f'CREATE VIEW "__headgate_t{number}" AS SELECT * FROM rows_of_druid')
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


def answered(engine: duckdb.DuckDBPyConnection, body: dict[str, Any]) -> Any:
    """What the process of a query answers, on rows in memory. Raises ``Refused`` and DuckDB's errors."""
    asked = asked_of(body)
    assert asked.druid is not None
    statement, uses = read_checked(asked)
    columns = [
        SqlColumn(id=1, name=f.name, type=_TYPES.get(str(f.type).replace("element", "item"), "TIMESTAMPTZ"))
        for f in table().schema
    ]
    for use in uses:
        if use.name != "wiki":
            raise Refused(f"There is no table {use.name}.")
    order = SqlOrder(
        deep_storage="", scratch="", format="druid", max_rows=9, tables=[SqlTable(columns=columns) for _ in uses]
    )
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
