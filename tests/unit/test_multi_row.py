"""Records of several rows, as Druid reads them: all rows are stored, or none."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from controlplane.api.druid.sampler import sample_response
from ingestion.decode import compiled_schema
from ingestion.decode import multi_row as module
from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import TooWide
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.multi_row import split_rows
from ingestion.rows import row_indexes
from ingestion.specs.formats.input_format import as_single_row
from ingestion.specs.messages.sampler_spec import parse_sampler_spec
from ingestion.task.sampler import records
from ingestion.task.sampler.answering import answer_to
from tests.support.formats import decoded, fault, format_of, schema_of

JSON: dict[str, Any] = {"type": "json"}
CSV: dict[str, Any] = {"type": "csv", "columns": ["t", "a"]}
HEADED: dict[str, Any] = {"type": "csv", "findColumnsFromHeader": True, "skipHeaderRows": 1}
REGEX: dict[str, Any] = {"type": "regex", "pattern": r"(\d+) (.*)", "columns": ["t", "a"]}


@pytest.mark.parametrize(
    ("spec", "payload", "values"),
    [
        (JSON, b'{"a":"1"}\n{"a":"2"}\n', ["1", "2"]),
        (JSON, b'{"a":"1"}{"a":"2"} \t\r\n {"a":"3"}', ["1", "2", "3"]),
        (JSON, b'\xef\xbb\xbf{"a":"} {"} {"a":"\\" } {"}{"a":"\\\\"}', ["} {", '" } {', "\\"]),
        (JSON, b'{"x":[{},{"y":{}} ],"a":"1"} {"a":"2"}', ["1", "2"]),
        (CSV, b"1,x\n2,y\r\n\r\n", ["x", "y"]),
        (CSV, b'\xef\xbb\xbf"1","x\n,y"\n2,"a ""q"""', ["x\n,y", 'a "q"']),
        (HEADED, b"# by x\nt,a\n1,x\n2,y\n", ["x", "y"]),
        (HEADED, b'# by x\n"t","a"\n1,"x"\n2,"y"', ["x", "y"]),
        ({**CSV, "type": "tsv", "skipHeaderRows": 1}, b'# by x\n1\t"x\n2\ty"', ['"x', 'y"']),
        (REGEX, b"1 x\n2 y\n", ["x", "y"]),
        (REGEX, b"1 x\n", ["x"]),
    ],
)
def test_every_row_of_a_record_is_read(spec: dict[str, Any], payload: bytes, values: list[str]) -> None:
    found = decoded(spec, [payload], schema=schema_of(dimensions=["a"]))
    assert (found.rows.column("a").to_pylist(), found.unparseable) == (values, {})


def test_rows_stand_among_those_of_the_other_records() -> None:
    found = decoded(JSON, [b'{"a":1}', b'{"a":2}{"a":3}', None, b"{", b'{"a":4}{"a":5}', b'{"a":6}'])
    assert row_indexes(found.rows).tolist() == [0, 1, 1, 4, 4, 5]
    assert found.rows.column("a").to_pylist() == [1, 2, 3, 4, 5, 6]
    assert (list(found.unparseable), found.tombstones) == ([3], [2])


@pytest.mark.parametrize(
    ("spec", "payload", "message"),
    [
        (JSON, b'{"a":1} {"a":', "row 2 of 2: not JSON: unexpected end of data at byte 5"),
        (JSON, b'{"a":1} {"t":"x"} {"t":"y"}', "row 2 of 3: field 't' has no time"),
        (JSON, b'{"a":1} 5', "not JSON: unexpected content after document"),
        (JSON, b'[{"a":1},{"a":2}]', "not a JSON object but an array"),
        (CSV, b"1,x\n\n2,y", "row 2 of 3: the payload is empty"),
        (CSV, b'1,x\n2,"y', "not CSV: a quote without its end"),
        (HEADED, b"# by x\nt,a\n", "there is no row of values"),
        (REGEX, b"1 x\nno", "row 2 of 2: the pattern does not match"),
    ],
)
def test_one_bad_row_makes_the_whole_record_unparseable(spec: dict[str, Any], payload: bytes, message: str) -> None:
    assert fault(spec, payload).startswith(message)
    assert not decoded(spec, [payload]).rows.num_rows


def test_why_it_is_not_one_row_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """To explain a text costs more than to decode its rows."""
    asked: list[str] = []

    def explain(engine: object, text: str) -> str:
        asked.append(text)
        return "bad"

    monkeypatch.setattr(compiled_schema, "explain_text", explain)
    found = decoded(JSON, [b'{"a":1}{"a":2}', b"{", b'{"a":3} {"b"'])
    assert found.unparseable == {1: "bad", 2: "row 2 of 2: bad"}
    assert asked == ['{"b"', "{"]


