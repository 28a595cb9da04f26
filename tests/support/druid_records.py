# ruff: noqa: E501 - what is asked stands in one line with its like
"""What is asked of whole records, for ``druid_corpus``: transforms that shadow, lists and nulls in filters, metrics of
values of every kind, granularities with periods and origins, and rows with odd delimiters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.druid_neighbours import ENDLESS

# Section, name, and what ``druid_corpus`` makes a body of.
Asked = tuple[str, str, dict[str, Any]]

_RECORD = {"t": 1_710_058_530_123, "x": "a", "y": 7, "n": None, "d": 2.5, "l": [1, 2], "mv": ["p", "q"], "o": {"k": 1}}
# Name and expression of each transform, with ; between two.
TRANSFORMS = r"""
x = concat(x, '!') | x = y | y = x | x = null | x = y; y = x | x = concat(x, '1'); z = x | z = y + 1; w = z + 1 | x = y; x = d
__time = __time + 1000 | __time = 0 | __time = '2024-01-01' | __time = null | __time = timestamp_floor(__time, 'P1D') | __time = d * 1000 | __time = y; z = __time
__time = '1710058530123' | __time = l | __time = missing | t = 0 | t = 0; z = __time | z = t | z = __time
z = l | z = mv | z = o | z = n | z = missing | z = array(1, 2.5) | z = array('a', null) | z = [] | z = l == l | z = d > 1 | z = map((e) -> e * 2, l)
z = json_value(o, '$.k') | z = json_object('a', y) | z = concat(mv, '-') | z = mv + 'x' | z = l + 1 | z = 1e10 | z = cast(d, 'LONG') | z = '' | z = 'true'
Z = x | z = X | 'odd name' = x | z = json_query(o, '$.missing') | z = string_to_array('a,b', ',') | z = string_to_array('', ',') | z = y / 2 | z = y / 2.0
"""
KINDS = ("auto", "string", "long", "double", "float", "json")
_FILTERED_BY_MADE = {"type": "selector", "dimension": "x", "value": "a!"}

_LISTS: list[dict[str, Any]] = [
    {"x": ["a", "b"], "y": ["b", "c"], "n": [1, 2]},
    {"x": [], "y": None, "n": []},
    {"x": [None], "y": [None, "a"], "n": [None]},
    {"x": ["a", None], "y": "a", "n": [7, None]},
    {"x": None, "y": "", "n": None},
    {"x": [""], "y": [""], "n": 0},
    {"x": [1, 2.5, True], "y": ["1", "2.5", "true"], "n": [1.5, "x"]},
    {"x": "a", "y": ["a"], "n": 7},
    {"y": "z", "n": "7"},
    {"x": ["7", 7], "y": 7, "n": ["7"]},
    {"x": True, "y": "true", "n": True},
    {"x": "2.50", "y": 2.5, "n": 2.5},
]
LISTED = "\n".join(json.dumps({"t": i, "i": i, **row}) for i, row in enumerate(_LISTS))
FILTERS = r"""
{"type":"selector","dimension":"x","value":"a"}
{"type":"selector","dimension":"x","value":null}
{"type":"selector","dimension":"x","value":""}
{"type":"selector","dimension":"x","value":"true"}
{"type":"selector","dimension":"x","value":true}
{"type":"selector","dimension":"x","value":2.5}
{"type":"selector","dimension":"x","value":"null"}
{"type":"in","dimension":"x","values":["null"]}
{"type":"bound","dimension":"x","lower":"n","upper":"o"}
{"type":"regex","dimension":"x","pattern":"^null$"}
{"type":"selector","dimension":"n","value":"7"}
{"type":"selector","dimension":"n","value":null}
{"type":"selector","dimension":"n","value":"1.5"}
{"type":"null","column":"x"}
{"type":"null","column":"n"}
{"type":"not","field":{"type":"null","column":"x"}}
{"type":"equals","column":"x","matchValueType":"STRING","matchValue":"a"}
{"type":"equals","column":"n","matchValueType":"LONG","matchValue":7}
{"type":"equals","column":"n","matchValueType":"DOUBLE","matchValue":1.5}
{"type":"equals","column":"n","matchValueType":"FLOAT","matchValue":2.5}
{"type":"equals","column":"x","matchValueType":"ARRAY<STRING>","matchValue":["a","b"]}
{"type":"equals","column":"n","matchValueType":"ARRAY<LONG>","matchValue":[1,2]}
{"type":"equals","column":"n","matchValueType":"ARRAY<DOUBLE>","matchValue":[1.0,2.0]}
{"type":"equals","column":"__time","matchValueType":"LONG","matchValue":3}
{"type":"equals","column":"missing","matchValueType":"STRING","matchValue":"a"}
{"type":"not","field":{"type":"equals","column":"missing","matchValueType":"STRING","matchValue":"a"}}
{"type":"in","dimension":"x","values":["a",null]}
{"type":"in","dimension":"x","values":["","z"]}
{"type":"in","dimension":"n","values":[7,"1.5"]}
{"type":"in","dimension":"n","values":[null]}
{"type":"not","field":{"type":"in","dimension":"n","values":["7"]}}
{"type":"not","field":{"type":"in","dimension":"missing","values":["7"]}}
{"type":"bound","dimension":"x","lower":"a","upper":"a"}
{"type":"bound","dimension":"n","lower":"1","upper":"2","ordering":"numeric"}
{"type":"bound","dimension":"n","lower":"2","ordering":"numeric"}
{"type":"bound","dimension":"x","upper":"3","ordering":"numeric"}
{"type":"bound","dimension":"x","lower":"x","ordering":"numeric"}
{"type":"bound","dimension":"__time","lower":"3","upper":"5","ordering":"numeric"}
{"type":"bound","dimension":"__time","lower":"3","ordering":"lexicographic"}
{"type":"bound","dimension":"x","upperStrict":true}
{"type":"not","field":{"type":"bound","dimension":"x","lower":"a","upper":"a"}}
{"type":"range","column":"n","matchValueType":"LONG","lower":1,"upper":2}
{"type":"range","column":"n","matchValueType":"FLOAT","lower":1.5,"upper":2.5}
{"type":"range","column":"n","matchValueType":"ARRAY<LONG>","lower":[1],"upper":[2]}
{"type":"range","column":"x","matchValueType":"STRING","lower":""}
{"type":"range","column":"n","matchValueType":"LONG","lower":1.5}
{"type":"range","column":"n","matchValueType":"DOUBLE","lower":"1.5"}
{"type":"range","column":"n","matchValueType":"DOUBLE","lower":"x"}
{"type":"like","dimension":"x","pattern":"%"}
{"type":"like","dimension":"x","pattern":""}
{"type":"like","dimension":"n","pattern":"1%"}
{"type":"like","dimension":"missing","pattern":"%"}
{"type":"like","dimension":"x","pattern":"a%","escape":"ab"}
{"type":"regex","dimension":"x","pattern":"^$"}
{"type":"regex","dimension":"n","pattern":"\\."}
{"type":"search","dimension":"x","query":{"type":"contains","value":""}}
{"type":"search","dimension":"n","query":{"type":"contains","value":"5"}}
{"type":"columnComparison","dimensions":["x","y"]}
{"type":"columnComparison","dimensions":["x","missing"]}
{"type":"columnComparison","dimensions":["n","y"]}
{"type":"not","field":{"type":"columnComparison","dimensions":["x","y"]}}
{"type":"interval","dimension":"n","intervals":["1970-01-01/PT0.003S"]}
{"type":"arrayContainsElement","column":"x","elementMatchValueType":"STRING","elementMatchValue":null}
{"type":"arrayContainsElement","column":"n","elementMatchValueType":"DOUBLE","elementMatchValue":1.5}
{"type":"arrayContainsElement","column":"n","elementMatchValueType":"LONG","elementMatchValue":"7"}
{"type":"inType","column":"n","matchValueType":"FLOAT","sortedValues":[1.5,2.5]}
{"type":"expression","expression":"x == 'a'"}
{"type":"expression","expression":"array_length(x) == 1"}
{"type":"expression","expression":"n == 7"}
{"type":"expression","expression":"isnull(x)"}
{"type":"expression","expression":"x == y"}
{"type":"expression","expression":"n > 1"}
{"type":"expression","expression":"array_contains(mv_to_array(x), 'a')"}
{"type":"expression","expression":"scalar_in_array('a', x)"}
{"type":"expression","expression":"1 +"}
{"type":"expression"}
{"type":"selector","dimension":"x"}
{"type":"selector","dimension":"x","value":"a","optimize":false}
{"type":"in","dimension":"x"}
{"type":"and"}
{"type":"and","fields":[null]}
{"type":"or","fields":[{"type":"selector","dimension":"x","value":"a"},{"type":"null","column":"n"}]}
{"type":"not"}
{"type":"and","fields":[{"type":"not","field":{"type":"selector","dimension":"x","value":"a"}},{"type":"like","dimension":"y","pattern":"%"}]}
{"type":"selector","dimension":"i","value":"3"}
{"type":"bound","dimension":"i","lower":"10","ordering":"numeric"}
{"type":"bound","dimension":"i","lower":"10"}
"""

# Pattern of Joda's, behind it values that are read by it.
TIMES: dict[str, str] = {
    "EEE MMM dd HH:mm:ss z yyyy": r""" "Sun Mar 10 08:15:30 UTC 2024" "Sun Mar 10 08:15:30 PST 2024" "Sun Mar 10 08:15:30 GMT 2024" """,
    "yyyy-MM-dd HH:mm:ss z": r""" "2024-03-10 08:15:30 EST" "2024-03-10 08:15:30 CET" "2024-03-10 08:15:30 +01:00" """,
    "yyyy-MM-dd HH:mm:ss ZZZ": r""" "2024-03-10 08:15:30 Europe/Berlin" "2024-03-10 08:15:30 America/New_York" "2024-03-10 08:15:30 UTC" "2024-07-10 08:15:30 +01:00" """,
    "yyyy-MM-dd'T'HH:mm:ss.SSSZZZ": r""" "2024-03-10T08:15:30.123Asia/Kolkata" """,
    "yyyy-MM-dd HH:mm:ss Z": r""" "2024-03-10 08:15:30 +0100" "2024-03-10 08:15:30 Z" "2024-03-10 08:15:30 -08" "2024-03-10 08:15:30 +01:00:30" """,
    "dd.MM.yyyy": r""" "10.03.2024" "1.3.2024" "31.02.2024" "10.03.24" """,
    "MM/dd/yyyy": r""" "03/10/2024" "13/10/2024" "3/1/2024" """,
    "d MMMM yyyy": r""" "10 March 2024" "10 Mar 2024" "10 mars 2024" "10 MARCH 2024" """,
    "EEEE, d MMMM yyyy": r""" "Sunday, 10 March 2024" "Sun, 10 March 2024" "Sonntag, 10 March 2024" """,
    "yyyyMMddHHmmss": r""" "20240310081530" 20240310081530 "202403100815" """,
    "yyyyMMddHHmmssSSS": r""" "20240310081530123" """,
    "yyMMdd": r""" "240310" "990310" """,
    "yyyy-MM-dd HH:mm:ss,SSS": r""" "2024-03-10 08:15:30,123" "2024-03-10 08:15:30.123" "2024-03-10 08:15:30,1" """,
    "yyyy-MM-dd HH:mm:ss.SSSSSS": r""" "2024-03-10 08:15:30.123456" "2024-03-10 08:15:30.5" "2024-03-10 08:15:30.1234567" """,
    "yyyy-MM-dd'T'HH:mm:ss'Z'": r""" "2024-03-10T08:15:30Z" "2024-03-10T08:15:30" """,
    "yyyy-MM-ddTHH:mm:ss": r""" "2024-03-10T08:15:30" """,
    "HH:mm": r""" "08:15" "24:00" """,
    "dd HH": r""" "10 08" """,
    "DDD": r""" "065" "366" """,
    "dd/MM HH:mm": r""" "29/02 10:00" """,
    "ww-e": r""" "10-7" """,
    "yyyy-ww": r""" "2024-10" "2021-53" """,
    "xxxx-MM": r""" "2024-03" """,
    "h a": r""" "3 PM" """,
    "MM-dd": r""" "03-10" "02-29" """,
    "MMM yyyy": r""" "Mar 2024" "Sept 2024" "Sep 2024" """,
    "yyyy-MM-dd hh:mm:ss aa": r""" "2024-03-10 08:15:30 PM" "2024-03-10 08:15:30 pm" "2024-03-10 08:15:30 p.m." """,
    "yyyy-MM-dd KK:mm a": r""" "2024-03-10 00:15 PM" "2024-03-10 12:15 PM" """,
    "yyyy-MM-dd kk:mm": r""" "2024-03-10 24:15" "2024-03-10 00:15" """,
    "xxxx-'W'ww-e": r""" "2024-W10-7" "2024-W53-1" "2020-W53-7" """,
    "xxxx-ww": r""" "2024-10" """,
    "YYYY-MM-dd": r""" "2024-03-10" "-0044-03-15" """,
    "yyyy-MM-dd G": r""" "2024-03-10 AD" "0044-03-15 BC" """,
    "CCyy-MM-dd": r""" "2024-03-10" """,
    "yyyy-MM-dd''HH": r""" "2024-03-10'08" """,
    "yyyy-MM-dd'": r""" "2024-03-10" """,
    "uuuu-MM-dd": r""" "2024-03-10" """,
    "": r""" "2024-03-10" 1710058530123 """,
    " iso": r""" "2024-03-10" """,
    "ISO": r""" "2024-03-10" """,
    "Posix": r""" 1710058530 """,
    "seconds": r""" 1710058530 """,
    "yyyy-MM-dd HH:mm": r""" ["2024-03-10 08:15"] {"a": 1} true 5 2024.5 """,
}

# Around a change of clocks in America/New_York (2024-03-10) and in Europe/Berlin (2024-10-27).
_MOMENTS = (
    1_710_052_200_000,
    1_710_055_800_000,
    1_710_099_000_000,
    1_729_988_100_000,
    1_729_991_700_000,
    951_782_400_000,
)
GRANULARITIES = r"""
"MINUTE" | "FIVE_MINUTE" | "TEN_MINUTE" | "FIFTEEN_MINUTE" | "THIRTY_MINUTE" | "SIX_HOUR" | "EIGHT_HOUR" | "QUARTER" | "quarter" | "FORTNIGHT"
{"type":"period","period":"PT15M"} | {"type":"period","period":"PT15M","timeZone":"Asia/Kathmandu"} | {"type":"period","period":"PT45M"}
{"type":"period","period":"P1D","timeZone":"America/New_York"} | {"type":"period","period":"PT6H","timeZone":"America/New_York"} | {"type":"period","period":"PT1H","timeZone":"Europe/Berlin"}
{"type":"period","period":"P1W"} | {"type":"period","period":"P1W","origin":"2024-01-03T00:00:00Z"} | {"type":"period","period":"P2W","origin":"2024-01-01"}
{"type":"period","period":"P1M","origin":"2024-01-15"} | {"type":"period","period":"P1M","origin":"2024-01-31"} | {"type":"period","period":"P3M"} | {"type":"period","period":"P3M","origin":"2024-02-01"}
{"type":"period","period":"P1Y","origin":"2024-07-01"} | {"type":"period","period":"P5Y"} | {"type":"period","period":"P10D","origin":"2024-03-01T12:00:00+01:00"}
{"type":"period","period":"P1D","origin":"2024-03-09T06:00:00Z","timeZone":"America/New_York"} | {"type":"period","period":"P1DT12H"} | {"type":"period","period":"P1M1D"}
{"type":"period","period":"P1D","timeZone":"+05:30"} | {"type":"period","period":"P1D","timeZone":"EST"} | {"type":"period","period":"P1D","timeZone":"Nowhere/Land"} | {"type":"period","period":"P1D","timeZone":null,"origin":null}
{"type":"period","period":"PT0S"} | {"type":"period","period":"-P1D"} | {"type":"period","period":"1 day"} | {"type":"period"} | {"type":"period","period":"PT0.5S"}
{"type":"duration","duration":3600000,"origin":"1970-01-01T00:30:00Z"} | {"type":"duration","duration":"7000"} | {"type":"duration","duration":0} | {"type":"duration","duration":3600000,"origin":1800000} | {"type":"duration"}
{"type":"none"} | {"type":"nonsense"} | null | "PT1H" | {"type":"period","period":"PT1H","origin":"x"} | {"type":"period","period":"P1W","timeZone":"Asia/Tokyo"}
"""

VALUES = r"""null "" "a" "7" "-2.5" "1e3" " 7 " "1,000" "1,5" "+5" "5." ".5" "5d" "0x1F" "NaN" "Infinity" "9223372036854775808" "true" 0 2.5 -2.9 1e10 1e300
9223372036854775807 9223372036854775808 true [1,2] [3] ["4"] ["a"] [] [null] ["5",null] [2.5] {"k":1} {} "\u0661" """
METRICS = (
    "longSum",
    "longMax",
    "doubleSum",
    "doubleMin",
    "floatSum",
    "floatMin",
    "longFirst",
    "doubleLast",
    "floatAny",
    "stringFirst",
    "stringLast",
    "stringAny",
    "count",
)

_CSV = {"type": "csv", "columns": ["t", "a", "b"]}
_TSV = {"type": "tsv", "columns": ["t", "a", "b"]}
_TYPED: dict[str, Any] = {"useSchemaDiscovery": True}
_DISCOVERING: tuple[dict[str, Any], ...] = (
    {"dimensions": []},
    _TYPED,
    {"dimensions": ["x"], "includeAllDimensions": True},
)
_LISTED = {"listDelimiter": "|"}
# Name, records, what the format has besides, whether columns are found by their values.
_OF_CSV: tuple[tuple[str, str, dict[str, Any], bool], ...] = (
    ("lines end in CR LF", "0,x,1\r\n1,y,2\r\n", {}, False),
    ("only commas", ",,\n0,x,1", {}, False),
    ("a delimiter at the end", "0,x,1,", {}, False),
    ("quoted and empty", '0,"",""', {}, False),
    ("a quoted blank", '0," ",1', {}, False),
    ("blanks around quotes", '0, "x" ,1', {}, False),
    ("text behind a quote", '0,"x"y,1', {}, False),
    ("a quote in quotes", '0,"a""b""",1', {}, False),
    ("three quotes", '0,""",1', {}, False),
    ("single quotes", "0,'x,y',1", {}, False),
    ("a backslash before a quote", '0,"a\\"b",1', {}, False),
    ("a tab", "0,\tx\t,1", {}, False),
    ("letters beyond ASCII", "0,é😀,1", {}, False),
    ("a null by word", "0,null,NULL", {}, False),
    (
        "numbers tried",
        "0,007,-0\n1,1L,1f\n2,+5,5.\n3,NaN,0x1F\n4, 5 ,1e3\n5,.5,1_0\n6,1e400,99999999999999999999",
        {"tryParseNumbers": True},
        True,
    ),
    ("numbers tried, as strings", "0,007,1e3", {"tryParseNumbers": True}, False),
    ("booleans tried", "0,true,false", {"tryParseNumbers": True}, True),
    ("a list of numbers", "0,1|2|3,1", {**_LISTED, "tryParseNumbers": True}, True),
    ("a list of mixed ones", "0,1|x|2.5,1", {**_LISTED, "tryParseNumbers": True}, True),
    ("a list in quotes", '0,"a|b,c",1', _LISTED, False),
    ("a list with empty parts", "0,a||b|,|", _LISTED, False),
    ("a list of one delimiter", "0,|,1", _LISTED, True),
    ("a delimiter of lists that patterns know", "0,a.b,1", {"listDelimiter": "."}, False),
    ("a delimiter of lists of two letters", "0,a||b|c,1", {"listDelimiter": "||"}, False),
    ("lists by the comma", "0,x,1", {"listDelimiter": ","}, False),
    ("lists by nothing", "0,x,1", {"listDelimiter": ""}, False),
    ("skipped, more than there are", "junk", {"skipHeaderRows": 5}, False),
    ("skipped, two", "junk,a\nmore\n0,x,1", {"skipHeaderRows": 2}, False),
    ("skipped, below none", "0,x,1", {"skipHeaderRows": -1}, False),
    ("columns twice", "0,x,1", {"columns": ["t", "a", "a"]}, False),
    ("no columns in the list", "0,x,1", {"columns": []}, False),
    ("a column with a comma", "0,x,1", {"columns": ["t", "a,b", "c"]}, False),
    ("an empty column", "0,x,1", {"columns": ["t", "", "b"]}, False),
    ("a null column", "0,x,1", {"columns": ["t", None, "b"]}, False),
    ("header: quoted", '"t","a b"\n0,x', {"columns": None, "findColumnsFromHeader": True}, False),
    ("header: twice the same", "t,a,a\n0,x,y", {"columns": None, "findColumnsFromHeader": True}, False),
    ("header: an empty name", "t,,b\n0,x,y", {"columns": None, "findColumnsFromHeader": True}, False),
    ("header: blanks", "t, a ,b\n0,x,y", {"columns": None, "findColumnsFromHeader": True}, False),
    ("header: fewer names", "t,a\n0,x,y", {"columns": None, "findColumnsFromHeader": True}, False),
    ("header: alone", "t,a", {"columns": None, "findColumnsFromHeader": True}, False),
    ("header: neither", "0,x", {"columns": None, "findColumnsFromHeader": False}, False),
    (
        "header: skipped first",
        "junk\nmore\nt,a\n0,x",
        {"columns": None, "findColumnsFromHeader": True, "skipHeaderRows": 2},
        False,
    ),
)
_OF_TSV: tuple[tuple[str, str, dict[str, Any], bool], ...] = (
    ("lines end in CR LF", "0\tx\t1\r\n1\ty\t2\r\n", {}, False),
    ("an open quote", '0\t"x\t1', {}, False),
    ("blanks", "0\t x \t1", {}, False),
    ("a tab at the end", "0\tx\t1\t", {}, False),
    ("a bar", "0|x|1", {"delimiter": "|"}, False),
    ("a comma", '0,"x,y",1', {"delimiter": ","}, False),
    ("a dot", "0.x.1", {"delimiter": "."}, False),
    ("a letter", "0yxy1", {"delimiter": "y"}, False),
    ("no delimiter", "0\tx\t1", {"delimiter": ""}, False),
    ("a null delimiter", "0\tx\t1", {"delimiter": None}, False),
    ("lists by control-A", "0\tp\x01q\t1", {}, False),
    ("lists by a bar", "0\tp|q|\t1", _LISTED, False),
    ("lists by the tab", "0\tp\tq", {"listDelimiter": "\t"}, False),
    ("lists, typed", "0\t1|2\tx|y", {**_LISTED, "tryParseNumbers": True}, True),
    ("numbers tried", "0\t007\t1e3\n1\t1.0\t-0.0", {"tryParseNumbers": True}, True),
    (
        "header: skipped first",
        "junk\nt\ta\n0\tx",
        {"columns": None, "findColumnsFromHeader": True, "skipHeaderRows": 1},
        False,
    ),
    ("header: twice the same", "t\ta\ta\n0\tx\ty", {"columns": None, "findColumnsFromHeader": True}, False),
    ("header: an empty name", "t\t\tb\n0\tx\ty", {"columns": None, "findColumnsFromHeader": True}, False),
    ("null options", "0\tx\t1", {"listDelimiter": None, "findColumnsFromHeader": None, "tryParseNumbers": None}, False),
)

