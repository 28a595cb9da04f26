"""The columns of a table in SQL, and the times that a statement needs of it."""

from __future__ import annotations

import pytest

from controlplane.query.tables import sql_columns
from controlplane.segments.models import Column
from ingestion.query.engine import read_checked
from ingestion.specs.messages.sql import SqlStatement

DAY_US = 86_400_000_000
TEN = 10 * DAY_US


def test_columns_are_those_of_the_iceberg_table() -> None:
    """Names that differ only by case are two columns, which DuckDB has to tell apart."""
    stored = [("delay", "long"), ("delay", "double"), ("Delay", "string"), ("tags", "strings"), ("hll", "HLLSketch")]
    columns = [
        Column(name=name, type=kind, number=2 + 2 * place, element=3 + 2 * place if kind == "strings" else None)
        for place, (name, kind) in enumerate(stored)
    ]
    assert [(c.id, c.name, c.type, c.masked) for c in sql_columns(columns, {6})] == [
        (1, "__time", "TIMESTAMPTZ", False),
        (2, "delay__long", "BIGINT", False),
        (4, "delay", "DOUBLE", False),
        (6, "Delay_", "VARCHAR", True),
        (8, "tags", "VARCHAR[]", False),
        (10, "hll", "BLOB", False),
    ]


BOUNDS = {
    "FROM t": (None, None),
    "FROM t WHERE __time >= '1970-01-11'": (TEN, None),
    "FROM t WHERE __time > '1970-01-11'": (TEN + 1, None),
    "FROM t WHERE '1970-01-11' >= __time": (None, TEN + 1),
    "FROM t WHERE (x = 1 AND (t.__time < '1970-01-11')) AND \"__TIME\" >= '1970-01-01'": (0, TEN),
    "FROM t AS a WHERE a.__time = TIMESTAMPTZ '1970-01-11 01:00:00+01'": (TEN, TEN + 1),
    "FROM t WHERE __time BETWEEN DATE '1970-01-01' + INTERVAL 10 DAY AND to_timestamp(864000)": (TEN, TEN + 1),
    "FROM t JOIN range(3) r(x) USING (x) WHERE t.__time < '1970-01-11'": (None, TEN),
    "FROM range(3) r(x) LEFT JOIN t USING (x) WHERE t.__time < '1970-01-11'": (None, TEN),
    "WITH c AS (FROM t WHERE __time < '1970-01-11') FROM c": (None, TEN),
    "SELECT (SELECT max(x) FROM t WHERE __time < '1970-01-11')": (None, TEN),
    "FROM t WHERE x = 0" + "".join(f" AND x <> {n}" for n in range(3_000)) + " AND __time < '1970-01-11'": (None, TEN),
    # Not narrowed: other rows could be needed.
    "FROM t WHERE __time < '1970-01-11' OR x = 1": (None, None),
    "FROM t WHERE NOT (__time < '1970-01-11')": (None, None),
    "FROM t WHERE (__time < '1970-01-11') IS NOT TRUE": (None, None),
    "FROM t HAVING max(__time) < '1970-01-11'": (None, None),
    "FROM t JOIN range(3) r(x) ON t.__time < '1970-01-11'": (None, None),
    "FROM t JOIN range(3) r(__time) USING (x) WHERE __time < '1970-01-11'": (None, None),
    "FROM t AS a(x, __time) WHERE __time < '1970-01-11'": (None, None),
    "FROM range(3) r(x) ASOF JOIN t ON r.x >= t.x WHERE t.__time < '1970-01-11'": (None, None),
    "FROM t ASOF JOIN range(3) r(x) ON r.x >= t.x WHERE t.__time < '1970-01-11'": (None, None),
    "SELECT 1 FROM t ASOF JOIN range(3) r(x) ON r.x >= t.x WHERE t.__time < '1970-01-11'": (None, None),
    "SELECT 1 FROM (t ASOF JOIN range(3) r(x) ON r.x >= t.x) WHERE t.__time < '1970-01-11'": (None, None),
    "FROM t, unnest(t.tags) u(__time) WHERE __time < '1970-01-11'": (None, None),
    "FROM range(3) r(x) POSITIONAL JOIN t WHERE t.__time < '1970-01-11'": (None, None),
    "FROM (FROM t) WHERE __time < '1970-01-11'": (None, None),
    "FROM t WHERE __time < (SELECT TIMESTAMP '1970-01-11')": (None, None),
    "FROM t WHERE __time < x": (None, None),
    "FROM t WHERE __time < 'x'": (None, None),
    "FROM t WHERE __time < 'infinity'": (None, None),
    "FROM t WHERE s.__time < '1970-01-11'": (None, None),
    "FROM t WHERE t.s.__time < '1970-01-11'": (None, None),
}


@pytest.mark.parametrize(("sql", "bounds"), BOUNDS.items(), ids=lambda value: str(value)[:60])
def test_times_come_from_where(sql: str, bounds: tuple[int | None, int | None]) -> None:
    asked = SqlStatement(sql=sql, time_s=10, memory_bytes=2**28, temporary_bytes=2**20)
    [table] = read_checked(asked)[1]
    assert (table.start_us, table.end_us) == bounds