@pytest.mark.parametrize(
    ("spec", "payload", "message"),
    [
        (JSON, b'{"a":1}\n{"a":2}', "not JSON: unexpected content after document"),
        (CSV, b"1,x\n2,y", "there are 2 rows instead of one"),
        (HEADED, b"# by x\nt,a\n1,x\n2,y", "there are 2 rows instead of one"),
        (REGEX, b"1 x\n2 y", "the pattern does not match"),
    ],
)
def test_who_wants_one_row_per_record_gets_it(spec: dict[str, Any], payload: bytes, message: str) -> None:
    one = {**spec, "rowsPerRecord": 1}
    assert fault(one, payload).startswith(message)
    assert as_single_row(format_of(spec)) == format_of(one)
    assert as_single_row(format_of({"type": "kafka", "valueFormat": spec})) == format_of(
        {"type": "kafka", "valueFormat": one}
    )


@pytest.mark.parametrize("value", [0, 2, "1", True, "all"])
def test_any_other_number_of_rows_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError, match="must be 1"):
        format_of({**JSON, "rowsPerRecord": value})
    with pytest.raises(ValidationError, match="rowsPerRecord"):
        format_of({"type": "thrift", "thriftClass": "C", "thriftFile": "f", "rowsPerRecord": 1})


def test_a_record_is_thrown_away_only_with_all_of_its_rows() -> None:
    schema = schema_of(dimensions=["a"]).model_dump()
    schema["transformSpec"] = {"filter": {"type": "selector", "dimension": "a", "value": "x"}}
    found = decoded(CSV, [b"1,x\n2,y", b"1,y\n2,z", b"1,x\n2,x"], schema=type(schema_of()).model_validate(schema))
    assert row_indexes(found.rows).tolist() == [0, 2, 2]
    assert (found.filtered, found.unparseable) == ([1], {})


def test_each_row_has_the_key_the_time_and_the_headers_of_its_record() -> None:
    spec = {
        "type": "kafka",
        "valueFormat": JSON,
        "keyFormat": {"type": "tsv", "columns": ["k"]},
        "headerFormat": {"type": "string"},
    }
    envelope = Envelope("topic", [b"k", b"l"], [5, 6], [(("h", b"v"),), ()])
    found = decoded(spec, [b'{"a":1}\n{"a":2}', b'{"a":3}'], envelope=envelope)
    assert [(r["a"], r["kafka.key"], r["kafka.timestamp"], r["kafka.header.h"]) for r in found.rows.to_pylist()] == [
        (1, "k", 5, "v"),
        (2, "k", 5, "v"),
        (3, "l", 6, None),
    ]


def test_a_faulty_field_of_a_row_is_told_of_the_record() -> None:
    schema = schema_of(dimensions=[{"name": "a", "type": "long"}])
    found = decoded(JSON, [b'{"a":1}{"a":"x"}', b'{"a":2}'], schema=schema)
    assert found.processed_with_error == {0: "row 2 of 2: field 'a' is not a whole number"}
    assert found.rows.column("a").to_pylist() == [1, None, 2]


def test_many_rows_are_decoded_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PORTION_ROWS", 3)
    found = decoded(CSV, [b"\n".join(b"%d,%d" % (n, n) for n in range(10)), b"0,x"], schema=schema_of(dimensions=["a"]))
    assert row_indexes(found.rows).tolist() == [0] * 10 + [1]
    assert found.rows.column("a").to_pylist() == [*map(str, range(10)), "x"]


def test_records_whose_rows_need_too_much_memory_together_are_decoded_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = b"\n".join(b"1,%d" % n for n in range(1000))
    decoder = JsonDecoder(schema_of(dimensions=["a"]), 2**28, input_format=format_of(CSV))
    try:
        decoder._several = module.MultiRowReader.of(format_of(CSV), 8 * 15_000)
        assert decoder.decode([payload]).rows.num_rows == 1000
        with pytest.raises(TooWide, match="2 records have rows that need"):
            decoder.decode([payload, payload])
        monkeypatch.setattr(module, "_MAX_BYTES_OF_RECORD", 15_000)
        assert decoder.decode([payload + b"\n1,x" * 1000]).unparseable[0].startswith("has rows that need")
    finally:
        decoder.close()


def test_a_header_that_would_be_read_with_too_many_rows_makes_its_record_unparseable() -> None:
    header, rows = b"t,a," + b",".join(b"column_%d" % n for n in range(2000)), b"\n1,x" * 20_000
    found = decoded(
        HEADED | {"skipHeaderRows": 0}, [header + rows, b"t,a\n1,x\n2,y"], schema=schema_of(dimensions=["a"])
    )
    assert found.unparseable[0].startswith("has rows of 4")
    assert row_indexes(found.rows).tolist() == [1, 1]


