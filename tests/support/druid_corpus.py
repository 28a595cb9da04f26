# ruff: noqa: E501 - what is asked stands in one line with its like
"""What is asked of Druid's sampler and of ours: one body each, by section.

``cases()`` gives them; ``druid_recorder`` keeps Druid's answers in ``tests/golden/druid_sampler.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.druid_jq import RECORD as OF_JQ
from tests.support.druid_jq import programs
from tests.support.druid_kafka import Record, asked_of_kafka, body_of
from tests.support.druid_metrics import asked_of_expressions
from tests.support.druid_neighbours import EXPRESSIONS as NEIGHBOURS
from tests.support.druid_neighbours import TIMES as TIMES_BESIDE
from tests.support.druid_paths import SEARCHED, SEARCHES
from tests.support.druid_records import TIMES as MORE_TIMES
from tests.support.druid_records import asked_of_records, values_in
from tests.support.druid_sketches import asked as asked_of_sketches
from tests.support.druid_texts import EXPRESSIONS as MORE_EXPRESSIONS

GOLDEN = Path(__file__).parent.parent / "golden" / "druid_sampler.json"


@dataclass(frozen=True)
class Case:
    """``name`` is what is tried, and unique within its section."""

    section: str
    name: str
    body: dict[str, Any]
    records: tuple[Record, ...] = ()  # in a topic; without any they are in the body


# The record that expressions see. It has a value of each kind that JSON has.
RECORD = r"""{"t": 1710058530123, "s": "Hello Wörld 😀", "a": "abcabc", "l": 7, "neg": -3, "d": 2.5, "n": null, "e": "",
"num": "42", "dnum": "-2.75", "hex": "0x1F", "b": true, "f": false, "arr": [1, 2, 3], "darr": [1.5, -2.5], "sarr": ["x",
"y", null, "x"], "earr": [], "o": {"a": {"b": 5, "c": "z"}, "k": [1, 2, {"m": true}], "q": null}, "j":
"{\"a\":1,\"b\":[2.5,\"t\"]}", "ts": "2024-03-10T08:15:30.123Z", "day": "2024-02-29", "sql": "2024-03-10 08:15:30", "ip":
"192.168.3.7", "big": 9223372036854775807, "pad": "  x  ", "csv": "a,b,,c", "ms": 1710058530123, "zero": 0, "one": 1,
"tab": "a\tb\nc", "sharp": "Straße ΑΣ İ ﬁ", "odd name": "o", "é": "accent", "mv": ["p", "q"]}""".replace("\n", " ")

EXPRESSIONS: dict[str, str] = {
    "syntax": r"""
