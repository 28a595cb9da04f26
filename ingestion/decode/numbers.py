# ruff: noqa: S608 - the SQL is built of constants
"""From JSON texts to numbers, as Druid reads them in a dimension and in a metric's field; null where there is none.

| | dimension | metric |
|---|---|---|
| a number in a long | its whole part, within 64 bits | its whole part, within 64 bits |
| a text in a long | a whole number, also ``5.`` and ``1e3`` | any number, of which the same is taken |
| a text in a double | a number | a number |
| blanks around, commas in it | null | dropped |
| true and false | 1 and 0 in a long, else null | null |
| the texts NaN and Infinity in a long | null | 0, and the greatest or least long |

Else NaN, Infinity and what is beyond a double (of a float: beyond a float) are null: no column of Headgate holds them.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from ingestion.decode.engine import TEXTS, Engine

Use = Literal["dimension", "metric"]
TEXT = "CASE WHEN starts_with(e, '\"') THEN json_extract_string(e, '$') ELSE e END"
_NUMBER = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
NUMBER_PATTERN = rf"'\s*{_NUMBER}\s*'"
_EXACT = 2**53  # whole doubles below are the number that is written
_IS_TEXT = "starts_with(e, '\"')"
_TRIMMED = {"dimension": TEXT, "metric": rf"replace(trim({TEXT}, E' \t\r\n'), ',', '')"}
_DOUBLE = f"CASE WHEN regexp_full_match(t, '{_NUMBER}[dDfF]?') THEN TRY_CAST(rtrim(t, 'dDfF') AS DOUBLE) END"
_WHOLE = "CASE WHEN regexp_full_match(t, '[-+]?[0-9]+') THEN TRY_CAST(t AS BIGINT) END"
# Of decimals beyond what a double holds; a double that is so large is written with noughts for digits that it has.
_BEFORE_POINT = r"""CASE WHEN regexp_full_match(t, '-?[0-9]+(\.[0-9]+)?(E0)?') AND NOT ends_with(t, '0.0')
  THEN TRY_CAST(regexp_extract(t, '^-?[0-9]+') AS BIGINT) END"""
_CUT = f"""CASE WHEN NOT isfinite(d) THEN NULL
  WHEN d >= 9223372036854775807 THEN {2**63 - 1}
  WHEN d <= -9223372036854775808 THEN CAST('{-(2**63)}' AS BIGINT)
  ELSE TRY_CAST(trunc(d) AS BIGINT) END"""
_ENDLESS = "[-+]?(NaN|Infinity)"
_CUT_OF_TEXT = {
    "dimension": f"""CASE WHEN regexp_full_match(t, '{_NUMBER}') AND NOT regexp_full_match(t, '[-+]?[0-9]+')
      AND trunc(d) = d AND abs(d) < {_EXACT} THEN CAST(d AS BIGINT) END""",
    "metric": f"""CASE WHEN NOT regexp_full_match(t, '{_ENDLESS}') THEN {_CUT}
      WHEN ends_with(t, 'NaN') THEN 0 WHEN starts_with(t, '-') THEN CAST('{-(2**63)}' AS BIGINT)
      ELSE {2**63 - 1} END""",
}
_BOOLEANS_OF_LONG = {"dimension": "CAST(e = 'true' AS BIGINT)", "metric": "NULL"}


def _query(use: Use, result: str) -> str:
    return f"SELECT {result} AS v FROM (SELECT *, {_DOUBLE} AS d FROM (SELECT e, {_TRIMMED[use]} AS t FROM texts))"


def _long(use: Use) -> str:
    cut = f"CASE WHEN {_IS_TEXT} THEN {_CUT_OF_TEXT[use]} ELSE coalesce({_BEFORE_POINT}, {_CUT}) END"
    return _query(
        use, f"CASE WHEN e IN ('true', 'false') THEN {_BOOLEANS_OF_LONG[use]} ELSE coalesce({_WHOLE}, {cut}) END"
    )


_LONGS: dict[Use, str] = {use: _long(use) for use in ("dimension", "metric")}
_DOUBLES: dict[Use, str] = {use: _query(use, "CASE WHEN isfinite(d) THEN d END") for use in ("dimension", "metric")}


def longs(engine: Engine, texts: pa.Array, use: Use) -> pa.Array:
    """An int64 for each text."""
    return _run(engine, _LONGS[use], texts, pa.int64())


def doubles(engine: Engine, texts: pa.Array, use: Use) -> pa.Array:
    """A float64 for each text."""
    return _run(engine, _DOUBLES[use], texts, pa.float64())


def _run(engine: Engine, sql: str, texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return engine.run(sql, TEXTS, pa.table({"e": texts})).column(0).combine_chunks().cast(kind)
