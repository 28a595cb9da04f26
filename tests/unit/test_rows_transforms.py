"""The transformSpec: what expressions see and make, what happens where they fail, and that nothing breaks out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ingestion.decode.decoded import Decoded
from ingestion.decode.engine import Engine
from ingestion.decode.errors import UnusableSchema
from ingestion.decode.expression_runner import ExpressionRunner
from ingestion.decode.expressions import BadExpression, parse_expression
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.decoders import ANY_NUMBER, decoder_of


def schema_of(
    expressions: dict[str, str], condition: dict[str, Any] | None = None, dimensions: dict[str, Any] | None = None
) -> DataSchema:
    transforms = [{"type": "expression", "name": n, "expression": e, "language": "sql"} for n, e in expressions.items()]
    return DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "t"},
            "dimensionsSpec": dimensions or {"useSchemaDiscovery": True},
            "transformSpec": {"transforms": transforms, "filter": condition},
        }
    )


def decoded_with(schema: DataSchema, *records: dict[str, Any]) -> Decoded:
    return decoder_of(schema, ANY_NUMBER).decode([json.dumps({"t": 0, **r}).encode() for r in records], MessageWindow())


def made(expression: str, *records: dict[str, Any], kind: str = "auto") -> list[Any]:
    """What the expression makes of each record."""
    schema = schema_of({"made": expression}, dimensions={"dimensions": [{"name": "made", "type": kind}]})
    values: list[Any] = decoded_with(schema, *records).rows.column("made").to_pylist()
    return values


def expression(text: str) -> dict[str, Any]:
    return {"type": "expression", "expression": text, "language": "sql"}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    found = Engine(256 * 1024 * 1024)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("expression", "record", "expected"),
    [
        ("a + 1", {"a": 1}, 2),
        ("a / 2", {"a": 1}, 0.5),
        ("a || '!'", {"a": "x"}, "x!"),
        ("upper(a)", {"a": "é"}, "É"),
        ("concat(a, '-', b)", {"a": "x", "b": 7}, "x-7"),
        ("coalesce(a, 'none')", {}, "none"),
        ("nullif(a, '')", {"a": ""}, None),
        ("CASE WHEN a > 5 THEN 'high' ELSE 'low' END", {"a": 6}, "high"),
        ("a IS NULL", {"a": None}, True),
        ("a IN ('x', 'y') AND NOT b", {"a": "x", "b": False}, True),
        ("a LIKE 'x%'", {"a": "xyz"}, True),
        ("a BETWEEN 1 AND 3", {"a": 3}, True),
        ("regexp_extract(a, '(\\d+)', 1)", {"a": "order 66"}, "66"),
        ("a::BIGINT * 2", {"a": "21"}, 42),
        ("CAST(a AS VARCHAR)", {"a": 5}, "5"),
        ("j->>'$.user.name'", {"j": {"user": {"name": "ann"}}}, "ann"),
        ("json_array_length(j)", {"j": [1, 2, 3]}, 3),
        ('"odd name.x" + "A" - a', {"odd name.x": 10, "A": 3, "a": 1}, 12),
        ("date_trunc('hour', __time)", {"t": 5_400_000}, "1970-01-01 01:00:00"),
        ("extract(hour FROM __time)", {"t": 5_400_000}, 1),
        ("epoch_ms(__time)", {"t": 5_400_000}, 5_400_000),
        ("strftime(__time, '%Y-%m')", {"t": 5_400_000}, "1970-01"),
        ("'constant'", {}, "constant"),
        ("{'k': a}", {"a": 1}, '{"k":1}'),
        ("[a, a]", {"a": 1}, "[1,1]"),
        ("a; ", {"a": 1}, 1),
        ("a -- with a remark", {"a": 1}, 1),
        ("9007199254740993 + a", {"a": 0}, 9007199254740993),
    ],
)
def test_expressions(expression: str, record: dict[str, Any], expected: Any) -> None:
    assert made(expression, record) == [expected]


def test_a_transform_shadows_a_field_and_others_see_the_records_own() -> None:
    """Druid: transforms refer to fields of the input, not to other transforms."""
    dimensions = {"dimensions": [{"type": "long", "name": "b"}], "useSchemaDiscovery": True}
    schema = schema_of({"a": "a * 10", "b": "a + 1", "gone": "NULL", "new": "a"}, dimensions=dimensions)
    rows = decoded_with(schema, {"a": 1, "gone": "x"}, {"a": 2}).rows
    assert rows.column_names[2:] == ["b", "a"], "what no record has is not discovered"
    assert (rows.column("a").to_pylist(), rows.column("b").to_pylist()) == ([10, 20], [2, 3])


def test_numbers_that_were_made_are_not_looked_up_in_the_record() -> None:
    schema = schema_of({"a": "a * 2"}, dimensions={"dimensions": ["a"]})
    assert decoded_with(schema, {"a": 1.5, "b": 1}).rows.column("a").to_pylist() == ["3.0"]


def test_metrics_see_what_transforms_make() -> None:
    schema = schema_of({"v": "a * b"})
    metrics = [{"type": "longSum", "name": "m", "fieldName": "v"}]
    schema = DataSchema.model_validate({**schema.model_dump(mode="json"), "metricsSpec": metrics})
    assert decoded_with(schema, {"a": 6, "b": 7}).rows.column("m").to_pylist() == [42]


def test_a_transform_may_make_the_time() -> None:
    schema = schema_of({"__time": "strptime(day, '%d.%m.%Y')"})
    decoded = decoded_with(schema, {"day": "01.06.2025"}, {"day": "no"}, {"day": "02.01.1970"})
    assert [f"{t:%Y-%m-%d}" for t in decoded.rows.column("__time").to_pylist()] == ["2025-06-01", "1970-01-02"]
    assert decoded.unparseable == {1: "field '__time' has no time: it is missing or null"}
    assert decoded_with(schema_of({"__time": "ms * 1000"}), {"ms": 5}).rows.column("__time").to_pylist()[0].second == 5


def test_what_fails_is_null_for_its_record_alone() -> None:
    schema = schema_of({"n": "CAST(a AS BIGINT) + 1"}, dimensions={"dimensions": [{"name": "n", "type": "long"}]})
    decoded = decoded_with(schema, {"a": "1"}, {"a": "x"}, {"a": None}, {"a": {"k": 1}}, {"a": 4}, {"a": "9" * 30})
    assert decoded.rows.column("n").to_pylist() == [2, None, None, None, 5, None]
    assert decoded.processed_with_error == dict.fromkeys([1, 3, 5], "transform 'n' fails on this record")
    assert decoded.unparseable == {}


def test_a_result_does_not_depend_on_the_records_beside_it() -> None:
    """``a + 1`` makes sense for numbers only; a text beside them changes nothing for the others."""
    values = [1, "x", 2.5, None, True, [1], {"k": 1}, "2", 2**70]
    together = made("a + 1", *({"a": v} for v in values), kind="string")
    assert together == [made("a + 1", {"a": v}, kind="string")[0] for v in values]
    assert together[:4] == ["2", None, "3.5", None]


def test_more_combinations_of_types_than_are_told_apart() -> None:
    values: list[Any] = [1, 1.5, "1", True, None, [1]]
    records = [{"a": a, "b": b, "c": c} for a in values for b in values for c in values]
    expression = "coalesce(a::VARCHAR, '') || coalesce(b::VARCHAR, '') || coalesce(c::VARCHAR, '')"
    texts = {1: "1", 1.5: "1.5", "1": "1", None: ""}
    found = made(expression, *records, kind="string")
    for record, result in zip(records, found, strict=True):
        if all(not isinstance(v, bool | list) for v in record.values()):
            assert result == "".join(texts[v] for v in record.values())


def test_what_stands_twice_fails_on_the_record_at_fault_alone() -> None:
    assert made("(a::BIGINT + 1) * (a::BIGINT + 1)", {"a": "x"}, {"a": "7"}) == [None, 64]


@pytest.mark.parametrize(
    ("number", "expected", "fails"),
    [
        ("9223372036854775807", 2**63 - 1, False),
        ("-9223372036854775808", -(2**63), False),
        ("1000000000000000001", 10**18 + 1, False),
        ("1e400", None, True),
        ("-1e400", None, True),
        ("NaN", None, True),
    ],
)
@pytest.mark.parametrize("language", ["sql", "druid"])
def test_a_number_that_no_double_holds_fails(number: str, expected: int | None, fails: bool, language: str) -> None:
    transform = {"type": "expression", "name": "made", "expression": "a", "language": language}
    spec = {"dimensionsSpec": {"dimensions": [{"name": "made", "type": "long"}]}, "timestampSpec": {"column": "t"}}
    made_so = {"dataSource": "d", **spec, "transformSpec": {"transforms": [transform]}}
    decoder = JsonDecoder(DataSchema.model_validate(made_so), input_format=ANY_NUMBER)
    decoded = decoder.decode([f'{{"t":0,"a":{number}}}'.encode(), b'{"t":0,"a":1.5}'], MessageWindow())
    decoder.close()
    assert decoded.rows.column("made").to_pylist() == [expected, 1]
    assert ("transform 'made' fails" in decoded.processed_with_error.get(0, "")) is fails


# Refused


# Separated by " | ".
BREAKOUTS = (
    """
