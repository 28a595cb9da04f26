"""Druid's functions whose meaning one expression of DuckDB has. ``times`` and ``sketches`` have the others.

A name may be there for several numbers of arguments. The kinds are those of ``Kind``, and ``same``: the kind of the
first argument.
"""

from __future__ import annotations

import re
from functools import cache

from sqlglot import exp, parse_one

# DuckDB has these by the same name: the kind of the value, the number of arguments (*: any), the names.
_SAME_NAME = """
array 1 ARRAY_AGG
double 0 PI PERCENT_RANK CUME_DIST
double 1 SQRT EXP LN LOG10 SIN COS TAN COT ASIN ACOS ATAN DEGREES RADIANS
double 1 AVG STDDEV STDDEV_SAMP STDDEV_POP VARIANCE VAR_SAMP VAR_POP
double 2 POWER ATAN2
long 0 ROW_NUMBER RANK DENSE_RANK
long 1 COUNT APPROX_COUNT_DISTINCT BIT_AND BIT_OR BIT_XOR NTILE LENGTH CHAR_LENGTH CHARACTER_LENGTH
long 2 STRPOS
long * GROUPING
same 1 SUM MIN MAX ANY_VALUE LAG LEAD FIRST_VALUE LAST_VALUE ABS SIGN ROUND TRUNC
same 2 LAG LEAD ROUND TRUNC NULLIF
same * GREATEST LEAST COALESCE
text 1 UPPER LOWER REVERSE
text 2 STRING_AGG LISTAGG LEFT RIGHT REPEAT LTRIM RTRIM
text 3 LPAD RPAD REPLACE
"""
# The name, the kind of the value, and the expression: _1 is the first argument.
# What stands behind a slash alone is an argument that changes nothing, such as a text's longest size.
_EXPRESSIONS = r"""
DIV long CASE WHEN _2 <> 0 THEN CAST(trunc(_1 / _2) AS BIGINT) END
SAFE_DIVIDE same CASE WHEN _2 <> 0 THEN _1 / CAST(_2 AS DOUBLE) END
MOD same _1 % _2
TRUNCATE same trunc(_1)
TRUNCATE same trunc(_1, _2)
BITWISE_AND long _1 & _2
BITWISE_OR long _1 | _2
BITWISE_XOR long xor(_1, _2)
NVL same coalesce(_1, _2)
TEXTCAT text _1 || _2
STRLEN long length(_1)
SUBSTR text substring(_1, _2)
SUBSTR text substring(_1, _2, _3)
LPAD text lpad(_1, _2, ' ')
RPAD text rpad(_1, _2, ' ')
BTRIM text trim(_1, ' ')
BTRIM text trim(_1, _2)
LTRIM text ltrim(_1, ' ')
RTRIM text rtrim(_1, ' ')
CONTAINS_STRING boolean contains(_1, _2)
ICONTAINS_STRING boolean contains(lower(_1), lower(_2))
REGEXP_REPLACE text regexp_replace(_1, _2, _3, 'g')
REGEXP_LIKE boolean regexp_matches(_1, _2)
REGEXP_EXTRACT text CASE WHEN regexp_matches(_1, _2) THEN regexp_extract(_1, _2) END
REGEXP_EXTRACT text CASE WHEN regexp_matches(_1, _2) THEN regexp_extract(_1, _2, _3) END
DECODE_BASE64_UTF8 text decode(from_base64(_1))
PARSE_JSON json CAST(json(_1) AS VARCHAR)
TRY_PARSE_JSON json CASE WHEN json_valid(_1) THEN CAST(json(_1) AS VARCHAR) END
JSON_QUERY json CAST(json_extract(_1, _2) AS VARCHAR)
TO_JSON_STRING text CAST(json(_1) AS VARCHAR)
APPROX_COUNT_DISTINCT_BUILTIN long approx_count_distinct(_1)
ANY_VALUE same any_value(_1)/_2
LATEST_BY same arg_max_null(_1, _2)
LATEST_BY same arg_max_null(_1, _2)/_3
EARLIEST_BY same arg_min_null(_1, _2)
EARLIEST_BY same arg_min_null(_1, _2)/_3
STRING_AGG text string_agg(_1, _2)/_3
MILLIS_TO_TIMESTAMP time timezone('UTC', make_timestamp_ms(CAST(_1 AS BIGINT)))
TIMESTAMP_TO_MILLIS long epoch_ms(_1)
MV_TO_ARRAY array _1
ARRAY_TO_MV mv _1
CARDINALITY long len(_1)
STRING_TO_MV mv string_split(_1, _2)
STRING_TO_ARRAY array string_split(_1, _2)
MV_FILTER_ONLY mv list_filter(_1, lambda __each: list_contains(_2, __each))
MV_FILTER_NONE mv list_filter(_1, lambda __each: NOT list_contains(_2, __each))
"""
# Each of these begins with MV_ and with ARRAY_. ``list`` is a list of this sort, ``element`` one of its values.
_OF_LISTS = """
LENGTH long len(_1)
OFFSET element list_extract(_1, CASE WHEN _2 >= 0 THEN _2 + 1 END)
ORDINAL element list_extract(_1, CASE WHEN _2 >= 1 THEN _2 END)
OFFSET_OF long list_position(_1, _2) - 1
ORDINAL_OF long list_position(_1, _2)
TO_STRING text array_to_string(_1, _2)
APPEND list CASE WHEN _1 IS NOT NULL THEN list_append(_1, _2) END
PREPEND list CASE WHEN _2 IS NOT NULL THEN list_prepend(_1, _2) END
CONCAT list CASE WHEN _1 IS NOT NULL AND _2 IS NOT NULL THEN list_concat(_1, _2) END
SLICE list list_slice(_1, _2 + 1, _3)
OVERLAP boolean list_has_any(_1, _2)
"""
_AGGREGATES = "COUNT SUM MIN MAX AVG STDDEV STDDEV_SAMP STDDEV_POP VARIANCE VAR_SAMP VAR_POP APPROX_COUNT_DISTINCT"
_AGGREGATES += " APPROX_COUNT_DISTINCT_BUILTIN ANY_VALUE LATEST EARLIEST LATEST_BY EARLIEST_BY GROUPING"
AGGREGATES = frozenset(f"{_AGGREGATES} ARRAY_AGG STRING_AGG LISTAGG BIT_AND BIT_OR BIT_XOR".split())
_ARGUMENT = re.compile(r"\b_(\d)\b")
_ALL = "_all"
EACH = "__each"  # a value of a list: a name that is hardly that of a column
Template = tuple[str, exp.Expr]  # the kind and the expression


