"""What is asked about metrics that read an expression instead of a field, for ``druid_corpus``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Asked = tuple[str, str, dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]
KINDS = ("longSum", "longMin", "longMax", "doubleSum", "doubleMin", "doubleMax", "floatSum", "floatMin", "floatMax")
VALUES = r"""null|""|"a"|"7"|"-2.5"|"1e3"|" 7 "|"1,000"|"9223372036854775808"|"NaN"|"true"|2.5|1e10|1e300
9223372036854775807|9007199254740993|true|[1,2]|[3]|["4"]|["a"]|[]|{"k":1}""".replace("\n", "|").split("|")
RECORD = json.dumps(
    {
        **{
            "t": 3_600_007,
            "g": "x",
            "s": "Hello",
            "num": "42",
            "dnum": "-2.75",
            "l": 7,
            "neg": -3,
            "d": 2.5,
            "n": None,
        },
        **{
            "e": "",
            "b": True,
            "arr": [1, 2, 3],
            "one": [4],
            "mv": ["5", "6"],
            "o": {"k": 8},
            "empty": [],
            "big": 2**63 - 1,
        },
    }
)
EXPRESSIONS = r"""
l | l * 2 | l + d | l / 2 | d / 0 | l / 0 | l % 2 | d * d | -l | neg * d | 5 | 2.9 | -2.9 | '5' | '5.5' | 'x' | null
n | n + 1 | l + n | e | s | num | dnum | num + 1 | num * 2 | num + num | concat(num, '1') | concat(l, d) | b | !b
l > d | l > d && d > 1 | if(l > 5, l, 0) | if(l > 9, l, null) | nvl(n, 3) | nvl(n, 'x') | coalesce(n, num)
cast(num, 'LONG') | cast(dnum, 'DOUBLE') | parse_long(num) | strlen(s) | strpos(s, 'l') | abs(neg) | sqrt(l) | log(0)
sqrt(neg) | pow(l, 40) | round(d) | max(l, d) | greatest(l, d, 9) | big + 1 | big * 2 | div(l, 2) | __time | __time + l
timestamp_extract(__time, 'HOUR') | timestamp_extract(__time, 'MILLISECOND') | arr | one | mv | arr + 1 | mv + 1
array_length(arr) | array_offset(arr, 1) | fold((x, a) -> x + a, arr, 0) | array(l) | array(l, d) | ['7'] | o
json_value(o, '$.k') | g | m | missing | "l" | made | made + l | plain | case_searched(s == 'Hello', 10, 20)
regexp_extract(s, 'l+') | bitwiseAnd(l, 3) | l + | unknown(l) | x y | like(s, 'H%') | upper(num) | isnull(n)
map((x) -> x * 2, one) | array_to_string(one, '') | string_to_array(num, ',') | '' | ' 5 ' | '1e3'
'9223372036854775808' | 9223372036854775807 | 1e300 | 0.1 + 0.2 | l == 7 | (l + 1) * (d - 1) | d ^ 2 | mv == '5'
strlen(arr) | strlen(one) | concat(arr, 'a') | isnull(arr) | if(l > 5, l, arr) | array_length(one) | -arr | -one
one + 1 | array_length(arr) + strlen(arr) | one * one | one + arr | nvl(arr, 1) | json_value(arr, '$[0]')
cast(one, 'LONG') | cast(arr, 'LONG') | array_contains(one, 4) | scalar_in_array(one, [4]) | array_to_string(arr, '')
mv_to_array(one) | coalesce(one, 1) | if(array_length(one) == 1, one, 0) | if(array_length(arr) == 3, arr, 0)
map((x) -> x + 1, arr) | if(array_contains(arr, 1), 1, 0) | concat(arr, one) | l + array_length(arr) | strlen(empty)
nvl(empty, 1) | one > 3 | array_length(empty) | array_length(mv) | array_offset(one, 0) + 1
filter((x) -> x > 2, arr) | fold((x, a) -> x + a, one, 0) | array_append(one, 1)
array_length(array_append(arr, one)) | any((x) -> x == l, arr) | array_offset(arr, l - 6)
"""
_WRITTEN_OTHERWISE = "9007199254740993"  # a float of that size, with one digit more than tell it from others
_AS_DOUBLES = 4  # one in so many of them is asked of a sum of doubles too
_TRANSFORMS = [
    {"type": "expression", "name": "made", "expression": "l * 100"},
    {"type": "expression", "name": "plain", "expression": "concat(num, '0')"},
]
_FEW = "\n".join(
    json.dumps({"t": t, **row})
    for t, row in (
        (1000, {"d": "x", "v": 3, "f": 1.5, "s": "one"}),
        (2000, {"d": "x", "v": -5, "f": 2.25, "s": "two"}),
        (3000, {"d": "y", "v": None, "f": "7.5", "s": None}),
        (61000, {"d": "x", "v": "12", "f": None, "s": ""}),
        (500, {"d": "x", "v": 1.9, "f": 0.5, "s": "zero"}),
    )
)
_IS_X = {"type": "selector", "dimension": "d", "value": "x"}
_G, _D = {"dimensions": ["g"]}, {"dimensions": ["d"]}


def _metric(kind: str, expression: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "name": "m", "expression": expression, **more}


def asked_of_expressions() -> Iterator[Asked]:
    """Name, records, dimensionsSpec, transforms, metrics."""
    expressions = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(" | ")]
    for number, expression in enumerate(expressions):
        for kind in ("longSum", "doubleSum") if number % _AS_DOUBLES == 0 else ("longSum",):
            transforms = [t for t in _TRANSFORMS if t["name"] in expression]
            yield f"{kind}: {expression}", RECORD, _G, transforms, [_metric(kind, expression)]
    for kind, expression in (("longSum", "x"), ("doubleSum", "x"), ("floatMax", "x + 1")):
        for value in VALUES:
            if kind == "floatMax" and value == _WRITTEN_OTHERWISE:
                continue
            record = f'{{"t": 0, "g": "x", "x": {value}}}'
            yield f"{kind}: {expression} of {value}", record, _G, [], [_metric(kind, expression)]
    for kind in KINDS:
        yield f"{kind}: rolled up", _FEW, _D, [], [_metric(kind, "v * 2 + f")]
    for name, dimensions, metrics in _others():
        yield name, _FEW, dimensions, [], metrics


def _others() -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    one = _metric("longSum", "v + 1")
    with_text = _metric("longSum", "v + strlen(s) + f")
    yield "both", _D, [_metric("longSum", "v + 1", fieldName="v")]
    yield "neither", _D, [{"type": "longSum", "name": "m"}]
    yield "both null", _D, [{"type": "longSum", "name": "m", "fieldName": None, "expression": None}]
    yield "an empty one", _D, [_metric("longSum", "")]
    yield "of a first", _D, [_metric("longFirst", "v")]
    yield "of a longAny", _D, [_metric("longAny", "v")]
    yield "filtered", _D, [{"type": "filtered", "filter": _IS_X, "aggregator": one}]
    yield "named as its field", _D, [{**one, "name": "v"}]
    yield "two of one field", _D, [one, _metric("doubleSum", "v * f", name="o")]
    yield "of another metric", _D, [one, _metric("doubleSum", "m", name="o")]
    yield "of a dimension", {"dimensions": ["d", "v"]}, [one]
    yield "of a dimension that is a long", {"dimensions": [{"type": "long", "name": "v"}]}, [one]
    yield "beside discovered strings", {"dimensions": []}, [with_text]
    yield "beside discovery", {"useSchemaDiscovery": True}, [with_text]