def test_rows_that_hold_too_many_fields_together_make_their_record_unparseable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_IN_BATCH", 20)
    wide = b"".join(b'{"f%d":1}' % n for n in range(30))
    monkeypatch.setattr(module, "PORTION_ROWS", 10)
    assert fault(JSON, wide) == "has rows with 30 different fields; at most 20 are allowed"


def test_records_are_taken_apart_for_a_sample() -> None:
    rows, owners = split_rows(format_of(JSON), [b'{"a":1}{"a":2}', None, b"", b"[1]", b'{"a":3}'])
    assert rows == [b'{"a":1}', b'{"a":2}', None, b"", b"[1]", b'{"a":3}']
    assert owners == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("most", [{"MAX_HELD_ROWS": 5}, {"MAX_INPUT_BYTES": 20}])
def test_a_sample_ends_where_its_records_hold_too_many_rows(monkeypatch: pytest.MonkeyPatch, most: Any) -> None:
    """Header rows count as often as they are read; the first record is shown whatever it holds."""
    for name, value in most.items():
        monkeypatch.setattr(records, name, value)
    texts = [base64.b64encode(text).decode() for text in (b"t,a\n" + b"1,x\n" * 3, b"t,a\n" + b"1,x\n" * 3)]
    io_config = {"inputFormat": HEADED | {"skipHeaderRows": 0}}
    io_config["inputSource"] = {"type": "inline", "data": texts, "encoding": "base64"}
    schema = {"timestampSpec": {"column": "t", "format": "auto"}, "dimensionsSpec": {"dimensions": ["a"]}}
    spec = parse_sampler_spec({"type": "kafka", "spec": {"dataSchema": schema, "ioConfig": io_config}})
    answer = answer_to(spec.order)
    assert ([r.held for r in answer.records], answer.stopped_by) == ([3], "answer")


def test_brackets_and_quotes_without_end_take_no_long_time() -> None:
    for odd in (b'"\\' * 200_000, b"} " * 200_000, b'\\"' * 200_000, b"{" * 200_000):
        assert len(split_rows(format_of(JSON), [odd])[0]) == 1


SAMPLED = [b'{"t":1,"a":"x"}{"t":1,"a":"y"}{"t":1,"a":"x"}', b'{"t":1,"a":"x"}', b'{"t":1,"a":"x"}{"t":"no"}']


@pytest.mark.parametrize("kind", ["kafka", "index_parallel"])
def test_a_sample_shows_every_row_and_druids_clients_get_an_entry_for_each(kind: str) -> None:
    texts = [base64.b64encode(record).decode() for record in SAMPLED]
    schema = {
        "timestampSpec": {"column": "t", "format": "auto"},
        "dimensionsSpec": {"dimensions": ["a"]},
        "metricsSpec": [{"type": "count", "name": "c"}],
        "granularitySpec": {"rollup": True},
    }
    io_config = {"inputFormat": JSON, "inputSource": {"type": "inline", "data": texts, "encoding": "base64"}}
    spec = parse_sampler_spec({"type": kind, "spec": {"dataSchema": schema, "ioConfig": io_config}})
    answer = answer_to(spec.order)
    several, one, bad = answer.records
    druids = sample_response(spec, answer)
    if kind == "index_parallel":  # a line of a file is one row
        assert [r.outcome for r in answer.records] == ["unparseable", "stored", "unparseable"]
        assert (druids["numRowsRead"], druids["numRowsIndexed"]) == (3, 1)
        return
    assert (several.outcome, [r["a"] for r in several.stored_rows]) == ("stored", ["x", "y", "x"])
    assert [r.fields for r in several.by_row] == [{"t": 1, "a": "x"}, {"t": 1, "a": "y"}, {"t": 1, "a": "x"}]
    assert (one.outcome, one.held, bad.outcome, bad.stored_rows) == ("stored", 1, "unparseable", [])
    assert bad.error.startswith("row 2 of 2: field 't' has no time")
    assert answer.rollup is not None
    assert [(m.row["a"], m.row["c"], m.records, m.rows) for m in answer.rollup] == [
        ("x", 3, [0, 1], [0, 2, 3]),
        ("y", 1, [0], [1]),
    ]
    assert (druids["numRowsRead"], druids["numRowsIndexed"]) == (6, 4)
    assert [entry.get("parsed", {}).get("a") for entry in druids["data"]] == ["x", "y", None]
    assert druids["data"][2]["unparseable"] is True
