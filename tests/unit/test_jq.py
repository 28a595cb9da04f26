"""``flattenSpec`` fields of type ``jq``. What programs make is held against Druid in ``test_druid_agreement``."""

from __future__ import annotations

from typing import Any, Literal

import duckdb
import pytest

from ingestion.decode.druid_values import EvaluationFailed
from ingestion.decode.formats import jq
from ingestion.specs.formats.flatten_spec import FlattenSpec
from ingestion.specs.formats.jq import parse_jq
from tests.support.formats import decoded, rows
from tests.unit.test_formats_specs import faults, with_format

AVRO = {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_inline", "schema": {"type": "string"}}}
THRIFT = {"type": "thrift", "thriftClass": "A", "thriftIdl": "struct A {1: i32 a}"}


def with_programs(programs: dict[str, str], discover: bool = False) -> dict[str, Any]:
    fields = [{"type": "jq", "name": name, "expr": program} for name, program in programs.items()]
    return {"type": "json", "flattenSpec": {"useFieldDiscovery": discover, "fields": fields}}


def found(program: str, record: dict[str, Any]) -> str:
    return jq.first_value(record, parse_jq(program), lambda: None)


def test_programs_make_fields_of_a_record() -> None:
    tags = '.tags | map(ascii_downcase) | join(",")'
    spec = with_programs({"name": ".user.name // .user.login", "tags": tags, "n": ".tags | length"})
    made = decoded(
        spec, [b'{"user":{"login":"ada"},"tags":["A","b"]}', b'{"user":{"name":"bo","login":"x"},"tags":[]}']
    )
    assert not made.unparseable
    assert rows(made) == [{"name": "ada", "tags": "a,b", "n": 2}, {"name": "bo", "tags": "", "n": 0}]


@pytest.mark.parametrize(
    ("program", "value", "made"),
    [
        ("[.v | recurse]", [None, [1]], "[[null,[1]],[1],1]"),
        ("[range(1, 2; 3, 4)]", 0, "[1,2,1,2,3,2,2,3]"),
        ("[range(.v)]", 2.5, "[0,1,2]"),
        ("[limit(0, 1, -1; .v[])]", [7, 8], "[7,7,8]"),
        ("[nth(0, 5; .v[])]", [7, 8], "[7,8]"),
        (".v | [nth(1, -1, 9)]", [7, 8, 9], "[8,9,null]"),
        ('.v | indices("aa")', "aaa", "[0,1]"),
        ('.v | index("b")', "😀b", "2"),
        (".v | indices([1, 2])", [1, 2, 1, 2, 1], "[0,2]"),
        (".v | [rindex(1, 2)]", [1, 1.0, 3], "[1,null]"),
        (".v | explode", "ü😀", "[252,55357,56832]"),
        (".v | utf8bytelength", "ü😀", "6"),
        (".v | transpose", [[1], None, [2, 3]], "[[1,null,2],[null,null,3]]"),
    ],
)
def test_what_finds_a_place_takes_a_part_or_counts(program: str, value: Any, made: str) -> None:
    """Answers of the library that Druid has, in characters of Java."""
    assert found(program, {"v": value}) == made


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ('.v | index("")', "a"),  # Druid's library never ends
        ('.v | index("a")', None),
        ('.v | index("a")', 1),
        ("range(.v)", "a"),
        ("limit(.v; 1)", "a"),
        ("nth(-1; .v[])", [1]),
        ("range(.v)", 1e300),
        ("limit(1; .v, .v.x)", 1),
        (".v | explode", 1),
        (".v | transpose", ["a"]),
    ],
)
def test_what_can_t_be_had_makes_a_record_unparseable(program: str, value: Any) -> None:
    with pytest.raises(EvaluationFailed):
        found(program, {"v": value})


def test_a_made_field_hides_one_of_the_records_own() -> None:
    made = decoded(with_programs({"a": ".a.b"}, discover=True), [b'{"a":{"b":5},"c":1}'])
    assert rows(made) == [{"a": 5, "c": 1}]


def test_numbers_that_are_equal_are_different_programs() -> None:
    assert rows(decoded(with_programs({"a": "1", "b": "1.0", "c": "true"}), [b"{}"])) == [{"a": 1, "b": 1.0, "c": True}]