read_text('/etc/passwd') | read_blob('/etc/passwd') | read_csv('/etc/passwd') | read_json('/x') | glob('/*')
getenv('HOME') | current_setting('home_directory') | set_config('a', 'b') | getvariable('x') | nextval('s')
currval('s') | current_user | current_database() | current_query() | current_schemas(true) | version()
sleep_ms(1000) | pg_sleep(10) | write_log('x') | error('x') | random() | uuid() | now() | current_date
current_timestamp | today() | setseed(0.5) | repeat('x', 1000000000) | range(1000000000)
generate_series(1, 1000000000) | lpad('x', 1000000000, 'y') | rpad('x', 1000000000, 'y')
list_resize([1], 1000000000) | format('{:1000000000}', 'x') | printf('%1000000000d', 1)
json_serialize_sql('SELECT 1') | json_execute_serialized_sql('x') | query('SELECT 1') | query_table('records')
list_aggregate([1], 'sum') | list_transform([1], lambda x: x) | list_transform([1], x -> x)
list_reduce([1], (x, y) -> x) | sum(a) | count(*) | string_agg(a) | first(a) | row_number() OVER () | sum(a) OVER ()
lag(a) OVER (ORDER BY a) | unnest([1]) | (SELECT 1) | (SELECT j FROM records) | a IN (SELECT 1) | EXISTS (SELECT 1)
a = ANY (SELECT 1) | a = ALL (FROM records) | ARRAY(SELECT 1) | SELECT 1 | FROM records | TABLE records | VALUES (1)
WITH x AS (SELECT 1) SELECT * FROM x | 1 FROM records | 1, (SELECT 1) | 1 UNION SELECT 2 | 1 LIMIT 1 | 1 ORDER BY 1
1 WHERE true | 1) FROM records -- | 1); DROP TABLE records; SELECT (1 | 1; DROP TABLE records | DROP TABLE records
COPY records TO '/tmp/x' | ATTACH '/tmp/x' | INSTALL httpfs | LOAD httpfs | SET threads = 8 | PRAGMA version
RESET ALL | EXPORT DATABASE '/tmp/x' | * | records.* | COLUMNS(*) | COLUMNS('.*') | records.j
system.main.read_text('x') | main.lower('x') | $1 | ? | :x | #1 | a AS b | lower(a) FILTER (WHERE true)
lower(DISTINCT a) | a COLLATE nocase | a.lower() | a.read_text() | '/etc/passwd'.read_text() | x'00' | @ | ( | ' | "
a b c | ; | -- | /* | lower(a, b, c, d) | no_such_function(a) | CAST(a AS no_such_type)
""".strip()
    .replace("\n", " | ")
    .split(" | ")
)
BREAKOUTS += [" ", "a\0; DROP TABLE x", "a" + "::INT" * 1900, "(" * 4000 + "1" + ")" * 4000, "[" * 9000]
BREAKOUTS += ["CASE WHEN a THEN " * 500 + "1" + " END" * 500, "1" + "+1" * 4999, "-" * 9000 + "1", "NOT " * 2000 + "a"]


def test_nothing_but_scalar_expressions_is_taken(engine: Engine) -> None:
    """Row 17 of the security checklist: no way out of the grammar."""
    assert [text[:40] for text in BREAKOUTS if not is_refused_briefly(engine, text)] == []


def is_refused_briefly(engine: Engine, text: str) -> bool:
    try:
        ExpressionRunner(engine, text)
    except BadExpression as error:
        return len(str(error)) < 400
    return False


@pytest.mark.parametrize(
    "name", ["records", "texts", "candidates", "f0", "ms", "c1", "nothing", "r", "v", "duckdb_tables"]
)
def test_names_of_the_decoders_own_tables_and_columns_are_fields_like_others(name: str) -> None:
    assert made(f'"{name}"', {name: "mine"}) == ["mine"]
    assert made(f'"{name}"', {"a": 1}) == [None]


def test_where_it_is_wrong_is_told() -> None:
    with pytest.raises(UnusableSchema, match="transform 'x': function 'getenv' is not supported in expressions"):
        JsonDecoder(schema_of({"x": "getenv('HOME')"}))
    with pytest.raises(UnusableSchema, match="filter: an expression can't contain a subquery"):
        JsonDecoder(schema_of({}, expression("a IN (SELECT 1)")))
    with pytest.raises(UnusableSchema, match="into double quotes if it contains a dot"):
        JsonDecoder(schema_of({"x": "a.b"}))


@pytest.mark.parametrize(
    ("transforms", "message"),
    [
        ([{"type": "expression", "name": "a", "expression": "1"}] * 2, "transforms are named twice: a"),
        ([{"type": "javascript", "name": "a", "expression": "1"}], "expression"),
        ([{"type": "expression", "name": "a", "expression": ""}], "at least 1 character"),
        ([{"type": "expression", "name": "", "expression": "1"}], "at least 1 character"),
        ([{"type": "expression", "name": "a", "expression": "1" * 10_001}], "at most 10000"),
    ],
)
def test_what_the_spec_refuses(transforms: list[dict[str, Any]], message: str) -> None:
    spec = {"dataSource": "d", "timestampSpec": {}, "transformSpec": {"transforms": transforms}}
    with pytest.raises(ValidationError, match=message):
        DataSchema.model_validate(spec)


WORDS = st.sampled_from(
    [
        "a",
        "b",
        "(",
        ")",
        ",",
        ";",
        "'",
        '"',
        "+",
        "-",
        "->",
        "::",
        ".",
        "*",
        "$1",
        "?",
        "[",
        "]",
        "{",
        "}",
        "SELECT",
        "FROM",
        "WHERE",
        "lower",
        "read_text('x')",
        "CASE",
        "WHEN",
        "THEN",
        "END",
        "records",
        "1",
        "'x'",
        "OVER",
        "FILTER",
        "AS",
        "CAST",
        "IN",
        "EXISTS",
        "/*",
        "*/",
        "--",
        "ATTACH",
        "LIMIT",
        "UNION",
        "TRY",
    ]
)


