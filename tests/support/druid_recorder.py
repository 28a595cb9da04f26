"""Records what a real Druid answers: ``python -m tests.support.druid_recorder http://localhost:8081``.

The address is an Overlord's, whose sampler reads records and evaluates transforms and filters. The answers go to
``tests/golden`` with Druid's version in them: ``druid_expressions.json`` has few expressions with values of every kind,
``druid_sampler.json`` what it answers to each body of ``druid_corpus``. Tests hold ours against them and need no Druid.
``druid_overlord.json`` has what the Overlord says of itself and of its tasks, ``druid_walk.json`` what a client's calls
get, ``druid_specs.json`` what its GET shows of specs, ``druid_supervisors.json`` its list of supervisors. The name of
one of them behind the address (``expressions``, ``sampler``, ``overlord``, ``walk``, ``specs``, ``list``) records that
one alone; the name of a section behind ``sampler`` that section, and what was not recorded before. Of the section
``kafka`` records are in topics: a broker's address comes last.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support import druid_overlord, druid_specs, druid_walk
from tests.support.druid_corpus import GOLDEN as SAMPLER
from tests.support.druid_corpus import Case, cases
from tests.support.druid_kafka import BROKER, TOPIC
from tests.support.druid_topics import written

GOLDEN = Path(__file__).parent.parent / "golden" / "druid_expressions.json"
# What stands in the field x, as JSON; the fields s, l, d are "a", 3 and 2.5 in every record, and there is no field n.
VALUES = """null "" "a" "ab" "Ab c " " 7" "7" "-2.5" "1e3" "true" "TRUE" "ß é Σ 😀" "\\u0000" 0 1 5 -5 9007199254740993
9223372036854775807 -9223372036854775808 1.5 -2.5 -0.5 1e10 1e-5 0.0 -0.0 1.7e308 true false [1,2] ["a"] {"k":1} []"""
EXPRESSIONS = """
x | 5 | -5 | 1.50 | 1e3 | 'q' | null | n | X | "x" | __time
x + 1 | x + l | x + d | x + s | s + x | x + n | n + n | x - 1 | 1 - x | x - l - 1 | x * 2 | x * 1.5 | x * x
(x + l) * 2
x + l * 2 - 1 | -l | -d | --l | - l * 2 | 2 - -l | 2 - 3 - 4 | -n
x == 5 | x == 1.5 | x == s | x == '7' | x == n | n == n | x != 5 | x != s | x < 2 | x <= 1.5 | x > 1 | x >= 5 | l < d
x == 5 == 1 | 5 > 3 > 1 | 1 < 2 == 1 | x + 1 > 2 * 2
x && 1 | 1 && x | x || 0 | 0 || x | x && n | n && x | x || n | n || x | !x | !n | !!x | 1 || 0 && 0 | 0 && 0 || 1
!(x == 5) | x > 1 && x < 3 | x == 'a' || x == 'ab' | x * 2 > l || s == 'b' | (x || 0) && (l || 0)
abs(x) | abs(-l) | abs(d - 3) | abs(n) | ceil(x) | floor(x) | sqrt(x) | sqrt(n) | floor(d * 2) | ABS(x)
concat(x) | concat(x, '-', l) | concat(x, n) | concat('a', x, 'é') | concat(s, upper(s))
upper(x) | lower(x) | UPPER(x) | upper(n) | lower(upper(x)) | upper(concat(s, x))
trim(x) | ltrim(x) | rtrim(x) | trim(n) | trim(' a b ') | ltrim(' a b ') | rtrim(' a b ')
replace(x, 'a', 'bb') | replace(x, 'a', '') | replace(x, 'b', 'a') | replace(n, 'a', 'b') | replace('aaa', 'aa', 'b')
contains_string(x, 'a') | contains_string(x, '7') | contains_string(n, 'a') | contains_string(upper(s), 'A')
isnull(x) | notnull(x) | isnull(n) | notnull(n) | isnull(x + 1) | notnull(upper(x))
nvl(x, 'd') | nvl(x, l) | nvl(n, x) | nvl(x, n) | nvl(upper(x), 'none') | nvl(x == 5, 0)
coalesce(n, x, 'e') | coalesce(x)
if(x > 1, 'a', 'b') | if(x, 'y', 'n') | if(n, 1, 2) | if(x == 'a', s, n) | if(isnull(x), 0, 1) | if(x, d, n)
case_searched(x > 1, 'big', x == 1, 'one') | case_searched(x > 1, 1) | case_searched(x > 1, 'big', 'small')
case_searched(isnull(x), 'none', x == 'a', 'an a', notnull(x), 'other')
x / 2 | x / d | 7 / x | x % 2 | x % d | x ^ 2 | 2 ^ x | -x | case_simple(x, 1, 'one', 'a', 'an a', 'other') | x != x
cast(x, 'LONG') | cast(x, 'DOUBLE') | cast(x, 'STRING') | cast(x, 'ARRAY<STRING>') | cast(x, 'ARRAY<LONG>')
istrue(x)
notdistinctfrom(x, 5) | like(x, 'a%') | like(x, '%7%') | regexp_extract(x, '[0-9]+') | regexp_replace(x, '[a-b]', '-')
strlen(x) | substring(x, 0, 1) | substring(x, 1, -1) | strpos(x, 'b') | left(x, 1) | right(x, 1) | reverse(x)
repeat(x, 2)
lpad(x, 3, '0') | rpad(x, 3, '0') | parse_long(x) | parse_long(x, 16) | format('%s', x) | format('%d', x)
format('%.1f', x)
icontains_string(x, 'A') | trim(x, 'a7') | timestamp_floor(x, 'PT1H') | timestamp_ceil(x, 'P1D') | timestamp_format(x)
timestamp_parse(x) | timestamp_shift(x, 'P1D', 1) | timestamp_extract(x, 'YEAR') | timestamp(x) | bitwiseAnd(x, 3)
div(x, 2)
max(x, l) | min(x, d) | pow(x, 2) | round(x) | round(x, -1) | safe_divide(x, 2) | log(x) | signum(x)
bitwiseComplement(x)
greatest(x, l) | least(x, s) | hypot(x, 1) | scalb(x, 1) | getExponent(x) | atan2(x, 1) | rint(x) | copySign(x, -1)
array(x, l) | array(x, s) | array_length(x) | array_offset(x, 0) | array_contains(x, 'a') | array_contains([1, 2], x)
array_append(x, 1) | array_append(['a'], x) | array_concat(x, [1]) | array_set_add([1.5], x) | array_to_string(x, '-')
scalar_in_array(x, [1, 5]) | array_slice(x, 0, 1) | array_offset_of([1, 5], x) | string_to_array(x, 'b')
mv_to_array(x)
map((y) -> y + 1, x) | filter((y) -> y > 0, x) | any((y) -> y == 'a', x) | fold((y, acc) -> concat(acc, y), x, 'z')
json_value(x, '$.k') | json_query(x, '$') | json_object('k', x) | to_json_string(x) | json_keys(x, '$')
try_parse_json(x)
human_readable_decimal_format(x) | human_readable_binary_byte_format(x, 1) | ipv4_parse(x) | ipv4_stringify(x)
"""
CONDITIONS = """
x | x == 5 | x != 5 | !(x == 5) | isnull(x) | notnull(x) | x > 1 | contains_string(x, 'a') | x + 1 | 0.5 | 'true' | 'x'
x == 'a' || x == 7 | x == 'a' && l == 3 | n | n || 1 | if(x > 1, 1, 0)
"""


def listed(texts: str) -> list[str]:
    """What stands between bars or at the end of a line."""
    return [e.strip() for line in texts.strip().splitlines() for e in line.split(" | ")]


def values() -> list[str]:
    """The JSON texts, which hold blanks."""
    decoder, found, rest = json.JSONDecoder(), [], VALUES.replace("\n", " ")
    while rest:
        end = decoder.raw_decode(rest)[1]
        found.append(rest[:end])
        rest = rest[end:].lstrip()
    return found


def letters() -> list[str]:
    """Every letter that has another form in upper or lower case."""
    every = map(chr, [*range(0x20, 0xD800), *range(0xE000, 0x20000)])
    return [letter for letter in every if letter.upper() != letter or letter.lower() != letter]


def _sampled(overlord: str, fields: Sequence[str], expressions: Sequence[str], condition: Any) -> Any:
    records = [f'{{"t":0,"i":{i},"x":{x},"s":"a","l":3,"d":2.5}}' for i, x in enumerate(fields)]
    transforms = [{"type": "expression", "name": f"r{i}", "expression": e} for i, e in enumerate(expressions)]
    results = [{"type": "auto", "name": t["name"]} for t in transforms]
    schema = {
        "dataSource": "recorded",
        "timestampSpec": {"column": "t", "format": "millis"},
        "dimensionsSpec": {"dimensions": [{"type": "long", "name": "i"}, *results]},
        "granularitySpec": {"rollup": False},
        "transformSpec": {"transforms": transforms, "filter": condition},
    }
    source = {"type": "inline", "data": "\n".join(records)}
    spec = {"dataSchema": schema, "ioConfig": {"type": "index", "inputSource": source, "inputFormat": {"type": "json"}}}
    body = {"type": "index", "spec": spec, "samplerConfig": {"numRows": len(records), "timeoutMs": 60000}}
    request = urllib.request.Request(
        f"{overlord}/druid/indexer/v1/sampler", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        return json.load(error)


def _made(overlord: str, fields: Sequence[str], expression: str) -> Iterator[str | None]:
    """Each record's result as JSON text; None where Druid makes no row of the record."""
    for field in fields:
        answer = _sampled(overlord, [field], [expression], None)
        told = isinstance(answer, list) and answer[0].get("parsed")
        yield _text(answer[0]["parsed"].get("r0")) if told else None