def test_a_record_with_which_a_program_fails_is_unparseable_and_harms_no_other() -> None:
    payloads = [
        b'{"a":[1]}',
        b'{"a":"x"}',
        b'{"a":[]}',
        b'{"a":',
        b"[]",
        b'{"a":[2],"b":NaN}',
        b'{"a":["\\ud83d"]}',
        b'{"a":[3]}',
    ]
    any_number = {"featureSpec": {"ALLOW_NON_NUMERIC_NUMBERS": True}}
    made = decoded(with_programs({"v": ".a[]"}) | any_number, payloads)
    told = "the jq program of field 'v' fails, or finds nothing"
    assert set(made.unparseable) == {1, 2, 3, 4, 5, 6}
    assert [made.unparseable[place] for place in (1, 2)] == [told, told]
    assert made.unparseable[5] == "has NaN or Infinity, or is nested too deep for jq"
    assert made.rows.column("v").to_pylist() == [1, 3]


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (".a as $x | $x", "as is not supported"),
        ("reduce .[] as $x (0; . + $x)", "reduce is not supported"),
        ("def f: 1; f", "def is not supported"),
        ("try .a catch .", "catch is not supported"),
        (".a = 1", "assignments are not supported"),
        (".a |= 1", "assignments are not supported"),
        ("$ENV", "variables, formats and assignments are not supported"),
        (".a | @base64", "variables, formats and assignments are not supported"),
        ('.a | test("x")', "jq's test with 1 arguments is not supported"),
        ("map", "jq's map with 0 arguments is not supported"),
        (".a[1:.b]", "slices have whole numbers"),
        (".a[:]", "slices have whole numbers"),
        ("if .a then 1 end", "'else' is missing"),
        (".a.", "has an error at '.'"),
        (".a |", "has an error at ''"),
        ("(" * 60 + "1" + ")" * 60, "it is nested more than 40 deep"),
        ("-" * 60 + "1", "nested more than 40 deep"),
        ("+".join("1" * 60), "nested more than 40 deep"),
        ('"\\ud83d"', "half of a surrogate pair"),
    ],
)
def test_programs_that_are_refused(program: str, told: str) -> None:
    [(place, message)] = faults(with_format(with_programs({"a": program}))).items()
    assert place == "ioConfig.inputFormat.flattenSpec.fields[0]"
    assert told in message


def test_a_program_is_required_and_a_hundred_are_taken() -> None:
    [message] = faults(with_format({"type": "json", "flattenSpec": {"fields": [{"type": "jq", "name": "a"}]}})).values()
    assert "a field of type jq needs expr, a program such as .foo.bar" in message
    assert FlattenSpec.model_validate(with_programs({f"f{n}": "." for n in range(100)})["flattenSpec"])
    [message] = faults(with_format(with_programs({f"f{n}": "." for n in range(101)}))).values()
    assert "there are 101 fields of type jq; at most 100 are allowed" in message


@pytest.mark.parametrize("input_format", [AVRO, THRIFT])
def test_jq_goes_with_json_alone(input_format: dict[str, Any]) -> None:
    [message] = faults(with_format({**input_format, "flattenSpec": with_programs({"a": ".a"})["flattenSpec"]})).values()
    assert "fields of type jq need the format json" in message


@pytest.mark.parametrize(
    "program",
    [
        " | ".join(["[., .]"] * 38),
        " | ".join(["{a: ., b: .}"] * 38),
        ".l | " + " | ".join(["(. + .)"] * 37),
        ".s * 1000000000 * 1000000000",
        "[" + " + ".join([".l[]"] * 30) + "]",
        ".l | " + " | ".join(["map(., .)"] * 30),
        " | ".join([".s + .s | {s: .}"] * 38),
        "[range(1000000000)]",
        ".l | indices(range(1000000000))",
    ],
)
def test_a_record_may_not_cost_without_end(program: str) -> None:
    with pytest.raises(EvaluationFailed):
        found(program, {"s": "abc", "l": list(range(100))})


def test_a_deeply_nested_record_fails() -> None:
    nested: dict[str, Any] | Literal[0] = 0
    for _ in range(100_000):
        nested = {"a": nested}
    with pytest.raises(EvaluationFailed):
        found("[..]", {"a": nested})
    assert decoded(with_programs({"a": "."}), [b'{"a":' * 100_000 + b"1" + b"}" * 100_000]).unparseable.keys() == {0}


def test_a_program_is_interrupted_in_the_middle_of_a_record() -> None:
    def interrupted() -> None:
        raise duckdb.InterruptException("Interrupted!")

    with pytest.raises(duckdb.InterruptException):
        jq.first_value({"l": list(range(1000))}, parse_jq(".l | map(. + 1)"), interrupted)


def test_an_object_that_is_made_has_the_order_of_javas_map() -> None:
    assert found('{"zz": 1, "b": 2, "foo": 3, "a": 4}', {}) == '{"zz":1,"a":4,"b":2,"foo":3}'
    assert found('{"é": 1, "😀": 2, "b": 3}', {}) == '{"b":3,"😀":2,"é":1}'


def test_control_characters_are_escaped_as_jackson_does() -> None:
    assert found('"\\u001f\\n" | tojson', {}) == r'"\"\\u001F\\n\""'
