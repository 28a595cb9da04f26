"""Druid's functions whose meaning one expression of DuckDB has. ``times`` has the others.

A line has a name, the kind of its value, and the expression: ``_1`` is the first argument, ``_all`` all of them. A name
has a line for each number of arguments. The kinds are those of ``Kind``; ``same`` is the kind of the first argument.
"""

from __future__ import annotations

import re
from functools import cache

from sqlglot import exp, parse_one

# Numbers, texts, conditions, and JSON.
_SCALAR = r"""
ABS same abs(_1)
SQRT double sqrt(_1)
POWER double pow(_1, _2)
EXP double exp(_1)
LN double ln(_1)
LOG10 double log10(_1)
SIN double sin(_1)
COS double cos(_1)
TAN double tan(_1)
COT double cot(_1)
ASIN double asin(_1)
ACOS double acos(_1)
ATAN double atan(_1)
ATAN2 double atan2(_1, _2)
DEGREES double degrees(_1)
RADIANS double radians(_1)
PI double pi()
SIGN same sign(_1)
MOD same _1 % _2
DIV long CASE WHEN _2 <> 0 THEN CAST(trunc(_1 / _2) AS BIGINT) END
SAFE_DIVIDE same CASE WHEN _2 <> 0 THEN _1 / CAST(_2 AS DOUBLE) END
ROUND same round(_1)
ROUND same round(_1, _2)
TRUNCATE same trunc(_1)
TRUNCATE same trunc(_1, _2)
TRUNC same trunc(_1)
TRUNC same trunc(_1, _2)
BITWISE_AND long _1 & _2
BITWISE_OR long _1 | _2
BITWISE_XOR long xor(_1, _2)
GREATEST same greatest(_all)
LEAST same least(_all)
COALESCE same coalesce(_all)
NVL same coalesce(_1, _2)
NULLIF same nullif(_1, _2)
TEXTCAT text _1 || _2
UPPER text upper(_1)
LOWER text lower(_1)
LENGTH long length(_1)
CHAR_LENGTH long length(_1)
CHARACTER_LENGTH long length(_1)
STRLEN long length(_1)
STRPOS long strpos(_1, _2)
SUBSTR text substring(_1, _2)
SUBSTR text substring(_1, _2, _3)
LEFT text left(_1, _2)
RIGHT text right(_1, _2)
REVERSE text reverse(_1)
REPEAT text repeat(_1, _2)
LPAD text lpad(_1, _2, _3)
LPAD text lpad(_1, _2, ' ')
RPAD text rpad(_1, _2, _3)
RPAD text rpad(_1, _2, ' ')
BTRIM text trim(_1, ' ')
BTRIM text trim(_1, _2)
LTRIM text ltrim(_1, ' ')
LTRIM text ltrim(_1, _2)
RTRIM text rtrim(_1, ' ')
RTRIM text rtrim(_1, _2)
REPLACE text replace(_1, _2, _3)
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
COUNT long count(_1)
SUM same sum(_1)
MIN same min(_1)
MAX same max(_1)
AVG double avg(_1)
STDDEV double stddev_samp(_1)
STDDEV_SAMP double stddev_samp(_1)
STDDEV_POP double stddev_pop(_1)
VARIANCE double var_samp(_1)
VAR_SAMP double var_samp(_1)
VAR_POP double var_pop(_1)
APPROX_COUNT_DISTINCT long approx_count_distinct(_1)
APPROX_COUNT_DISTINCT_BUILTIN long approx_count_distinct(_1)
ANY_VALUE same any_value(_1)
ANY_VALUE same any_value(_1)/_2
LATEST_BY same arg_max_null(_1, _2)
LATEST_BY same arg_max_null(_1, _2)/_3
EARLIEST_BY same arg_min_null(_1, _2)
EARLIEST_BY same arg_min_null(_1, _2)/_3
GROUPING long grouping(_all)
ARRAY_AGG array array_agg(_1)
STRING_AGG text string_agg(_1, _2)
STRING_AGG text string_agg(_1, _2)/_3
LISTAGG text string_agg(_1, _2)
BIT_AND long bit_and(_1)
BIT_OR long bit_or(_1)
BIT_XOR long bit_xor(_1)
ROW_NUMBER long row_number()
RANK long rank()
DENSE_RANK long dense_rank()
PERCENT_RANK double percent_rank()
CUME_DIST double cume_dist()
NTILE long ntile(_1)
LAG same lag(_1)
LAG same lag(_1, _2)
LEAD same lead(_1)
LEAD same lead(_1, _2)
FIRST_VALUE same first_value(_1)
LAST_VALUE same last_value(_1)
MILLIS_TO_TIMESTAMP time timezone('UTC', make_timestamp_ms(CAST(_1 AS BIGINT)))
TIMESTAMP_TO_MILLIS long epoch_ms(_1)
MV_TO_ARRAY array _1
ARRAY_TO_MV mv _1
MV_LENGTH long len(_1)
ARRAY_LENGTH long len(_1)
CARDINALITY long len(_1)
MV_OFFSET text list_extract(_1, CASE WHEN _2 >= 0 THEN _2 + 1 END)
ARRAY_OFFSET element list_extract(_1, CASE WHEN _2 >= 0 THEN _2 + 1 END)
MV_ORDINAL text list_extract(_1, CASE WHEN _2 >= 1 THEN _2 END)
ARRAY_ORDINAL element list_extract(_1, CASE WHEN _2 >= 1 THEN _2 END)
MV_OFFSET_OF long list_position(_1, _2) - 1
ARRAY_OFFSET_OF long list_position(_1, _2) - 1
MV_ORDINAL_OF long list_position(_1, _2)
ARRAY_ORDINAL_OF long list_position(_1, _2)
MV_TO_STRING text array_to_string(_1, _2)
ARRAY_TO_STRING text array_to_string(_1, _2)
STRING_TO_MV mv string_split(_1, _2)
STRING_TO_ARRAY array string_split(_1, _2)
MV_APPEND mv CASE WHEN _1 IS NOT NULL THEN list_append(_1, _2) END
ARRAY_APPEND array CASE WHEN _1 IS NOT NULL THEN list_append(_1, _2) END
MV_PREPEND mv CASE WHEN _2 IS NOT NULL THEN list_prepend(_1, _2) END
ARRAY_PREPEND array CASE WHEN _2 IS NOT NULL THEN list_prepend(_1, _2) END
MV_CONCAT mv CASE WHEN _1 IS NOT NULL AND _2 IS NOT NULL THEN list_concat(_1, _2) END
ARRAY_CONCAT array CASE WHEN _1 IS NOT NULL AND _2 IS NOT NULL THEN list_concat(_1, _2) END
MV_SLICE mv list_slice(_1, _2 + 1, _3)
ARRAY_SLICE array list_slice(_1, _2 + 1, _3)
MV_FILTER_ONLY mv list_filter(_1, lambda v: list_contains(_2, v))
MV_FILTER_NONE mv list_filter(_1, lambda v: NOT list_contains(_2, v))
MV_OVERLAP boolean list_has_any(_1, _2)
ARRAY_OVERLAP boolean list_has_any(_1, _2)
"""
_AGGREGATES = "COUNT SUM MIN MAX AVG STDDEV STDDEV_SAMP STDDEV_POP VARIANCE VAR_SAMP VAR_POP APPROX_COUNT_DISTINCT"
_AGGREGATES += " APPROX_COUNT_DISTINCT_BUILTIN ANY_VALUE LATEST EARLIEST LATEST_BY EARLIEST_BY GROUPING"
AGGREGATES = frozenset(f"{_AGGREGATES} ARRAY_AGG STRING_AGG LISTAGG BIT_AND BIT_OR BIT_XOR".split())
_ARGUMENT = re.compile(r"\b_(\d)\b")


