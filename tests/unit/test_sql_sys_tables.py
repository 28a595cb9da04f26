"""What is known of the tables of ``sys``: their page, and what a WHERE says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controlplane.query.sys_tables import sys_columns
from ingestion.query.engine import read_checked
from ingestion.specs.messages.sql import SqlStatement

PAGE = Path(__file__).parents[2] / "docs/reference/sys-tables.md"
DAY_US = 86_400_000_000


def test_the_page_has_every_column() -> None:
    sections = re.split(r"^## Columns of sys\.", PAGE.read_text(), flags=re.MULTILINE)[1:]
    described = {
        section.split()[0]: re.findall(r"^\| `(\w+)`[ •]* \| ([A-Z]+(?:\[\])?) \|", section, re.MULTILINE)
        for section in sections
    }
    assert described == sys_columns()


SAID: dict[str, tuple[dict[str, list[str | int | bool]], dict[str, tuple[int | None, int | None]]]] = {
    "FROM sys.t WHERE a = 'x' AND 3 = B AND used AND NOT c AND d IN ('x', 'y')": (
        {"a": ["x"], "b": [3], "used": [True], "c": [False], "d": ["x", "y"]},
        {},
    ),
    "FROM SYS.t AS u WHERE U.a = 'x' AND sys.t.b = 'y' AND v.c = 'z'": ({"a": ["x"]}, {}),
    "FROM sys.t WHERE at > '1970-01-02' AND at <= '1970-01-03'": ({}, {"at": (DAY_US + 1, 2 * DAY_US + 1)}),
    "FROM sys.t WHERE at BETWEEN '1970-01-02' AND '1970-01-03' AND rows > 5": (
        {},
        {"at": (DAY_US, 2 * DAY_US + 1)},
    ),
    "FROM sys.t WHERE a = 'x' OR b = 'y'": ({}, {}),
    "FROM sys.t WHERE NOT (a = 'x')": ({}, {}),
    "FROM sys.t WHERE a <> 'x' AND a LIKE 'x' AND a = 'x' COLLATE NOCASE AND lower(a) = 'x' AND a = 1.5": ({}, {}),
    "FROM sys.t WHERE a IN ('x', lower('Y')) AND b IN (SELECT 'x') AND c = d AND a IS NOT DISTINCT FROM 'x'": ({}, {}),
    "FROM sys.t JOIN other o ON true WHERE a = 'x' AND o.a = 'z' AND t.b = 'y'": ({"b": ["y"]}, {}),
    "FROM sys.t LEFT JOIN other o ON t.a = 'x'": ({}, {}),
    "FROM sys.t AS t(b, a) WHERE a = 'x'": ({}, {}),
    "FROM sys.t ASOF JOIN other o ON t.at >= o.at WHERE t.a = 'x'": ({}, {}),
    "FROM (FROM sys.t) WHERE a = 'x'": ({}, {}),
    "FROM team.t WHERE a = 'x'": ({}, {}),
}


@pytest.mark.parametrize(("sql", "said"), SAID.items(), ids=list(SAID))
def test_what_a_where_says_of_a_table_of_sys(
    sql: str, said: tuple[dict[str, list[str | int | bool]], dict[str, tuple[int | None, int | None]]]
) -> None:
    use = read_checked(SqlStatement(sql=sql, time_s=10, memory_bytes=2**28, temporary_bytes=2**20))[1][0]
    assert (use.equal, use.between) == said