l | "l" | "odd name" | é | "é" | 'text' | 'it\'s' | 'a\\b' | 'a\nb' | '\u00e9' | 'tab\there' | '' | 5 | 5.0 | .5 | 1e3 | 1.5e-3 | null
missing | NULL | true | l+1*2 | (l+1)*2 | -l | - - l | !l | !!l | 2 ^ 3 ^ 2 | -2 ^ 2 | 2 ^ -1 | 10 - 3 - 2 | 100 / 10 / 2
1 < 2 == 1 | 1 || 0 && 0 | [1, 2, 3] | [1.5, 2] | ['a', 'b'] | ['a', null] | [] | [1 2 3] | <LONG>[] | <STRING>[] | <DOUBLE>[] | ARRAY<LONG>[1, 2]
[1, 'a'] | [null] | "a\"b" | l -- 1 | STRLEN(s) | Upper(a) | unknown_function(l) | upper(a | l + | 'open | l = 7 | l === 7 | case when l then 1 end
9223372036854775807 | 9223372036854775808 | -9223372036854775808 | l % 4 / 2 * 3 | l
""",
    "operators": r"""
l + 1 | l + d | l + num | num + 1 | s + a | s + l | n + 1 | n + s | e + a | big + 1 | arr + 1 | b + 1
l - 10 | d - 1 | s - 1 | l * d | l * big | num * 2 | l / 2 | neg / 2 | l / 2.0 | d / 2 | l / 0 | d / 0 | l / zero | 0.0 / 0 | num / 5 | s / 2 | n / 2
l % 4 | neg % 2 | d % 2 | l % 0 | d % 0 | neg % 2.5 | num % 5 | l ^ 2 | 2 ^ 0.5 | neg ^ 3 | 2 ^ neg | 2 ^ 63 | 2 ^ 64 | d ^ 2 | zero ^ neg | num ^ 2
l == 7 | l == 7.0 | l == '7' | num == 42 | s == a | n == n | n == 1 | b == 1 | b == true | arr == arr | arr == 1 | d == 2.5 | e == ''
l != 7 | s != a | n != 1 | l < 8 | l > 7.5 | l >= 7 | l <= num | s < a | a < s | a <= 'abcabd' | 'Z' < 'a' | '😀' < 'ﬁ' | n < 1 | '10' < '9' | num < 5
l && d | l && zero | zero && n | l && n | n && n | s && l | 'true' && 1 | 'TRUE' && 1 | b && 1 | l || n | zero || n | n || n | 0.5 || 0 | neg || 0
!zero | !s | !n | !'true' | !d | !neg | -s | -num | -n | -big | -d | d == d - 0 | l && n || 1
""",
    "general": r"""
cast(l, 'STRING') | cast(l, 'DOUBLE') | cast(d, 'LONG') | cast(neg, 'STRING') | cast('3.9', 'LONG') | cast('-3.9', 'LONG') | cast('x', 'LONG') | cast('x', 'DOUBLE')
cast(num, 'LONG') | cast(num, 'DOUBLE') | cast(d, 'STRING') | cast(1e21, 'STRING') | cast(1e-7, 'STRING') | cast(100000000.0, 'STRING') | cast(1234567.0, 'STRING') | cast(0.1 + 0.2, 'STRING')
cast(n, 'LONG') | cast(b, 'STRING') | cast('true', 'LONG') | cast('1e3', 'LONG') | cast(' 7 ', 'LONG') | cast('1_000', 'DOUBLE') | cast('Infinity', 'DOUBLE') | cast('0x10', 'LONG')
cast(arr, 'ARRAY<STRING>') | cast(arr, 'ARRAY<DOUBLE>') | cast(darr, 'ARRAY<LONG>') | cast(l, 'ARRAY<LONG>') | cast(arr, 'STRING') | cast(arr, 'LONG') | cast(sarr, 'ARRAY<LONG>') | cast(l, 'nonsense') | cast(l, 'string') | cast(1e300, 'LONG') | cast([5], 'LONG')
coalesce(n, l) | coalesce(n, n) | coalesce(n, e, 'x') | coalesce(l) | coalesce() | coalesce(missing, s, l)
if(l > 5, 'big', 'small') | if(n, 1, 2) | if(s, 1, 2) | if('true', 1, 2) | if(d, l, s) | if(1, n, 2) | if(zero, 1) | if(b, 'y', 'n') | if(l > 5, l, 'text')
nvl(n, 'd') | nvl(l, 'd') | nvl(e, 'd') | nvl(missing, n) | nvl(n, 5) | nvl(arr, 1) | nvl(o, 1)
like(s, 'Hello%') | like(s, '%ö%') | like(a, 'abc___') | like(a, 'ABC%') | like(n, '%') | like(e, '') | like('a%b', 'a\\%b', '\\') | like('a%b', 'a!%b', '!') | like('axb', 'a!%b', '!') | like(l, '7') | like(tab, 'a%c') | like('a.b', 'a.b') | like('axb', 'a.b') | like(a, 'abc') | like(s, '%😀') | like(s, '% _')
case_searched(l > 10, 'ten', l > 5, 'five', 'none') | case_searched(l > 10, 'ten') | case_searched(n, 1, 2) | case_searched(b, d, l) | case_searched(l > 5, s, l)
case_simple(l, 7, 'seven', 8, 'eight', 'other') | case_simple(s, 'x', 1) | case_simple(num, 42, 'yes', 'no') | case_simple(n, null, 'null', 'else') | case_simple(l, 7.0, 'd') | case_simple(l, 1, 2, 3)
isnull(n) | isnull(e) | isnull(l) | isnull(missing) | isnull(arr) | notnull(n) | notnull(e) | notnull(o) | isnull(earr)
istrue(l) | isfalse(l) | nottrue(n) | notfalse(n) | istrue(n) | isfalse(zero) | istrue('true') | isnull(l, 1) | notdistinctfrom(n, n) | isdistinctfrom(n, l) | isdistinctfrom(l, 7) | notdistinctfrom(s, a)
bloom_filter_test(s, 'AAAAAAAA') | lookup(s, 'none') | typeof(l) | md5(s) | sha1(a)
""",
    "strings": r"""
concat(a, '-', l) | concat(d, s) | concat(n, s) | concat(e, a) | concat() | concat(b) | concat(arr) | concat(1.0) | concat(1e10) | concat(o)
format('%s and %d', s, l) | format('%5d|%-5s|%05d', l, a, l) | format('%.2f', d) | format('%d', d) | format('%x %X %o', l, 255, 8) | format('%%') | format(n, 1) | format('no') | format('%s') | format('%s', n) | format('%,d', 1234567) | format('%e', 12345.678) | format('%10.3f|', d) | format('%b %c', l, 65) | format('%s %s', l, d) | format('%2$s %1$s', a, l) | format('%+d', l) | format('%S', a) | format('%s', arr)
parse_long('42') | parse_long('2A', 16) | parse_long(hex, 16) | parse_long('0x1F') | parse_long('x') | parse_long(' 42') | parse_long('-42') | parse_long('+42') | parse_long(n) | parse_long(l) | parse_long(d) | parse_long('1010', 2) | parse_long('zz', 36) | parse_long('') | parse_long('9223372036854775808') | parse_long('٤٢') | parse_long('12', 1) | parse_long('1_0')
regexp_extract(s, 'W.*d') | regexp_extract(s, '(\\w+) (\\w+)', 1) | regexp_extract(a, '(b)(c)', 2) | regexp_extract(a, 'x') | regexp_extract(n, 'x') | regexp_extract(l, '[0-9]') | regexp_extract(a, '(b)(x)?', 2) | regexp_extract(a, 'b', 5) | regexp_extract(a, '') | regexp_extract(a, '[') | regexp_extract(sharp, '\\w+') | regexp_extract(a, '(?i)BC') | regexp_extract(tab, 'a.b') | regexp_extract(tab, 'b.c') | regexp_extract(tab, '(?s)b.c') | regexp_extract(tab, '^c$') | regexp_extract(tab, '(?m)^c$') | regexp_extract(a, '(?<=a)b') | regexp_extract(a, '(a)bc\\1') | regexp_extract(s, '\\p{L}+ \\p{Lu}') | regexp_extract(a, 'b++c') | regexp_extract(s, 'l{2}') | regexp_extract('x\ty', '\\s') | regexp_extract('a b', '\\s')
regexp_like(a, 'bc') | regexp_like(a, '^bc') | regexp_like(s, 'wörld') | regexp_like(n, 'x') | regexp_like(e, '^$') | regexp_like(l, '^7$') | regexp_like(s, '\\d') | regexp_like(a, '(?=abc)') | regexp_like('٣', '\\d') | regexp_like('a\n', 'a$')
regexp_replace(a, 'b', 'X') | regexp_replace(a, '(b)(c)', '$2$1') | regexp_replace(s, '[aeiou]', '_') | regexp_replace(n, 'a', 'b') | regexp_replace(a, 'x', 'y') | regexp_replace(l, '7', '8') | regexp_replace(a, 'b', '\\$') | regexp_replace(a, '', '-') | regexp_replace(a, 'b*', '-') | regexp_replace(a, 'b', n) | regexp_replace(a, '(?<x>b)', '[${x}]') | regexp_replace(a, 'b', '$1') | regexp_replace(a, 'b', '$0$0') | regexp_replace(s, '😀', 'smile')
contains_string(s, 'W') | contains_string(s, 'w') | contains_string(n, 'x') | contains_string(l, '7') | contains_string(a, '') | contains_string(s, '😀') | contains_string(a, a) | icontains_string(s, 'WÖ') | icontains_string(s, 'hello') | icontains_string(n, 'a') | icontains_string(sharp, 'STRASSE') | icontains_string(l, '7')
replace(a, 'b', 'XX') | replace(a, '', '-') | replace(a, n, 'x') | replace(n, 'a', 'b') | replace(l, '7', '8') | replace(s, '😀', ':)') | replace(a, 'a', n) | replace(a, 'bc', '') | replace(a, 'a', l)
substring(s, 0, 3) | substring(s, 3, -1) | substring(s, 100, 2) | substring(s, 6, 100) | substring(s, 12, 1) | substring(s, 12, 2) | substring(n, 0, 1) | substring(l, 0, 1) | substring(s, -1, 2) | substring(a, 2, 0) | substring(s, 1) | substring(a, 1.7, 2) | substring(a, 6, 1) | substring(s, 13, 1)
right(a, 2) | right(a, 100) | right(a, 0) | right(s, 2) | right(n, 1) | right(l, 1) | right(a, -1) | left(a, 2) | left(s, 100) | left(n, 2) | left(a, 0) | left(s, 13) | left(a, 1.5) | left(a, '1') | right(a, n)
strlen(s) | strlen(e) | strlen(n) | strlen(l) | strlen(d) | strlen('😀😀') | strlen(b) | strlen(arr) | strlen(o) | strlen(sharp)
strpos(s, 'o') | strpos(s, 'z') | strpos(s, '😀') | strpos(a, 'b', 2) | strpos(a, 'b', 100) | strpos(a, 'b', -5) | strpos(n, 'a') | strpos(a, n) | strpos(a, '') | strpos(l, '7') | strpos('😀x', 'x')
trim(pad) | ltrim(pad) | rtrim(pad) | trim(a, 'ac') | ltrim(a, 'ab') | rtrim(a, 'cb') | trim(n) | trim(l) | trim(tab, 'ac') | trim(s, '😀') | trim(a, '') | trim('') | trim(a, n) | trim(tab) | rtrim('x\t\n ')
lower(s) | upper(s) | upper(sharp) | lower(sharp) | upper(n) | lower(l) | upper(d) | upper(b) | lower('ΑΣ') | lower('ΑΣΑ') | upper('ŉ ǰ') | upper('ǆ')
reverse(a) | reverse(s) | reverse(n) | reverse(l) | reverse(e) | reverse('e\u0301x')
repeat(a, 2) | repeat(a, 0) | repeat(a, -1) | repeat(n, 2) | repeat(s, 1) | repeat(l, 2) | repeat(a, n) | repeat(a, '2')
lpad(a, 8, 'xy') | lpad(a, 3, 'x') | lpad(a, 0, 'x') | lpad(a, 8, '') | lpad(a, -1, 'x') | lpad(n, 3, 'x') | lpad(l, 3, '0') | lpad(a, 8, n) | lpad(s, 15, '😀') | rpad(a, 8, 'xy') | rpad(a, 3, 'x') | rpad(a, 0, 'x') | rpad(l, 3, '0') | rpad(n, 3, 'x') | rpad(s, 14, '-') | rpad(a, 10, '')
""",
    "times": r"""
timestamp(ts) | timestamp(day) | timestamp('2024') | timestamp(n) | timestamp('x') | timestamp(sql, 'yyyy-MM-dd HH:mm:ss') | timestamp('2024-03-10T08:15:30+02:00') | timestamp('2024-W10') | timestamp(sql) | timestamp(l) | timestamp('2024-070')
unix_timestamp(ts) | unix_timestamp(day) | unix_timestamp('1969-12-31T23:59:59.5') | unix_timestamp(sql, 'yyyy-MM-dd HH:mm:ss')
timestamp_ceil(ms, 'PT1H') | timestamp_ceil(ms, 'P1D') | timestamp_ceil(__time, 'P1M') | timestamp_ceil(0, 'PT1H') | timestamp_ceil(ms, 'P1D', null, 'America/Los_Angeles') | timestamp_ceil(n, 'PT1H') | timestamp_ceil(ms, 'P1Y') | timestamp_ceil(ms, 'P1W')
timestamp_floor(ms, 'PT1H') | timestamp_floor(__time, 'PT15M') | timestamp_floor(ms, 'P1D') | timestamp_floor(ms, 'P1D', null, 'America/Los_Angeles') | timestamp_floor(ms, 'P1D', '', 'Asia/Kolkata') | timestamp_floor(ms, 'P1W') | timestamp_floor(ms, 'P1M') | timestamp_floor(ms, 'P3M') | timestamp_floor(ms, 'P1Y') | timestamp_floor(ms, 'P1Y', null, '-08:00') | timestamp_floor(-1, 'P1D') | timestamp_floor(ms, 'PT12H', '2024-01-01T06:00:00Z') | timestamp_floor(ms, 'P2D') | timestamp_floor(ms, 'P5M') | timestamp_floor(n, 'PT1H') | timestamp_floor(ts, 'PT1H') | timestamp_floor(ms, 'x') | timestamp_floor(ms, 'PT0S') | timestamp_floor(d, 'PT1S') | timestamp_floor(ms, 'P2W') | timestamp_floor(ms, 'P7D') | timestamp_floor(ms, 'PT90M') | timestamp_floor(ms, 'P1DT1H') | timestamp_floor(ms, 'PT1H', 0) | timestamp_floor(ms, 'P1M', ms) | timestamp_floor(-62135596800001, 'P1M') | timestamp_floor(ms, 'P1D', null, 'Nowhere/Land')
timestamp_shift(ms, 'P1D', 1) | timestamp_shift(ms, 'P1D', -2) | timestamp_shift(ms, 'P1M', 1) | timestamp_shift(1706659200000, 'P1M', 1) | timestamp_shift(ms, 'PT1H', 24, 'America/Los_Angeles') | timestamp_shift(ms, 'P1D', 1, 'America/Los_Angeles') | timestamp_shift(n, 'P1D', 1) | timestamp_shift(ms, 'P1Y', -1) | timestamp_shift(ms, 'P1D', 0) | timestamp_shift(1709164800000, 'P1Y', 1) | timestamp_shift(ms, 'P1Y2M3DT4H5M6S', 2)
timestamp_extract(ms, 'EPOCH') | timestamp_extract(ms, 'SECOND') | timestamp_extract(ms, 'MINUTE') | timestamp_extract(ms, 'HOUR') | timestamp_extract(ms, 'HOUR', 'America/Los_Angeles') | timestamp_extract(ms, 'DAY') | timestamp_extract(ms, 'DOW') | timestamp_extract(ms, 'ISODOW') | timestamp_extract(ms, 'DOY') | timestamp_extract(ms, 'WEEK') | timestamp_extract(ms, 'MONTH') | timestamp_extract(ms, 'QUARTER') | timestamp_extract(ms, 'YEAR') | timestamp_extract(ms, 'ISOYEAR') | timestamp_extract(ms, 'DECADE') | timestamp_extract(ms, 'CENTURY') | timestamp_extract(ms, 'MILLENNIUM') | timestamp_extract(ms, 'MILLISECOND') | timestamp_extract(ms, 'MICROSECOND') | timestamp_extract(n, 'YEAR') | timestamp_extract(ms, 'x') | timestamp_extract(ms, 'year') | timestamp_extract(-1, 'EPOCH') | timestamp_extract(1704067199999, 'WEEK') | timestamp_extract(ts, 'YEAR')
timestamp_parse(ts) | timestamp_parse(sql) | timestamp_parse(day) | timestamp_parse('x') | timestamp_parse(n) | timestamp_parse(sql, 'yyyy-MM-dd HH:mm:ss') | timestamp_parse(sql, 'yyyy-MM-dd HH:mm:ss', 'America/Los_Angeles') | timestamp_parse(sql, null, 'Asia/Kolkata') | timestamp_parse('10/Mar/2024:08:15:30 +0100', 'dd/MMM/yyyy:HH:mm:ss Z') | timestamp_parse('2024-03-10T08:15:30+02:00') | timestamp_parse('2024') | timestamp_parse('2024-03-10 08:15:30.5') | timestamp_parse(l) | timestamp_parse('2024-03-10 08:15:30 ') | timestamp_parse('2024-02-30') | timestamp_parse('March 10, 2024', 'MMMM d, yyyy') | timestamp_parse('8:05 PM', 'h:mm a') | timestamp_parse('20240310', 'yyyyMMdd') | timestamp_parse('2024-03-10 08', null) | timestamp_parse('2024-03-10 08:15')
timestamp_format(ms) | timestamp_format(ms, 'yyyy-MM-dd') | timestamp_format(ms, 'HH:mm:ss.SSS', 'America/Los_Angeles') | timestamp_format(ms, 'EEE, d MMM yyyy') | timestamp_format(ms, 'EEEE MMMM') | timestamp_format(n) | timestamp_format(ms, 'yy') | timestamp_format(ms, 'xxxx-ww-e') | timestamp_format(ms, 'D') | timestamp_format(ms, 'h:mm a') | timestamp_format(ms, 'ZZ z', 'Europe/Berlin') | timestamp_format(-1) | timestamp_format(ms, null, 'Asia/Kolkata') | timestamp_format(ms, 'yyyy''T''MM') | timestamp_format(ms, 'yyyy\'T\'MM') | timestamp_format(ms, 'Q') | timestamp_format(ms, 'Y C G') | timestamp_format(ms, 'S SS SSSS') | timestamp_format(ms, 'K k H') | timestamp_format(ms, 'Z ZZZ', 'Europe/Berlin')
timestamp_format(timestamp_floor(__time, 'PT1H'), 'yyyy-MM-dd HH:00') | subtract_months(ms, 1706659200000, 'UTC') | subtract_months(1706659200000, ms, 'UTC')
""",
    "math": r"""
abs(neg) | abs(d) | abs(n) | abs(s) | abs(num) | abs(-9223372036854775807 - 1) | acos(0.5) | acos(2) | asin(0.5) | atan(1) | atan2(1, 2) | atan2(l, n) | atan2(s, 1)
bitwiseAnd(l, 3) | bitwiseAnd(d, 3) | bitwiseAnd(n, 1) | bitwiseAnd(s, 1) | bitwiseAnd(num, 6) | bitwiseComplement(l) | bitwiseComplement(d) | bitwiseComplement(neg) | bitwiseOr(l, 8) | bitwiseXor(l, 1) | bitwiseShiftLeft(1, 3) | bitwiseShiftLeft(1, 63) | bitwiseShiftLeft(1, 64) | bitwiseShiftRight(neg, 1) | bitwiseShiftRight(l, 1) | bitwiseShiftLeft(l, -1)
bitwiseConvertDoubleToLongBits(d) | bitwiseConvertDoubleToLongBits(l) | bitwiseConvertLongBitsToDouble(4612811918334230528) | bitwiseConvertLongBitsToDouble(d) | bitwiseConvertDoubleToLongBits(n)
cbrt(27) | cbrt(-27) | cbrt(d) | ceil(d) | ceil(neg) | ceil(-0.5) | ceil(s) | copySign(2, neg) | copySign(d, -0.0) | cos(1) | cosh(1) | cot(1) | cot(0) | div(7, 2) | div(neg, 2) | div(d, 2) | div(l, 0) | div(n, 1) | div(d, 0) | div(num, 5) | div(s, 1)
exp(1) | exp(1000) | exp(n) | expm1(1e-5) | floor(d) | floor(-2.5) | floor(l) | getExponent(8) | getExponent(0.1) | getExponent(0) | hypot(3, 4) | log(10) | log(0) | log(-1) | log(n) | log(s) | log(num) | log10(1000) | log1p(1e-5) | log(2.718281828459045)
max(l, 8) | max(l, d) | max(n, 1) | max(s, 1) | max(num, 5) | min(l, 8) | min(l, d) | min(d, n) | min(-0.0, 0.0) | max(l, 'x') | nextafter(d, 3) | nextafter(1, 0) | nextUp(d) | pi() | pi | pow(2, 10) | pow(2, 0.5) | pow(neg, 2) | pow(n, 2) | pow(0, -1) | pow(num, 2) | pow(neg, 0.5)
remainder(7, 4) | remainder(5, 3) | remainder(d, 1) | remainder(l, 0) | rint(d) | rint(3.5) | rint(-2.5) | rint(l) | round(d) | round(2.567, 2) | round(l, -1) | round(15, -1) | round(-2.5) | round(n) | round(s) | round(2.5, d) | round(1.005, 2) | round(1234.5678, -2) | round(big, -2) | round(0.5) | round(1e300, 2) | round(num)
safe_divide(l, 2) | safe_divide(l, 0) | safe_divide(d, 0) | safe_divide(n, 1) | safe_divide(0, 0) | safe_divide(l, 2.0) | safe_divide(s, 2) | scalb(3, 4) | scalb(d, -1) | scalb(1, n) | scalb(1, 2000) | signum(neg) | signum(d) | signum(0) | sin(1) | sinh(1) | sqrt(16) | sqrt(neg) | sqrt(d) | tan(1) | tanh(1) | toDegrees(3.141592653589793) | toRadians(180) | todegrees(1) | ulp(1) | ulp(d) | ulp(1e10)
""",
    "arrays": r"""
array(1, 2, 3) | array('a', 1) | array(1, 'a') | array(l, n) | array(n, l) | array() | array(d, l) | array(arr, arr) | array(1, 2.5)
array_length(arr) | array_length(n) | array_length(l) | array_length(earr) | array_length(s) | array_length([1, null]) | array_length(sarr)
array_offset(arr, 0) | array_offset(arr, 5) | array_offset(arr, -1) | array_offset(n, 0) | array_offset(sarr, 2) | array_offset(l, 0) | array_ordinal(arr, 1) | array_ordinal(arr, 0) | array_ordinal(arr, 4) | array_offset(arr, n) | array_offset(arr, '1')
array_contains(arr, 2) | array_contains(arr, 2.0) | array_contains(arr, '2') | array_contains(arr, [1, 2]) | array_contains(arr, [1, 9]) | array_contains(n, 1) | array_contains(arr, n) | array_contains(sarr, 'x') | array_contains(sarr, n) | array_contains([1, 2], arr) | array_contains(l, 7) | array_contains(arr, 'a')
array_overlap(arr, [3, 4]) | array_overlap(arr, [9]) | array_overlap(sarr, ['y']) | array_overlap(n, arr) | array_overlap(arr, n) | array_overlap(arr, ['1']) | scalar_in_array(2, arr) | scalar_in_array(9, arr) | scalar_in_array(n, arr) | scalar_in_array('2', arr) | scalar_in_array(2, n) | scalar_in_array(2.0, arr) | scalar_in_array(n, sarr) | scalar_in_array('x', sarr)
array_offset_of(arr, 2) | array_offset_of(arr, 9) | array_offset_of(sarr, 'y') | array_offset_of(arr, '2') | array_offset_of(n, 1) | array_ordinal_of(arr, 2) | array_ordinal_of(arr, 9) | array_offset_of(arr, arr) | array_offset_of(sarr, n)
array_prepend(0, arr) | array_prepend('0', arr) | array_prepend(1, n) | array_append(arr, 4) | array_append(arr, 'x') | array_append(arr, 2.7) | array_append(n, 1) | array_append(sarr, 5) | array_append(l, 8) | array_append([], 1) | array_append(arr, n)
array_concat(arr, [4, 5]) | array_concat(arr, ['x']) | array_concat(sarr, arr) | array_concat(arr, n) | array_concat(n, arr) | array_concat(arr, 9) | array_set_add(arr, 2) | array_set_add(arr, 0) | array_set_add(sarr, 'b') | array_set_add_all(arr, [5, 1]) | array_set_add_all(sarr, ['a', 'b']) | array_set_add([3, 1], 2) | array_concat(darr, arr)
array_slice(arr, 0, 2) | array_slice(arr, 1) | array_slice(arr, 2, 5) | array_slice(arr, -1, 2) | array_slice(arr, 2, 1) | array_slice(n, 0, 1) | array_slice(arr, 4) | array_slice(arr, 3) | array_slice(sarr, 1, 3)
array_to_string(arr, '-') | array_to_string(sarr, ',') | array_to_string(n, ',') | array_to_string(arr, n) | array_to_string(earr, ',') | array_to_string(l, ',') | array_to_string(darr, ';') | array_to_string([null], ',') | array_to_string([1e10, 0.1], ' ') | array_to_string([null, null], ',')
string_to_array(csv, ',') | string_to_array('a.b', '.') | string_to_array('a1b2', '[0-9]') | string_to_array(n, ',') | string_to_array('abc', '') | string_to_array('', ',') | string_to_array(l, ',') | string_to_array('a,b,,', ',') | string_to_array('abc', n) | string_to_array(',a', ',')
mv_to_array(mv) | array_to_mv(arr) | mv_to_array(l) | mv_harmonize_nulls(mv) | upper(mv) | mv + 'x' | strlen(mv) | mv == 'p' | array_to_string(mv, ',') | array_contains(mv, 'p') | concat(mv, '-') | length(a)
""",
    "apply": r"""
map((x) -> x + 1, arr) | map((x) -> x * 2.5, arr) | map((x) -> concat(x, '!'), sarr) | map((x) -> x + l, arr) | map((x) -> x, n) | map((x) -> x + 1, l) | map((l) -> l + 1, arr) | map((x) -> 1, earr) | map(x -> x + 1, arr) | map((x) -> upper(x), mv) | map((x) -> [x], arr) | map((x) -> nvl(x, 'none'), sarr) | map((x) -> if(x > 1, 'a', 1), arr)
filter((x) -> x > 1, arr) | filter((x) -> x > 9, arr) | filter((x) -> x == 'x', sarr) | filter((x) -> notnull(x), sarr) | filter((x) -> x, arr) | filter((x) -> 1, n) | filter((x) -> x > 1, l) | filter((x) -> 1, earr)
fold((x, acc) -> x + acc, arr, 0) | fold((x, acc) -> concat(acc, x), sarr, '') | fold((x, acc) -> x + acc, arr, 0.5) | fold((x, acc) -> x + acc, n, 5) | fold((x, acc) -> array_append(acc, x), arr, <LONG>[]) | fold((x, acc) -> acc, arr, s) | fold((x, acc) -> x + acc, earr, 3) | fold((x, acc) -> max(x, acc), arr, 0)
cartesian_map((x, y) -> x + y, arr, [10, 20]) | cartesian_map((x, y) -> concat(x, y), mv, ['1', '2']) | cartesian_fold((x, y, acc) -> x * y + acc, arr, [1, 2], 0) | cartesian_map((x, y) -> x, arr, n) | cartesian_map((x) -> x, arr)
any((x) -> x > 2, arr) | any((x) -> x > 9, arr) | any((x) -> x, n) | all((x) -> x > 0, arr) | all((x) -> x > 1, arr) | all((x) -> x, earr) | any((x) -> x == 'y', sarr) | all((x) -> x, n) | any((x) -> x, earr) | any((x) -> x > 5, l)
map((x) -> map((y) -> x + y, arr), arr) | map((x, y) -> x, arr) | fold((x) -> x, arr, 0) | map(1, arr) | any((x) -> array_contains(arr, x), [3, 4]) | map(() -> 1, arr)
""",
    "json": r"""
json_value(o, '$.a.b') | json_value(o, '$.a') | json_value(o, '$.k[0]') | json_value(o, '$.k[9]') | json_value(o, '$.a.c') | json_value(o, '$.a.b', 'STRING') | json_value(o, '$.a.b', 'DOUBLE') | json_value(o, '$.a.c', 'LONG') | json_value(o, '$.x.y') | json_value(n, '$.a') | json_value(o, '$.q') | json_value(o, '$') | json_value(o, 'a') | json_value(o, '$.k') | json_value(o, '$.k', 'ARRAY<LONG>') | json_value(j, '$.a') | json_value(arr, '$[1]') | json_value(o, '$[\'a\'][\'b\']') | json_value(o, '$.k[2].m') | json_value(arr, '$') | json_value(o, '$.k[-1]')
json_query(o, '$.a') | json_query(o, '$.a.b') | json_query(o, '$') | json_query(o, '$.x') | json_query(n, '$.a') | json_query(arr, '$') | json_query(o, '$.k') | json_query_array(o, '$.k') | json_query_array(o, '$.a') | json_query_array(o, '$.x')
json_object('x', l, 'y', s) | json_object('a', n) | json_object('a', arr) | json_object('a') | json_object() | json_object('o', o)
parse_json(j) | parse_json(s) | parse_json('5') | parse_json('"x"') | parse_json('null') | parse_json(n) | parse_json(l) | parse_json('{"a":') | parse_json('[1,2]') | try_parse_json(j) | try_parse_json(s) | try_parse_json(l) | try_parse_json('{"a":') | try_parse_json(n) | json_value(parse_json(j), '$.a') | json_value(parse_json(j), '$.b[1]')
to_json_string(o) | to_json_string(l) | to_json_string(s) | to_json_string(arr) | to_json_string(n) | to_json_string(d) | to_json_string('q"\n/é') | to_json_string(1e10) | to_json_string(darr) | to_json_string(sarr) | to_json_string('\u001f\u0001\u007f')
json_keys(o, '$.') | json_keys(o, '$') | json_keys(o, '$.a') | json_keys(o, '$.k') | json_keys(n, '$') | json_keys(o, '$.x') | json_keys(l, '$') | json_paths(o) | json_paths(arr) | json_paths(n) | json_paths(l) | json_paths(parse_json(j))
json_merge('{"a":1,"b":{"c":2}}', '{"b":{"d":3},"a":4}') | json_merge(o, '{"z":1}') | json_merge(n, '{"a":1}') | json_merge('{"a":[1]}', '{"a":[2]}') | json_merge('x', '{}') | json_merge(j, j) | json_merge('{"a":1}', n) | json_merge('{"a":1}', '5')
""",
    "reduction": r"""
greatest(l, 8, 3) | greatest(l, d) | greatest(s, a) | greatest(l, s) | greatest(n, 1) | greatest(n, n) | greatest() | greatest(num, 5) | greatest('a', 'B') | greatest(arr, 1) | greatest(d)
least(l, 8, 3) | least(l, d) | least(s, a) | least(n, 1) | least(l, '10') | least() | least('10', '9') | least(d, d)
""",
    "ip": r"""
ipv4_match(ip, '192.168.0.0/16') | ipv4_match(ip, '10.0.0.0/8') | ipv4_match('x', '10.0.0.0/8') | ipv4_match(n, '10.0.0.0/8') | ipv4_match(3232236295, '192.168.0.0/16') | ipv4_match(ip, '192.168.3.7') | ipv4_match(ip, 'x') | ipv4_match(ip, '192.168.3.7/33') | ipv4_match(d, '0.0.0.0/0') | ipv4_match(ip, '192.168.1.1/16')
ipv4_parse(ip) | ipv4_parse('x') | ipv4_parse(n) | ipv4_parse(3232236295) | ipv4_parse(neg) | ipv4_parse('1.2.3') | ipv4_parse('256.1.1.1') | ipv4_parse('01.02.03.04') | ipv4_parse(4294967296) | ipv4_parse(d) | ipv4_parse(' 1.2.3.4')
ipv4_stringify(3232236295) | ipv4_stringify(ip) | ipv4_stringify(n) | ipv4_stringify(neg) | ipv4_stringify('x') | ipv4_stringify(4294967296) | ipv4_stringify(d) | ipv4_stringify(0)
ipv6_match('75e9:efa4:29c6:85f6::232c', '75e9:efa4:29c6:85f6::/64') | ipv6_match('75e9:efa4:29c6:85f7::232c', '75e9:efa4:29c6:85f6::/64') | ipv6_match('x', '::/0') | ipv6_match(n, '::/0') | ipv6_match(ip, '::/0') | ipv6_match('::1', '::1') | ipv6_match('::1', '::1/128')
""",
    "formats": r"""
human_readable_binary_byte_format(1048576) | human_readable_binary_byte_format(1048576, 3) | human_readable_binary_byte_format(1000) | human_readable_binary_byte_format(-1048576) | human_readable_binary_byte_format(d) | human_readable_binary_byte_format(n) | human_readable_binary_byte_format(s) | human_readable_binary_byte_format(l, 4) | human_readable_binary_byte_format(big) | human_readable_binary_byte_format(1023)
human_readable_decimal_byte_format(1000000) | human_readable_decimal_byte_format(1000000, 3) | human_readable_decimal_byte_format(999) | human_readable_decimal_byte_format(-1234567, 1) | human_readable_decimal_format(1000000) | human_readable_decimal_format(1234567, 0) | human_readable_decimal_format(n) | human_readable_decimal_format(big) | human_readable_decimal_format(1999999) | human_readable_decimal_format(0)
""",
}


def _body(
    data: str,
    *,
    transforms: list[dict[str, Any]] | None = None,
    condition: Any = None,
    time: dict[str, Any] | None = None,
    dimensions: Any = None,
    input_format: Any = None,
    metrics: Any = None,
    granularity: dict[str, Any] | None = None,
) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "dataSource": "recorded",
        "timestampSpec": time or {"column": "t", "format": "millis"},
        "dimensionsSpec": {} if dimensions is None else dimensions,
        "granularitySpec": {"rollup": False, **(granularity or {})},
        "transformSpec": {"transforms": transforms or [], "filter": condition},
    }
    if metrics is not None:
        schema["metricsSpec"] = metrics
    io_config = {
        "type": "index",
        "inputSource": {"type": "inline", "data": data},
        "inputFormat": input_format or {"type": "json"},
    }
    return {
        "type": "index",
        "spec": {"type": "index", "dataSchema": schema, "ioConfig": io_config},
        "samplerConfig": {"numRows": 200, "timeoutMs": 15000},
    }


def _expressions() -> Iterator[Case]:
    for section, texts in (EXPRESSIONS | MORE_EXPRESSIONS | NEIGHBOURS).items():
        written = [e.strip() for line in texts.strip().splitlines() for e in line.split(" | ")]
        for text in dict.fromkeys(written):
            transform = {"type": "expression", "name": "r", "expression": text}
            result = {"dimensions": [{"type": "auto", "name": "r"}]}
            yield Case(f"expressions: {section}", text, _body(RECORD, transforms=[transform], dimensions=result))


_ROWS: list[dict[str, Any]] = [
    {"x": "a", "y": "a", "n": 1},
    {"x": "B", "y": "b", "n": 2.5},
    {"x": "abc", "y": 7, "n": -3},
    {"x": "", "y": "", "n": 0},
    {"x": None, "y": None, "n": None},
    {"x": 7, "y": "7", "n": 7},
    {"x": 7.5, "y": "x", "n": "7.5"},
    {"x": True, "y": "true", "n": 1e10},
    {"x": "10", "y": "9", "n": "x"},
    {"x": "Ünï 😀", "y": "ünï", "n": 100},
    {"x": ["a", "c"], "y": "a", "n": 3},
    {"x": "2024-03-10", "y": "50%", "n": 86400000},
]
_FILTERED = "\n".join(json.dumps({"t": i, "i": i, **row}, ensure_ascii=False) for i, row in enumerate(_ROWS))
FILTERS: list[str] = [
    '{"type":"selector","dimension":"x","value":"a"}',
    '{"type":"selector","dimension":"x","value":null}',
    '{"type":"selector","dimension":"x","value":""}',
    '{"type":"selector","dimension":"x","value":7}',
    '{"type":"selector","dimension":"x","value":"7.5"}',
    '{"type":"selector","dimension":"x","value":"true"}',
    '{"type":"selector","dimension":"n","value":"7"}',
    '{"type":"selector","dimension":"missing","value":null}',
    '{"type":"selector","dimension":"__time","value":"3"}',
    '{"type":"equals","column":"x","matchValueType":"STRING","matchValue":"a"}',
    '{"type":"equals","column":"n","matchValueType":"LONG","matchValue":7}',
    '{"type":"equals","column":"n","matchValueType":"DOUBLE","matchValue":7.5}',
    '{"type":"equals","column":"n","matchValueType":"LONG","matchValue":"7"}',
    '{"type":"equals","column":"x","matchValueType":"LONG","matchValue":7}',
    '{"type":"equals","column":"x","matchValueType":"STRING","matchValue":"7"}',
    '{"type":"equals","column":"x","matchValueType":"STRING","matchValue":null}',
    '{"type":"equals","column":"x","matchValue":"a"}',
    '{"type":"null","column":"x"}',
    '{"type":"null","column":"missing"}',
    '{"type":"columnComparison","dimensions":["x","y"]}',
    '{"type":"columnComparison","dimensions":["x","y","n"]}',
    '{"type":"columnComparison","dimensions":["x"]}',
    '{"type":"not","field":{"type":"selector","dimension":"x","value":"a"}}',
    '{"type":"not","field":{"type":"equals","column":"x","matchValueType":"STRING","matchValue":"a"}}',
    '{"type":"not","field":{"type":"null","column":"x"}}',
    '{"type":"and","fields":[{"type":"selector","dimension":"x","value":"a"},{"type":"selector","dimension":"y","value":"a"}]}',
    '{"type":"or","fields":[{"type":"selector","dimension":"x","value":"B"},{"type":"selector","dimension":"y","value":"9"}]}',
    '{"type":"and","fields":[]}',
    '{"type":"or","fields":[]}',
    '{"type":"in","dimension":"x","values":["a","7",null]}',
    '{"type":"in","dimension":"x","values":["abc"]}',
    '{"type":"in","dimension":"x","values":[]}',
    '{"type":"in","dimension":"n","values":["7","1"]}',
    '{"type":"inType","column":"n","matchValueType":"LONG","sortedValues":[1,7]}',
    '{"type":"bound","dimension":"x","lower":"a","upper":"b"}',
    '{"type":"bound","dimension":"x","lower":"a","lowerStrict":true}',
    '{"type":"bound","dimension":"x","upper":"a"}',
    '{"type":"bound","dimension":"n","lower":"1","upper":"10","ordering":"numeric"}',
    '{"type":"bound","dimension":"n","lower":"1","upper":"10","upperStrict":true,"lowerStrict":true,"ordering":"numeric"}',
    '{"type":"bound","dimension":"x","lower":"a","ordering":"alphanumeric"}',
    '{"type":"bound","dimension":"x","lower":"2","upper":"3","ordering":"strlen"}',
    '{"type":"bound","dimension":"x","lower":"7","ordering":"version"}',
    '{"type":"bound","dimension":"x","lower":"7","upper":"8","alphaNumeric":true}',
    '{"type":"range","column":"x","matchValueType":"STRING","lower":"a","upper":"b"}',
    '{"type":"range","column":"n","matchValueType":"LONG","lower":1,"upper":10}',
    '{"type":"range","column":"n","matchValueType":"DOUBLE","lower":1,"lowerOpen":true,"upper":7.5}',
    '{"type":"range","column":"n","matchValueType":"LONG","lower":2}',
    '{"type":"range","column":"n","matchValueType":"LONG","upper":2,"upperOpen":true}',
    '{"type":"range","column":"x","matchValueType":"LONG","lower":1,"upper":10}',
    '{"type":"range","column":"__time","matchValueType":"LONG","lower":2,"upper":5}',
    '{"type":"range","column":"n","lower":1}',
    '{"type":"range","column":"n","matchValueType":"LONG"}',
    '{"type":"like","dimension":"x","pattern":"a%"}',
    '{"type":"like","dimension":"x","pattern":"_"}',
    '{"type":"like","dimension":"x","pattern":"%"}',
    '{"type":"like","dimension":"y","pattern":"50!%","escape":"!"}',
    '{"type":"like","dimension":"x","pattern":"%😀"}',
    '{"type":"like","dimension":"x","pattern":"%ï _"}',
    '{"type":"like","dimension":"n","pattern":"7%"}',
    '{"type":"regex","dimension":"x","pattern":"^a"}',
    '{"type":"regex","dimension":"x","pattern":"[0-9]+"}',
    '{"type":"regex","dimension":"x","pattern":".*"}',
    '{"type":"regex","dimension":"x","pattern":"(?i)ab"}',
    '{"type":"regex","dimension":"n","pattern":"^7$"}',
    '{"type":"regex","dimension":"x","pattern":"["}',
    '{"type":"regex","dimension":"x","pattern":"(?=a)a"}',
    '{"type":"search","dimension":"x","query":{"type":"contains","value":"A","caseSensitive":false}}',
    '{"type":"search","dimension":"x","query":{"type":"contains","value":"A","caseSensitive":true}}',
    '{"type":"search","dimension":"x","query":{"type":"contains","value":"b"}}',
    '{"type":"search","dimension":"x","query":{"type":"insensitive_contains","value":"BC"}}',
    '{"type":"search","dimension":"x","query":{"type":"fragment","values":["a","C"],"caseSensitive":false}}',
    '{"type":"search","dimension":"x","query":{"type":"fragment","values":["a","c"]}}',
    '{"type":"search","dimension":"x","query":{"type":"all"}}',
    '{"type":"search","dimension":"x","query":{"type":"regex","pattern":"^[a-c]+$"}}',
    '{"type":"interval","dimension":"__time","intervals":["1970-01-01T00:00:00.002Z/1970-01-01T00:00:00.005Z"]}',
    '{"type":"interval","dimension":"n","intervals":["1970-01-01/1970-01-03"]}',
    '{"type":"interval","dimension":"__time","intervals":["1970-01-01/P1D","2024/2025"]}',
    '{"type":"interval","dimension":"__time","intervals":["1970-01-01T00:00:00.003/1970-01-01T00:00:00.004","1970-01-01T00:00:00.007/P1D"]}',
    '{"type":"interval","dimension":"__time","intervals":[]}',
    '{"type":"interval","dimension":"__time","intervals":["x"]}',
    '{"type":"expression","expression":"n > 1"}',
    '{"type":"expression","expression":"x == \'a\'"}',
    '{"type":"expression","expression":"strlen(x) > 1"}',
    '{"type":"expression","expression":"x"}',
    '{"type":"expression","expression":"notnull(x) && like(x, \'a%\')"}',
    '{"type":"expression","expression":"array_contains(x, \'a\')"}',
    '{"type":"true"}',
    '{"type":"false"}',
    '{"type":"arrayContainsElement","column":"x","elementMatchValueType":"STRING","elementMatchValue":"a"}',
    '{"type":"isfalse","field":{"type":"selector","dimension":"x","value":"a"}}',
    '{"type":"istrue","field":{"type":"selector","dimension":"x","value":"a"}}',
    '{"type":"javascript","dimension":"x","function":"function(x){return true}"}',
    '{"type":"spatial","dimension":"x","bound":{"type":"radius","coords":[0,0],"radius":1}}',
    '{"type":"nonsense","dimension":"x"}',
    '{"type":"extraction","dimension":"x","value":"a","extractionFn":{"type":"upper"}}',
    '{"type":"selector","dimension":"x","value":"A","extractionFn":{"type":"upper"}}',
    "null",
    '{"type":"not","field":{"type":"selector","dimension":"x","value":null}}',
    '{"type":"not","field":{"type":"in","dimension":"x","values":["a"]}}',
    '{"type":"not","field":{"type":"in","dimension":"x","values":["a",null]}}',
    '{"type":"not","field":{"type":"bound","dimension":"x","lower":"b"}}',
    '{"type":"not","field":{"type":"bound","dimension":"x","upper":"a"}}',
    '{"type":"not","field":{"type":"bound","dimension":"n","lower":"2","ordering":"numeric"}}',
    '{"type":"not","field":{"type":"bound","dimension":"n","upper":"2","ordering":"numeric"}}',
    '{"type":"not","field":{"type":"like","dimension":"x","pattern":"a%"}}',
    '{"type":"not","field":{"type":"regex","dimension":"x","pattern":"a"}}',
    '{"type":"not","field":{"type":"search","dimension":"x","query":{"type":"contains","value":"a"}}}',
    '{"type":"not","field":{"type":"equals","column":"n","matchValueType":"LONG","matchValue":7}}',
    '{"type":"not","field":{"type":"range","column":"n","matchValueType":"LONG","lower":2}}',
    '{"type":"not","field":{"type":"range","column":"x","matchValueType":"STRING","upper":"b"}}',
    '{"type":"not","field":{"type":"interval","dimension":"n","intervals":["1970-01-01/1970-01-03"]}}',
    '{"type":"not","field":{"type":"columnComparison","dimensions":["x","y"]}}',
    '{"type":"not","field":{"type":"expression","expression":"n > 1"}}',
    '{"type":"not","field":{"type":"expression","expression":"x == \'a\'"}}',
    '{"type":"not","field":{"type":"true"}}',
    '{"type":"not","field":{"type":"in","dimension":"x","values":[]}}',
    '{"type":"bound","dimension":"x","lower":"a","upper":"abc","ordering":"strlen"}',
    '{"type":"bound","dimension":"x","lower":"ab","lowerStrict":true,"ordering":"strlen"}',
    '{"type":"bound","dimension":"x","upper":"B","upperStrict":true,"ordering":"strlen"}',
    '{"type":"bound","dimension":"x","lower":"123456","upper":"123456","ordering":"strlen"}',
    '{"type":"bound","dimension":"x","lower":"1234567","ordering":{"type":"strlen"}}',
    '{"type":"bound","dimension":"x","upper":"12345","upperStrict":true,"ordering":"strlen"}',
    '{"type":"not","field":{"type":"bound","dimension":"x","upper":"B","ordering":"strlen"}}',
    '{"type":"in","dimension":"x","values":[null]}',
    '{"type":"inType","column":"n","matchValueType":"LONG","values":[1,7]}',
    '{"type":"inType","column":"n","matchValueType":"DOUBLE","sortedValues":[2.5,7.5]}',
    '{"type":"inType","column":"n","matchValueType":"LONG","sortedValues":[null,1]}',
    '{"type":"inType","column":"x","matchValueType":"STRING","sortedValues":["7","a"]}',
    '{"type":"inType","column":"x","matchValueType":"LONG","sortedValues":[7,10]}',
    '{"type":"inType","column":"x","matchValueType":"STRING","sortedValues":[null,"a"]}',
    '{"type":"inType","column":"x","matchValueType":"STRING","sortedValues":[]}',
    '{"type":"inType","column":"x","sortedValues":["a"]}',
    '{"type":"not","field":{"type":"inType","column":"n","matchValueType":"LONG","sortedValues":[1,7]}}',
    '{"type":"not","field":{"type":"inType","column":"n","matchValueType":"LONG","sortedValues":[null,1]}}',
    '{"type":"not","field":{"type":"inType","column":"x","matchValueType":"STRING","sortedValues":["a","B"]}}',
    '{"type":"not","field":{"type":"inType","column":"x","matchValueType":"STRING","values":["a","B"]}}',
    '{"type":"arrayContainsElement","column":"x","elementMatchValueType":"STRING","elementMatchValue":"c"}',
    '{"type":"arrayContainsElement","column":"x","elementMatchValueType":"LONG","elementMatchValue":7}',
    '{"type":"arrayContainsElement","column":"n","elementMatchValueType":"LONG","elementMatchValue":7}',
    '{"type":"arrayContainsElement","column":"n","elementMatchValueType":"DOUBLE","elementMatchValue":7.5}',
    '{"type":"arrayContainsElement","column":"n","elementMatchValueType":"STRING","elementMatchValue":"7"}',
    '{"type":"not","field":{"type":"arrayContainsElement","column":"x","elementMatchValueType":"STRING","elementMatchValue":"a"}}',
    '{"type":"not","field":{"type":"arrayContainsElement","column":"n","elementMatchValueType":"LONG","elementMatchValue":7}}',
    '{"type":"not","field":{"type":"isfalse","field":{"type":"selector","dimension":"x","value":"a"}}}',
    '{"type":"not","field":{"type":"istrue","field":{"type":"selector","dimension":"x","value":"a"}}}',
    '{"type":"isfalse","field":{"type":"bound","dimension":"x","lower":"a"}}',
    '{"type":"istrue","field":{"type":"expression","expression":"n > 1"}}',
]


def _filters() -> Iterator[Case]:
    for text in FILTERS:
        dims = {"dimensions": [{"type": "long", "name": "i"}]}
        yield Case("filters", text, _body(_FILTERED, condition=json.loads(text), dimensions=dims))


TIMES: dict[str, str] = {
    "auto": r"""1710058530123 1710058530123.7 "1710058530123" "2024-03-10T08:15:30Z" "2024-03-10 08:15:30" "2024-03-10" "2024" 2024 1.7e12 "1.7e12" "x" "" null true
"2024-03-10T08:15:30.123456Z" "2024-03-10T08:15:30+02:00" "2024-W10-7" "2024-W10" "2024-070" " 2024-03-10" "2024-03-10T08" "2024-03" "-1" -1 "20240310" "2024-03-10T24:00:00Z" "2024-02-30" "2024-03-10T08:15:30 UTC" "2024-03-10 08:15:30 America/New_York" "T08:15" "'2024-03-10'" "2024-03-10T08:15,5" "10000-01-01" "2024-3-1" [1] {"a":1}
"2024-03-10 08:15:30 Europe/Berlin" "2024-07-10 08:15:30 EST" "2024-07-10 08:15:30 PST" "2024-07-10 08:15:30 Z" "2024-07-10 08:15:30 +02:00" "2024-07-10 08:15:30+02:00" "2024-07-10 08:15:30 Nowhere" "2024-07-10T08:15:30+02:00 UTC" "2024-07-10 UTC" "2024-07-10T08:15:30 utc" "2024-07-10T" "2024-07-10 " "\"2024-07-10\"" "2024-07-10TZ" "2024-07-10Z" "1710058530123 " "1710058530123.5" 12345678901234567890 9223372036854775808 1e999 false""",
    "iso": r"""1710058530123 "1710058530123" "2024-03-10T08:15:30Z" "2024-03-10 08:15:30" "2024-03-10" "2024" 2024 "2024-03" "2024-W10-7" "2024-W10" "2024-070" "2024-03-10T08:15" "2024-03-10T08" "2024-03-10T08:15:30.1" "2024-03-10T08:15:30,5" "2024-03-10T08:15:30.123456789Z" "2024-03-10T08:15:30+0200"
"2024-03-10T08:15:30+02" "2024-03-10T08:15:30-23:59" "2024-03-10T08:15:30 UTC" "2024-03-10t08:15:30z" "20240310T081530Z" "2024-03-10T0815" "x" "" null "2024-3-1" "-0001-01-01" "2024-03-10T25:00" "2024-02-30" "T10:00" "2024-03-10T08.5" "2024-03-10T08:15.5" "2024-03-10T24:00" " 2024-03-10T08:15:30Z " "2024-366" "2024-W53" "2020-W53-7" true
"20240310081530" "12345678901" "2024-07-10TZ" "2024-07-10Z" "2024-07-10T+02" "T" "T10:00+02:00" "T25" 2024.0 2.024e3 "2024-07-10T08:15:30+02:00:30" "2024-07-10T08:15:30+25:00" "2024-03-10T08:15:30.1234567890Z" "-1969-12-31" "2024-07-10T8:5:3" "2024-W1-1" [1]""",
    "millis": r"""1710058530123 "1710058530123" 1.710058530123e12 "1.7e12" 1710058530123.9 "1710058530123.9" -1 "-1" 0 "" " 5 " "x" null true "1e3" 1e3 -1.5 "+5" "2024" "2024-03-10" 9223372036854775807 99999999999999 "\"5\"" -0.5 "12345678901234567890" """,
    "posix": r"""1710058530 "1710058530" 1710058530.5 "1710058530.5" 1.71e9 "1.71e9" -1 -1.5 0 "" "x" null "+5" true 99999999999 " 7 " 9223372036854775 12345678901234567890""",
    "ruby": r"""1710058530 "1710058530" 1710058530.5 "1710058530.5" "1710058530.123456" 1.71e9 "1.71e9" -1 -1.5 "x" "" null "1d" 1710058530.123 "1e3" " 5 " 1e300""",
    "micro": r"""1710058530123456 "1710058530123456" -1 -1001 1.5 "1e15" 1.71e15 "x" "" null 0""",
    "nano": r"""1710058530123456789 "1710058530123456789" -1 -1000001 1.71e18 "x" "" null 0 1.5""",
    "yyyy-MM-dd HH:mm:ss": r"""  "2024-03-10 08:15:30" "2024-03-10" "2024-3-1 8:5:3" "2024-03-10 08:15:30.5" "" "x" null 2024 "2024-03-10 08:15:30 " "02024-03-10 08:15:30" "2024-03-10  08:15:30" "2024-03-10 24:00:00" "\"2024-03-10 08:15:30\"" "+2024-03-10 08:15:30" """,
    "yyyy-MM-dd HH:mm:ss.SSS": r""" "2024-03-10 08:15:30.123456" "2024-03-10 08:15:30.1" """,
    "yyyy-MM-dd'T'HH:mm:ssZ": r""" "2024-03-10T08:15:30Z" "2024-03-10T08:15:30+01" "2024-03-10T08:15:30+01:00" "2024-03-10T08:15:30+25:00" """,
    "yyyy-DDD": r""" "2025-366" "2024-366" "2025-32" """,
    "EEE, dd MMM yyyy": r""" "Mon, 10 Mar 2024" "Sat, 10 Mar 2024" "Monday, 10 March 2024" """,
    "h:mm a yyyy": r""" "0:15 AM 2024" "12:15 am 2024" "13:15 am 2024" """,
    "yyyy": r""" 2024 2024.0 true "20240" """,
    "dd/MMM/yyyy:HH:mm:ss Z": r""" "10/Mar/2024:08:15:30 +0100" "10/mar/2024:08:15:30 +01:00" "10/March/2024:08:15:30 +0100" "10/Mar/2024:08:15:30 UTC" "x" """,
    "yyyy-MM-dd'T'HH:mm:ss.SSSZZ": r""" "2024-03-10T08:15:30.123+01:00" "2024-03-10T08:15:30.1+01:00" "2024-03-10T08:15:30.123Z" "2024-03-10T08:15:30.123" """,
    "yyyyMMdd": r""" "20240310" 20240310 "2024031" "202403100" """,
    "EEE MMM dd HH:mm:ss yyyy": r""" "Sun Mar 10 08:15:30 2024" "Mon Mar 10 08:15:30 2024" "sun mar 10 08:15:30 2024" """,
    "yy-M-d h:mm a": r""" "24-3-10 8:15 PM" "70-1-1 12:00 AM" "99-12-31 12:59 pm" """,
    "nonsense": r""" "2024" """,
}


# Druid's sampler (its tasks do not) fails over rows from before 1970.
_MOVED = [{"type": "expression", "name": "__time", "expression": "__time + 70000000000000"}]


def _times() -> Iterator[Case]:
    """A body for each value: so one that is refused does not hide the others."""
    time: dict[str, Any]
    dims = {"dimensions": [{"type": "long", "name": "i"}]}
    for written, values in (TIMES | MORE_TIMES | TIMES_BESIDE).items():
        for value in values_in(values):
            data = f'{{"i": 1, "t": {value}}}'
            time = {"column": "t", "format": written}
            moved = _MOVED if value.strip('"').startswith("-") else None
            body = _body(data, time=time, dimensions=dims, transforms=moved)
            yield Case("timestampSpec", f"{written}: {value}", body)
    for name, data, time in (
        ("no column: timestamp", '{"timestamp": "2024-01-01"}', {"format": "iso"}),
        ("missing value", '{"x": 1}', {"column": "t", "missingValue": "2024-01-01T00:00:00Z"}),
        ("missing value and null", '{"t": null, "x": 1}', {"column": "t", "missingValue": "2024-01-01T00:00:00Z"}),
        ("missing value, unreadable", '{"t": "x"}', {"column": "t", "missingValue": "2024-01-01T00:00:00Z"}),
        ("missing value, a date alone", '{"x": 1}', {"column": "t", "missingValue": "2024-01-01"}),
        ("format in capitals", '{"t": 5}', {"column": "t", "format": "MILLIS"}),
        ("no format", '{"t": "2024-01-01"}', {"column": "t"}),
        ("null format", '{"t": "2024-01-01"}', {"column": "t", "format": None}),
    ):
        yield Case("timestampSpec", name, _body(data, time=time, dimensions=dims))


DIMENSION_VALUES = r"""null "" "a" 1 -1 0 1.5 -1.9 true false "true" "7" " 7 " "1.9" "-1.9" "1e3" 1e3 1e300 9223372036854775807 9223372036854775808 -9223372036854775809 "9223372036854775808"
1e10 0.1 1e-7 100000000.0 "x" "😀" [1,2] ["b","a","b"] [] [null] [1.5,"a"] [[1],[2]] {"a":1} {"b":{"c":[1,"x"]},"a":null} [{"a":1}] "1,234" "0x1F" "NaN" "Infinity" "-Infinity" "1_000" "+5" "5." ".5" "1d" "1L" "١" 1.10 "\u0000" """


CASTS = ("LONG", "DOUBLE", "FLOAT", "STRING", "ARRAY<LONG>", "ARRAY<STRING>", "COMPLEX<json>", "long", "nonsense")


def _dimensions() -> Iterator[Case]:
    dims: dict[str, Any]
    for kind in ("string", "long", "double", "float", "json", "auto"):
        for value in values_in(DIMENSION_VALUES):
            dims = {"dimensions": [{"type": kind, "name": "x"}]}
            yield Case("dimensions", f"{kind}: {value}", _body(f'{{"t": 0, "x": {value}}}', dimensions=dims))
    for kind in CASTS:
        for value in values_in(DIMENSION_VALUES):
            dims = {"dimensions": [{"type": "auto", "name": "x", "castToType": kind}]}
            yield Case("casts", f"{kind}: {value}", _body(f'{{"t": 0, "x": {value}}}', dimensions=dims))
    for handling in ("SORTED_ARRAY", "SORTED_SET", "ARRAY"):
        dims = {"dimensions": [{"type": "string", "name": "x", "multiValueHandling": handling}]}
        data = '{"t": 0, "x": ["b", "a", "b", null, "", 3, 1.5, true]}'
        yield Case("dimensions", f"lists: {handling}", _body(data, dimensions=dims))
    for name, dims in (
        ("bare names", {"dimensions": ["x", "y"]}),
        ("no dimensions", {"dimensions": []}),
        ("no dimensions, exclusions", {"dimensions": [], "dimensionExclusions": ["y"]}),
        ("schema discovery", {"useSchemaDiscovery": True}),
        ("schema discovery, named", {"dimensions": [{"type": "string", "name": "x"}], "useSchemaDiscovery": True}),
        ("all dimensions", {"dimensions": ["y"], "includeAllDimensions": True}),
        ("all dimensions, discovered", {"dimensions": ["y"], "includeAllDimensions": True, "useSchemaDiscovery": True}),
        ("nothing", {}),
        ("null lists", {"dimensions": None, "dimensionExclusions": None}),
        ("cast to an array", {"dimensions": [{"type": "auto", "name": "l", "castToType": "ARRAY<STRING>"}]}),
        ("cast to an array of floats", {"dimensions": [{"type": "auto", "name": "l", "castToType": "ARRAY<float>"}]}),
        ("cast to an array of no type", {"dimensions": [{"type": "auto", "name": "l", "castToType": "ARRAY<none>"}]}),
        ("cast to no array", {"dimensions": [{"type": "auto", "name": "l", "castToType": "array<long>"}]}),
        ("cast to a long", {"dimensions": [{"type": "auto", "name": "y", "castToType": "LONG"}]}),
        ("case", {"dimensions": ["X", "Y"]}),
        ("the time's column", {"dimensions": ["t", "x"]}),
        ("__time", {"dimensions": ["__time", "x"]}),
        ("twice", {"dimensions": ["x", "x"]}),
        ("unknown type", {"dimensions": [{"type": "int", "name": "x"}]}),
        ("spatial", {"dimensions": ["x"], "spatialDimensions": [{"dimName": "c", "dims": ["x", "y"]}]}),
    ):
        data = '{"t": 0, "x": "a", "y": 1.5, "l": [1, "b"], "o": {"k": 1}, "b": true, "n": null, "e": []}'
        yield Case("discovery", name, _body(data, dimensions=dims))
        more = data + '\n{"t": 1, "x": 5, "y": 7, "l": 3, "o": "s", "b": "no", "z": "late"}'
        yield Case("discovery", f"{name}, two records", _body(more, dimensions=dims))


NESTED = '{"t":0,"a":{"b":{"c":5},"l":[{"m":1},{"m":2,"c":7}]},"nums":[3,1,2],"s":"str","n":null,"deep":{"x":{"c":1},"c":2},"o":{}}'
PATHS = r"""$.a.b.c | $.a.l[0].m | $.a.l[*].m | $..c | $.a..m | $.nums | $.nums[-1] | $.nums[0] | $.nums[0:2] | $.nums[0,2] | $.nums.length() | $.nums.min() | $.nums.max() | $.nums.avg() | $.nums.sum()
$.nums.stddev() | $.missing | $.a | $['a']['b'] | $.a.l[?(@.m>1)] | $.a.l[?(@.m>1)].m | $.* | $.o | $.n | $.s | a.b.c | $.s.length() | $.a.length() | $.a.keys() | $.nums.concat('x') | $ | $.a.b.* | $.a.l[5] | $..l | $.deep..c | $.a['b','l']"""


def _flattening() -> Iterator[Case]:
    def case(name: str, flatten: Any, dims: Any = None, data: str = NESTED) -> Case:
        body = _body(data, dimensions=dims or {"dimensions": [{"type": "auto", "name": "r"}]})
        body["spec"]["ioConfig"]["inputFormat"] = {"type": "json", "flattenSpec": flatten}
        return Case("flattenSpec", name, body)

    def field(kind: str, **more: Any) -> Any:
        return {"useFieldDiscovery": False, "fields": ["t", {"type": kind, "name": "r", **more}]}

    for path in (p.strip() for line in PATHS.splitlines() for p in line.split(" | ")):
        yield case(f"path {path}", field("path", expr=path))
        strings = {"dimensions": [{"type": "string", "name": "r"}]}
        yield case(f"path {path}, a string", field("path", expr=path), strings)
    for path in (p.strip() for line in SEARCHES.splitlines() for p in line.split(" | ")):
        yield case(f"searching {path}", field("path", expr=path), data=SEARCHED)
    for expression in (".a.b.c", ".a.l[0].m", "[.a.l[].m]", ".nums | add", ".s", ".missing", ".a", ".nums[1:]"):
        yield case(f"jq {expression}", field("jq", expr=expression))
    yield case("tree", field("tree", nodes=["a", "b", "c"]))
    yield case("tree, missing", field("tree", nodes=["a", "x", "c"]))
    yield case("tree, an object", field("tree", nodes=["a", "b"]))
    yield case("root", field("root", expr="s"))
    yield case("root, an object", field("root", expr="a"))
    yield case("root without expr", {"useFieldDiscovery": False, "fields": ["t", {"type": "root", "name": "s"}]})
    everything: dict[str, Any] = {"dimensions": []}
    yield case("discovery and fields", {"fields": [{"type": "path", "name": "r", "expr": "$.a.b.c"}]}, everything)
    yield case("discovery alone", {"useFieldDiscovery": True, "fields": []}, everything)
    yield case("discovery and schema", {"useFieldDiscovery": True}, {"useSchemaDiscovery": True})
    yield case("an empty flattenSpec", {}, everything)
    yield case("unknown type", field("xpath", expr="/a"))


def _of_jq() -> Iterator[Case]:
    for program in programs():
        body = _body(OF_JQ, dimensions={"dimensions": [{"type": "auto", "name": "r"}]})
        fields = ["t", {"type": "jq", "name": "r", "expr": program}]
        flatten = {"useFieldDiscovery": False, "fields": fields}
        body["spec"]["ioConfig"]["inputFormat"] = {"type": "json", "flattenSpec": flatten}
        yield Case("jq", program, body)


def _formats() -> Iterator[Case]:
    every: dict[str, Any] = {"dimensions": []}
    csv: dict[str, Any] = {"type": "csv", "columns": ["t", "a", "b"]}
    tsv: dict[str, Any] = {"type": "tsv", "columns": ["t", "a", "b"]}

    def case(name: str, data: str, input_format: Any, dims: Any = None) -> Case:
        return Case(
            "inputFormat", name, _body(data, dimensions=every if dims is None else dims, input_format=input_format)
        )

    yield case("csv", '0,x,1\n1,"a,b",2\n2,"say ""hi""",3', csv)
    yield case("csv: few and many values", "0,x\n1,x,2,3,4", csv)
    yield case("csv: empty values", '0,,\n1,"",5', csv)
    yield case("csv: blanks", "0, x ,1", csv)
    yield case("csv: lists", "0,p|q,1\n1,r,2", {**csv, "listDelimiter": "|"})
    yield case("csv: a list, typed", "0,p|q,1", {**csv, "listDelimiter": "|"}, {"useSchemaDiscovery": True})
    yield case("csv: numbers", "0,5,1.5\n1,x,1e3", {**csv, "tryParseNumbers": True}, {"useSchemaDiscovery": True})
    yield case("csv: no numbers", "0,5,1.5", csv, {"useSchemaDiscovery": True})
    yield case("csv: header", "t,a,b\n0,x,1\n1,y,2", {"type": "csv", "findColumnsFromHeader": True})
    yield case("csv: header and columns", "q,w,e\n0,x,1", {**csv, "findColumnsFromHeader": True})
    yield case("csv: skipped rows", "junk\n0,x,1", {**csv, "skipHeaderRows": 1})
    yield case(
        "csv: skipped rows and header",
        "junk\nt,a\n0,x",
        {"type": "csv", "findColumnsFromHeader": True, "skipHeaderRows": 1},
    )
    yield case("csv: hasHeaderRow", "t,a\n0,x", {"type": "csv", "hasHeaderRow": True})
    yield case("csv: no columns", "0,x", {"type": "csv"})
    yield case("csv: unclosed quote", '0,"x,1', csv)
    yield case("csv: quote inside", '0,a"b,1\n1,a""b,2', csv)
    yield case("csv: backslash", r"0,a\,b,1", csv)
    yield case("tsv", "0\tx\t1\n1\ty\t2", tsv)
    yield case("tsv: quotes", '0\t"x"\t1', tsv)
    yield case("tsv: empty values", "0\t\t1\n1\t\t", tsv)
    yield case("tsv: header", "t\ta\n0\tx", {"type": "tsv", "findColumnsFromHeader": True})
    yield case("tsv: few and many values", "0\tx\n1\tx\t2\t3", tsv)
    yield case("delimited", "0;x;1", {**tsv, "delimiter": ";"})
    yield case("delimited: several characters", "0::x::1", {**tsv, "delimiter": "::"})
    yield case("delimited: lists", "0;p,q;1", {**tsv, "delimiter": ";", "listDelimiter": ","})
    yield case(
        "delimited: numbers",
        "0;5;1.5",
        {**tsv, "delimiter": ";", "tryParseNumbers": True},
        {"useSchemaDiscovery": True},
    )
    yield case("delimited: same delimiters", "0;x", {**tsv, "delimiter": ";", "listDelimiter": ";"})
    yield case("tsv: skipped rows", "junk\n0\tx\t1", {**tsv, "skipHeaderRows": 1})
    for name, more, data in (
        ("regex", {"pattern": r"^(\d+) (\w+)$", "columns": ["t", "a"]}, "0 x\n1 y"),
        ("regex: no match", {"pattern": r"^(\d+) (\w+)$", "columns": ["t", "a"]}, "0 x\nnope"),
        ("regex: no columns", {"pattern": r"^(\d+) (\w+)$"}, "0 x"),
        ("regex: an optional group", {"pattern": r"^(\d+)( \w+)?$", "columns": ["t", "a"]}, "0\n1 y"),
        ("regex: more columns", {"pattern": r"^(\d+)", "columns": ["t", "a", "b"]}, "0"),
        ("regex: find, not match", {"pattern": r"(\d+)", "columns": ["t"]}, "x 5 y"),
        ("regex: a list", {"pattern": r"^(\d+) (.+)$", "columns": ["t", "a"], "listDelimiter": "|"}, "0 p|q"),
        ("regex: no pattern", {"columns": ["t"]}, "0"),
        ("regex: fewer columns", {"pattern": r"^(\d+) (\w+) (\w+)$", "columns": ["t", "a"]}, "0 x y"),
        ("regex: all of it", {"pattern": r"(\d+) (\w)", "columns": ["t", "a"]}, "0 x tail\nzz0 x\n1 y"),
        ("regex: an empty group", {"pattern": r"(\d+) (\w*)", "columns": ["t", "a"]}, "0 "),
        ("regex: control-A", {"pattern": r"(\d+) (.*)", "columns": ["t", "a"]}, "0 p\x01q"),
        ("regex: empty parts", {"pattern": r"(\d+) (.*)", "columns": ["t", "a"], "listDelimiter": "|"}, "0 p||q|"),
        ("regex: lists by more", {"pattern": r"(\d+) (.*)", "columns": ["t", "a"], "listDelimiter": "::"}, "0 p::q"),
        ("regex: lists by a dot", {"pattern": r"(\d+) (.*)", "columns": ["t", "a"], "listDelimiter": "."}, "0 p.q"),
        ("regex: named groups", {"pattern": r"(?<t>\d+) (?<a>\w)", "columns": ["t", "a"]}, "0 x"),
        ("regex: words are ASCII", {"pattern": r"(\d+) (\w)", "columns": ["t", "a"]}, "0 é\n1 e"),
        ("regex: any letter", {"pattern": r"(\d+) (.)", "columns": ["t", "a"]}, "0 é\n1 😀"),
        ("regex: looking ahead", {"pattern": r"(\d+)(?= x).*", "columns": ["t"]}, "0 x"),
        ("regex: cannot be read", {"pattern": "[", "columns": ["t"]}, "0"),
    ):
        yield case(name, data, {"type": "regex", **more})
    for name, regex in (("typed", "(\\d+) (.*)"), ("typed lists", "(\\d+) (.*,.*)")):
        written = {"type": "regex", "pattern": regex, "columns": ["t", "a"], "listDelimiter": ","}
        yield case(f"regex: {name}", "0 5\n1 p,q", written, {"useSchemaDiscovery": True})
    lines = _body(
        'first\n second \n\n{"a":1}',
        input_format={"type": "lines"},
        time={"column": "t", "missingValue": "1970-01-01T00:00:00Z"},
        dimensions=every,
    )
    yield Case("inputFormat", "lines", lines)
    for name, data in (
        ("json: nulls", '{"t":0,"a":null,"b":1}'),
        ("json: duplicate keys", '{"t":0,"a":1,"a":2}'),
        ("json: nested", '{"t":0,"a":{"b":1},"l":[1,{"c":2}]}'),
        ("json: numbers", '{"t":0,"a":1.10,"b":1e2,"c":12345678901234567890,"d":-0.0}'),
        ("json: booleans", '{"t":0,"a":true,"b":false}'),
        ("json: no object", '[1]\n5\n"x"\n{"t":0,"a":1}'),
        ("json: broken", '{"t":0,"a":\n{"t":1,"a":2}'),
        ("json: unicode", '{"t":0,"é":"\\u00e9","a":"\\ud83d\\ude00"}'),
        ("json: empty name", '{"t":0,"":"x"}'),
        ("json: single quotes", "{'t':0,'a':1}"),
        ("json: comments", '{"t":0,/* c */"a":1}'),
        ("json: NaN", '{"t":0,"a":NaN}'),
        ("json: trailing comma", '{"t":0,"a":1,}'),
        ("json: two in a line", '{"t":0,"a":1}{"t":1,"a":2}'),
    ):
        yield case(name, data, {"type": "json"})
    for feature in (
        "ALLOW_SINGLE_QUOTES",
        "ALLOW_COMMENTS",
        "ALLOW_NON_NUMERIC_NUMBERS",
        "ALLOW_TRAILING_COMMA",
        "ALLOW_UNQUOTED_FIELD_NAMES",
    ):
        samples = {
            "ALLOW_SINGLE_QUOTES": "{'t':0,'a':1}",
            "ALLOW_COMMENTS": '{"t":0,/* c */"a":1}',
            "ALLOW_NON_NUMERIC_NUMBERS": '{"t":0,"a":NaN}',
            "ALLOW_TRAILING_COMMA": '{"t":0,"a":1,}',
            "ALLOW_UNQUOTED_FIELD_NAMES": "{t:0,a:1}",
        }
        yield case(f"json: {feature}", samples[feature], {"type": "json", "featureSpec": {feature: True}})
    yield case("json: keepNullColumns", '{"t":0,"a":null}', {"type": "json", "keepNullColumns": True})
    yield case(
        "json: null options",
        '{"t":0,"a":1}',
        {
            "type": "json",
            "flattenSpec": None,
            "featureSpec": None,
            "keepNullColumns": None,
            "assumeNewlineDelimited": None,
            "useJsonNodeReader": None,
        },
    )
    yield case(
        "json: assumeNewlineDelimited", '{"t":0,"a":1}\n{"t":1,"a":2}', {"type": "json", "assumeNewlineDelimited": True}
    )
    for reader in ("assumeNewlineDelimited", "useJsonNodeReader"):
        data = '{"t":0,"a":1}\n{"t":1\n{"t":2}\n[1]\n{"t":3,"a":1,}'
        yield case(f"json: {reader}, broken", data, {"type": "json", reader: True})
    yield case("json: useJsonNodeReader", '{"t":0,"a":1}\n{"t":1,"a":2}', {"type": "json", "useJsonNodeReader": True})
    yield case(
        "json: both readers",
        '{"t":0,"a":1}',
        {"type": "json", "assumeNewlineDelimited": True, "useJsonNodeReader": True},
    )
    yield case(
        "csv: null options",
        "0,x,1",
        {**csv, "listDelimiter": None, "findColumnsFromHeader": None, "hasHeaderRow": None, "tryParseNumbers": None},
    )
    yield case("unknown format", "x", {"type": "nonsense"})


_ROLLED = "\n".join(
    json.dumps({"t": t, **row})
    for t, row in (
        (1000, {"d": "x", "v": 3, "f": 1.5, "s": "one"}),
        (2000, {"d": "x", "v": -5, "f": 2.25, "s": "two"}),
        (3000, {"d": "y", "v": None, "f": "7.5", "s": None}),
        (61000, {"d": "x", "v": "12", "f": None, "s": ""}),
        (500, {"d": "x", "v": 1.9, "f": 1e10, "s": "zero"}),
        (3500, {"d": None, "v": 4, "f": 4, "s": "n"}),
        (3600, {"v": 4, "f": 4, "s": "n"}),
    )
)
# What is refused as a filter is no other question as a metric's.
_NO_FILTERS_HERE = (
    '"alphanumeric"',
    '"version"',
    "alphaNumeric",
    "spatial",
    "extraction",
    "(?=",
    '"DOUBLE","sorted',
    '["a","B"]',
)
_IS_X = {"type": "selector", "dimension": "d", "value": "x"}
_IS_ONE = {"type": "selector", "dimension": "s", "value": "one"}
_IS_NULL: dict[str, Any] = {"type": "selector", "dimension": "s", "value": None}
METRICS = (
    "count",
    "longSum",
    "longMin",
    "longMax",
    "doubleSum",
    "doubleMin",
    "doubleMax",
    "floatSum",
    "floatMin",
    "floatMax",
    "longFirst",
    "longLast",
    "longAny",
    "doubleFirst",
    "doubleLast",
    "doubleAny",
    "floatFirst",
    "floatLast",
    "floatAny",
    "stringFirst",
    "stringLast",
    "stringAny",
    "doubleMean",
    "hyperUnique",
    "cardinality",
)


def _rollup() -> Iterator[Case]:
    metric: dict[str, Any]
    dims = {"dimensions": ["d"]}
    minute = {"rollup": True, "queryGranularity": "MINUTE", "segmentGranularity": "HOUR"}
    for kind in METRICS:
        name = "s" if kind.startswith("string") else "f" if kind[0] in "df" else "v"
        metric = {"type": kind, "name": "m"} | ({} if kind == "count" else {"fieldName": name})
        yield Case("rollup", kind, _body(_ROLLED, dimensions=dims, metrics=[metric], granularity=minute))
    for name, metric in (
        ("longSum of text", {"type": "longSum", "name": "m", "fieldName": "s"}),
        ("longSum of fractions", {"type": "longSum", "name": "m", "fieldName": "f"}),
        ("stringLast, cut", {"type": "stringLast", "name": "m", "fieldName": "s", "maxStringBytes": 2}),
        ("longMax by expression", {"type": "longMax", "name": "m", "expression": "v * 2"}),
        ("doubleSum by expression", {"type": "doubleSum", "name": "m", "fieldName": None, "expression": "f + 1"}),
        (
            "filtered count",
            {
                "type": "filtered",
                "filter": {"type": "selector", "dimension": "d", "value": "x"},
                "aggregator": {"type": "count", "name": "m"},
            },
        ),
        (
            "filtered sum",
            {
                "type": "filtered",
                "name": "m",
                "filter": {"type": "bound", "dimension": "v", "lower": "0", "ordering": "numeric"},
                "aggregator": {"type": "longSum", "name": "m", "fieldName": "v"},
            },
        ),
        (
            "filtered, two names",
            {"type": "filtered", "name": "n", "filter": _IS_X, "aggregator": {"type": "count", "name": "m"}},
        ),
        (
            "filtered, no name inside",
            {"type": "filtered", "name": "n", "filter": _IS_X, "aggregator": {"type": "count"}},
        ),
        ("filtered, no filter", {"type": "filtered", "name": "n", "aggregator": {"type": "count", "name": "m"}}),
        (
            "filtered, unreadable values",
            {"type": "filtered", "filter": _IS_ONE, "aggregator": {"type": "longSum", "name": "m", "fieldName": "s"}},
        ),
        (
            "filtered, values that are no good elsewhere",
            {"type": "filtered", "filter": _IS_NULL, "aggregator": {"type": "longSum", "name": "m", "fieldName": "s"}},
        ),
        (
            "filtered, filtered",
            {
                "type": "filtered",
                "filter": _IS_X,
                "aggregator": {"type": "filtered", "filter": _IS_ONE, "aggregator": {"type": "count", "name": "m"}},
            },
        ),
        ("expression", {"type": "expression", "name": "m", "fields": ["v"], "initialValue": "0", "fold": "__acc + v"}),
        ("grouping", {"type": "grouping", "name": "m", "groupings": ["d"]}),
        ("unknown", {"type": "nonsense", "name": "m"}),
        ("nulls in fields", {"type": "longSum", "name": "m", "fieldName": "v", "expression": None}),
    ):
        yield Case("rollup", name, _body(_ROLLED, dimensions=dims, metrics=[metric], granularity=minute))
    for kind, name in (("doubleSum", "f"), ("doubleMax", "f"), ("longMin", "v"), ("longFirst", "v"), ("longAny", "v")):
        inner = {"type": kind, "name": "m", "fieldName": name}
        metric = {"type": "filtered", "filter": _IS_X, "aggregator": inner}
        yield Case("rollup", f"filtered {kind}", _body(_ROLLED, dimensions=dims, metrics=[metric], granularity=minute))
    each = {"rollup": True, "queryGranularity": "NONE", "segmentGranularity": "HOUR"}
    for text in FILTERS:
        if any(part in text for part in _NO_FILTERS_HERE):
            continue
        metric = {"type": "filtered", "filter": json.loads(text), "aggregator": {"type": "count", "name": "m"}}
        body = _body(
            _FILTERED, dimensions={"dimensions": [{"type": "long", "name": "i"}]}, metrics=[metric], granularity=each
        )
        yield Case("filtered metrics", text, body)
    counted = [{"type": "filtered", "filter": _IS_X, "aggregator": {"type": "count", "name": "m"}}]
    yield Case(
        "filtered metrics",
        "discovery",
        _body(_ROLLED, dimensions={"dimensions": []}, metrics=counted, granularity=each),
    )
    for granularity in (
        "NONE",
        "SECOND",
        "FIVE_MINUTE",
        "HOUR",
        "DAY",
        "WEEK",
        "MONTH",
        "YEAR",
        "ALL",
        "none",
        "Hour",
        '{"type":"period","period":"PT2S"}',
        '{"type":"duration","duration":2000}',
        '{"type":"period","period":"P1D","timeZone":"Asia/Kolkata"}',
    ):
        written = json.loads(granularity) if granularity[0] == "{" else granularity
        more = {"rollup": True, "queryGranularity": written, "segmentGranularity": "YEAR"}
        yield Case(
            "rollup",
            f"queryGranularity {granularity}",
            _body(_ROLLED, dimensions=dims, metrics=[{"type": "count", "name": "m"}], granularity=more),
        )


def _sketches() -> Iterator[Case]:
    for name, data, metrics, rollup in asked_of_sketches():
        granularity = {"rollup": rollup, "queryGranularity": "HOUR", "segmentGranularity": "DAY"}
        body = _body(data, dimensions={"dimensions": ["d"]}, metrics=metrics, granularity=granularity)
        yield Case("sketches", name, body)


def _metrics_by_expression() -> Iterator[Case]:
    hourly = {"rollup": True, "queryGranularity": "HOUR", "segmentGranularity": "DAY"}
    for name, data, dimensions, transforms, metrics in asked_of_expressions():
        body = _body(data, dimensions=dimensions, transforms=transforms, metrics=metrics, granularity=hourly)
        yield Case("metrics by expression", name, body)


def _records() -> Iterator[Case]:
    for section, name, asked in asked_of_records():
        yield Case(section, name, _body(**asked))


def _of_kafka() -> Iterator[Case]:
    for asked in asked_of_kafka():
        yield Case("kafka", asked[0], body_of(asked), asked[1])


@cache
def cases() -> tuple[Case, ...]:
    """All of them, in order."""
    every = (
        *_expressions(),
        *_filters(),
        *_times(),
        *_dimensions(),
        *_flattening(),
        *_of_jq(),
        *_formats(),
        *_rollup(),
        *_sketches(),
        *_metrics_by_expression(),
        *_records(),
        *_of_kafka(),
    )
    seen = {(c.section, c.name) for c in every}
    assert len(seen) == len(every)
    return every