def _cased(overlord: str, every: list[str], function: str) -> Iterator[str]:
    for start in range(0, len(every), 500):
        part = [json.dumps(letter) for letter in every[start : start + 500]]
        yield from (row["parsed"]["r0"] for row in _sampled(overlord, part, [f"{function}(x)"], None))


def _kept(overlord: str, fields: list[str], condition: str) -> list[int]:
    answer = _sampled(overlord, fields, [], {"type": "expression", "expression": condition})
    return [row["parsed"]["i"] for row in answer if row.get("parsed")]


def _asked_of(overlord: str, case: Case, broker: str) -> Any:
    """Of records that are in a topic, from the topic."""
    if not case.records:
        return _asked(overlord, case.body)
    topic = written(broker, case.records)
    body = json.loads(json.dumps(case.body).replace(f'"{TOPIC}"', f'"{topic}"').replace(f'"{BROKER}"', f'"{broker}"'))
    return json.loads(json.dumps(_asked(overlord, body)).replace(topic, TOPIC))


def _asked(overlord: str, body: Any) -> Any:
    """What the sampler answers, errors too."""
    request = urllib.request.Request(
        f"{overlord}/druid/indexer/v1/sampler", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        return {"error": text}


def _row(entry: Any) -> dict[str, Any]:
    """What a record became: its row, without nulls, and whether something of it could not be read."""
    row = entry.get("parsed")
    told = {} if row is None else {"row": {k: v for k, v in row.items() if v is not None}}
    return told | ({"unparseable": True} if entry.get("unparseable") else {})


def sampled(answer: Any) -> Any:
    """Of a sampler's answer what is compared: a row for each record that is kept; "refused" without an answer."""
    if "data" not in answer:
        return "refused"
    return [_row(entry) for entry in answer["data"]]


def _record_sampler(overlord: str, version: str, wanted: str = "", broker: str = "") -> None:
    answers: dict[str, dict[str, Any]] = {}
    before = json.loads(SAMPLER.read_text(encoding="utf-8")) if wanted else {}
    for case in cases():
        known = before.get(case.section, {}).get(case.name) if case.section != wanted else None
        found = sampled(_asked_of(overlord, case, broker)) if known is None else known
        answers.setdefault(case.section, {})[case.name] = found
    parts = []
    for section, found in answers.items():
        lines = [f"    {_text(k)}: {_text(v)}" for k, v in found.items()]
        parts.append(f"  {json.dumps(section)}: {{\n" + ",\n".join(lines) + "\n  }")
    SAMPLER.write_text(f'{{\n  "druid": {json.dumps(version)},\n' + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _text(value: Any) -> str:
    """JSON; of Java's texts some hold halves of a character, which no file can."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() and not re.search("[\ud800-\udfff]", text) else json.dumps(value)


def main(overlord: str, wanted: str = "", section: str = "", broker: str = "") -> None:
    with urllib.request.urlopen(f"{overlord}/status") as answer:
        version = json.load(answer)["version"]
    recorders = {
        "sampler": _record_sampler,
        "expressions": _record_expressions,
        "overlord": druid_overlord.record,
        "walk": druid_walk.record,
        "specs": druid_specs.record,
        "list": druid_specs.record_list,
    }
    if section:
        _record_sampler(overlord, version, section, broker)
        return
    for name in [wanted] if wanted else recorders:
        recorders[name](overlord, version)


def _record_expressions(overlord: str, version: str) -> None:
    fields, every = values(), letters()
    found = {
        "druid": version,
        "values": fields,
        "expressions": {e: list(_made(overlord, fields, e)) for e in listed(EXPRESSIONS)},
        "conditions": {c: _kept(overlord, fields, c) for c in listed(CONDITIONS)},
        "letters": "".join(every),
        "upper": list(_cased(overlord, every, "upper")),
        "lower": list(_cased(overlord, every, "lower")),
    }
    GOLDEN.write_text(_written(found), encoding="utf-8")


def _written(found: dict[str, Any]) -> str:
    """JSON with a line for each expression."""
    parts = []
    for name, value in found.items():
        text = _text(value)
        if isinstance(value, dict):
            lines = [f"    {json.dumps(k)}: {_text(v)}" for k, v in value.items()]
            text = "{\n" + ",\n".join(lines) + "\n  }"
        parts.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"), *sys.argv[2:])