NESTED = r"""{"a":1,"b":{"c":[1,{"d":null}]}} | {"a":{}} | {"a":[]} | {"":1} | {"a.b":1} | [1,[2,[3]]] | [{"a":1},{"a":2}] | [1,"a",null,true] | [null,null] | [[],[]] | [1,2.5] | [true,1] | [9223372036854775807,1.5] | [1e300]
{"a":1.0,"b":1e2,"c":-0.0,"d":12345678901234567890} | {"a":"é😀\u0000"} | {"a":true,"b":false,"c":null} | "{\"a\":1}" | [{}] | [[1,"a"]] | [["a"],["b"]] | [[1],[2.5]]"""


def asked_of_records() -> Iterator[Asked]:
    """All of them."""
    yield from _transforms()
    yield from _nested()
    for text in (line for line in FILTERS.splitlines() if line):
        dims = {"dimensions": [{"type": "long", "name": "i"}]}
        yield "filters of lists", text, {"data": LISTED, "condition": json.loads(text), "dimensions": dims}
    yield from _granularities()
    yield from _metrics()
    yield from _delimited()


def _transforms() -> Iterator[Asked]:
    data = json.dumps(_RECORD)
    for text in (part.strip() for line in TRANSFORMS.strip().splitlines() for part in line.split(" | ")):
        made = [_transform(*each.split(" = ", 1)) for each in text.split("; ")]
        names = dict.fromkeys(["x", "y", *(t["name"] for t in made if t["name"] != "__time")])
        dims = {"dimensions": [{"type": "auto", "name": name} for name in names]}
        yield "transforms", text, {"data": data, "transforms": made, "dimensions": dims}
    for kind in KINDS:
        for expression in (
            "y",
            "d",
            "x",
            "l",
            "mv",
            "o",
            "n",
            "[]",
            "array(1, 'a')",
            "array('a', null)",
            "d > 1",
            "1e10",
            "concat(mv, '-')",
        ):
            dims = {"dimensions": [{"type": kind, "name": "z"}]}
            name = f"{expression} in a dimension of type {kind}"
            yield "transforms", name, {"data": data, "transforms": [_transform("z", expression)], "dimensions": dims}
    shadowed = [_transform("x", "concat(x, '!')")]
    yield (
        "transforms",
        "a filter sees what is made",
        {"data": data, "transforms": shadowed, "condition": _FILTERED_BY_MADE, "dimensions": {"dimensions": ["x"]}},
    )
    seen = {"type": "expression", "expression": "x == 'a!'"}
    yield (
        "transforms",
        "so does its expression",
        {"data": data, "transforms": shadowed, "condition": seen, "dimensions": {"dimensions": ["x"]}},
    )
    for found in _DISCOVERING:
        made = [_transform("x", "y * 2"), _transform("z", "d")]
        yield "transforms", f"discovery: {json.dumps(found)}", {"data": data, "transforms": made, "dimensions": found}