@settings(max_examples=300)
@example(text="' SELECT '")
@given(text=st.lists(WORDS, min_size=1, max_size=8).map(" ".join) | st.text(max_size=20))
def test_any_text_is_an_expression_or_is_refused(engine: Engine, text: str) -> None:
    """Row 17 of the security checklist: any text at all."""
    try:
        form = parse_expression(text, engine).form({})
    except BadExpression:
        return
    assert form is not None
    # A text or a name between quotes may hold any word.
    bare = re.sub(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""", "", form.sql).upper()
    assert all(word not in bare for word in ("SELECT ", "READ_TEXT(", "ATTACH "))


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.integers())
)
EXPRESSIONS = [
    "a + b",
    "a / b",
    "upper(a)",
    "a::BIGINT",
    "a::DATE",
    "substr(a, b)",
    "a[b]",
    "chr(a)",
    "a || b",
    "exp(a)",
    "a::JSON",
]


@settings(max_examples=50)
@given(
    text=st.sampled_from(EXPRESSIONS), records=st.lists(st.fixed_dictionaries({"a": VALUES, "b": VALUES}), max_size=6)
)
def test_no_values_fail_a_batch(text: str, records: list[dict[str, Any]]) -> None:
    decoded = decoded_with(schema_of({"made": text}, expression("made IS NOT NULL OR true")), *records)
    assert not decoded.unparseable
    assert len(decoded.rows) == len(records)


@pytest.mark.parametrize(
    ("written", "values", "expected"),
    [
        ("fold((x, acc) -> x + acc, a, 0)", ["30"], "30"),
        ("fold((x, acc) -> x + acc, a, 0.0)", [30], "30.0"),
        ("fold((x, acc) -> x, a, '')", [1, 2], "2"),
        ("fold((x, acc) -> x + acc, a, 0)", [1.5, 1.5], "2"),
        ("cartesian_fold((x, y, acc) -> x * y + acc, a, a, 0)", [1.5], "2"),
    ],
)
def test_what_is_folded_is_of_the_first_values_type(written: str, values: list[Any], expected: str) -> None:
    """Druid takes what comes of each call for the accumulator's type."""
    transform = {"type": "expression", "name": "made", "expression": written}
    spec = {"dimensionsSpec": {"dimensions": ["made"]}, "timestampSpec": {"column": "t"}}
    schema = DataSchema.model_validate({"dataSource": "d", **spec, "transformSpec": {"transforms": [transform]}})
    assert decoded_with(schema, {"a": values}).rows.column("made").to_pylist() == [expected]