@cache
def templates() -> dict[str, dict[int, Template]]:
    """By name and number of arguments; -1: any number."""
    found: dict[str, dict[int, Template]] = {}
    for line in _SAME_NAME.split("\n")[1:-1]:
        kind, count, *names = line.split()
        arguments = [_ALL] if count == "*" else [f"_{place}" for place in range(1, int(count) + 1)]
        for name in names:
            written = exp.Anonymous(this=name.lower(), expressions=[exp.column(a) for a in arguments])
            found.setdefault(name, {})[-1 if count == "*" else int(count)] = kind, written
    lines = _EXPRESSIONS.split("\n")[1:-1]
    for sort, kinds in (("MV", {"list": "mv", "element": "text"}), ("ARRAY", {"list": "array", "element": ""})):
        for line in _OF_LISTS.split("\n")[1:-1]:
            name, kind, text = line.split(" ", 2)
            lines.append(f"{sort}_{name} {kinds.get(kind, kind)} {text}")
    for line in lines:
        name, kind, text = line.split(" ", 2)
        last = max(map(int, _ARGUMENT.findall(text)))
        found.setdefault(name, {})[last] = kind, parse_one(re.sub(r"/_\d$", "", text), read="duckdb")
    return found


def filled(template: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    """The expression with these arguments."""
    whole = exp.Paren(this=template.copy())
    for column in list(whole.find_all(exp.Column)):
        if column.name == _ALL and column.parent is not None:
            column.parent.set("expressions", [argument.copy() for argument in arguments])
        elif _ARGUMENT.fullmatch(column.name):
            column.replace(_bracketed(arguments[int(column.name[1:]) - 1].copy()))
    inner = whole.this
    return inner if isinstance(inner, (exp.Func, exp.Column, exp.Paren)) else whole


def _bracketed(argument: exp.Expr) -> exp.Expr:
    return exp.Paren(this=argument) if isinstance(argument, (exp.Binary, exp.Unary, exp.Between, exp.In)) else argument