def _transform(name: str, expression: str) -> dict[str, Any]:
    return {"type": "expression", "name": name.strip("'"), "expression": expression}


def _nested() -> Iterator[Asked]:
    for value in (part.strip() for line in NESTED.splitlines() for part in line.split(" | ")):
        for kind in ("json", "auto", "string"):
            dims = {"dimensions": [{"type": kind, "name": "x"}]}
            yield "nested", f"{kind}: {value}", {"data": f'{{"t": 0, "x": {value}}}', "dimensions": dims}
        yield "nested", f"discovered: {value}", {"data": f'{{"t": 0, "x": {value}}}', "dimensions": _TYPED}


def _granularities() -> Iterator[Asked]:
    data = "\n".join(json.dumps({"t": t, "g": i}) for i, t in enumerate(_MOMENTS))
    for text in (part.strip() for line in GRANULARITIES.strip().splitlines() for part in line.split(" | ")):
        granularity = {"rollup": True, "queryGranularity": json.loads(text), "segmentGranularity": "ALL"}
        metrics = [{"type": "count", "name": "m"}]
        asked = {"data": data, "dimensions": {"dimensions": ["g"]}, "metrics": metrics, "granularity": granularity}
        yield "granularities", text, asked


def _metrics() -> Iterator[Asked]:
    hourly = {"rollup": True, "queryGranularity": "HOUR", "segmentGranularity": "DAY"}
    usual = [(kind, value) for kind in METRICS for value in values_in(VALUES)]
    endless = [(kind, value) for kind in ("longSum", "longMin", "longLast") for value in values_in(ENDLESS)]
    for kind, value in usual + [pair for pair in endless if pair not in usual]:
        metric = {"type": kind, "name": "m"} | ({} if kind == "count" else {"fieldName": "v"})
        data = f'{{"t": 0, "g": "x", "v": {value}}}'
        asked = {"data": data, "dimensions": {"dimensions": ["g"]}, "metrics": [metric], "granularity": hourly}
        if kind != "count":
            yield "metrics of values", f"{kind}: {value}", asked
        else:
            yield "metrics of values", f"rows of: {value}", asked | {"dimensions": {"dimensions": ["v"]}}


def _delimited() -> Iterator[Asked]:
    for kind, usual, every in (("csv", _CSV, _OF_CSV), ("tsv", _TSV, _OF_TSV)):
        for name, data, more, typed in every:
            written = {k: v for k, v in {**usual, **more}.items() if k != "columns" or v is not None}
            dims = _TYPED if typed else _DISCOVERING[0]
            yield "delimited", f"{kind}: {name}", {"data": data, "input_format": written, "dimensions": dims}


def values_in(text: str) -> list[str]:
    """The JSON values that stand one after the other in a text, each as it is written."""
    decoder, found, rest = json.JSONDecoder(), [], text.replace("\n", " ").strip()
    while rest:
        end = decoder.raw_decode(rest)[1]
        found.append(rest[:end])
        rest = rest[end:].lstrip()
    return found