@cache
def templates() -> dict[tuple[str, int], tuple[str, exp.Expr]]:
    """The kind and the expression, by name and number of arguments; -1: any number."""
    found = {}
    for line in _SCALAR.strip().splitlines():
        name, kind, text = line.split(" ", 2)
        count = -1 if "_all" in text else max(map(int, _ARGUMENT.findall(text)), default=0)
        # What stands behind a slash alone is an argument that changes nothing, such as a text's longest size.
        found[name, count] = (kind, parse_one(re.sub(r"/_\d$", "", text), read="duckdb"))
    return found


def filled(template: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    """The expression with these arguments."""
    whole = exp.Paren(this=template.copy())
    for column in list(whole.find_all(exp.Column)):
        name = column.name
        if name == "_all":
            _replace_by_all(column, arguments)
        elif name.startswith("_") and name[1:].isdigit():
            column.replace(_bracketed(arguments[int(name[1:]) - 1].copy()))
    inner = whole.this
    return inner if isinstance(inner, (exp.Func, exp.Column, exp.Paren)) else whole


def _replace_by_all(column: exp.Column, arguments: list[exp.Expr]) -> None:
    parent = column.parent
    if isinstance(parent, exp.Func) and parent.args.get("this") is column:  # greatest(_all), coalesce(_all)
        parent.set("this", arguments[0].copy())
        parent.set("expressions", [a.copy() for a in arguments[1:]])
    elif parent is not None:
        parent.set("expressions", [a.copy() for a in arguments])


def _bracketed(argument: exp.Expr) -> exp.Expr:
    return exp.Paren(this=argument) if isinstance(argument, (exp.Binary, exp.Unary, exp.Between, exp.In)) else argument
