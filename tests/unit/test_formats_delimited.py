"""``csv`` and ``tsv``, by Druid's reference and, where that is silent, by what Druid does."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode.engine import Engine
from ingestion.decode.formats.delimited import DelimitedReader
from tests.support.formats import decoded, fault, format_of, row, rows, schema_of

CSV: dict[str, Any] = {"type": "csv", "columns": ["t", "a", "b"]}
TSV: dict[str, Any] = {"type": "tsv", "columns": ["t", "a", "b"]}
WIKI = ["timestamp", "page", "language", "user", "unpatrolled", "newPage", "robot", "anonymous", "namespace"]
WIKI += ["continent", "country", "region", "city", "added", "deleted", "delta"]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = Engine(2**28)
    yield made
    made.close()


def test_the_documents_csv_record() -> None:
    line = (
        '2013-08-31T01:02:33Z,"Gypsy Danger","en","nuclear","true","true","false","false","article","North America",'
        '"United States","Bay Area","San Francisco",57,200,-143'
    )
    schema = schema_of(dimensions=["page", "user", "continent", {"name": "delta", "type": "long"}])
    schema = schema.model_copy(update={"timestampSpec": schema.timestampSpec.model_copy(update={"column": WIKI[0]})})
    found = decoded({"type": "csv", "columns": WIKI}, [line.encode()], schema=schema)
    assert rows(found) == [{"page": "Gypsy Danger", "user": "nuclear", "continent": "North America", "delta": -143}]
    assert found.rows.column("__time")[0].as_py().isoformat() == "2013-08-31T01:02:33+00:00"


@pytest.mark.parametrize(
    ("payload", "a", "b"),
    [
        (b"1,x,y", "x", "y"),
        (b"1,x,y\n", "x", "y"),
        (b"1,x,y\r\n\r\n", "x", "y"),
        (b'1,"x,y","a ""q"""', "x,y", 'a "q"'),
        (b'1,a""b,a"b', 'a"b', 'a"b'),
        (b'1,"two\r\nlines",y', "two\r\nlines", "y"),
        (b'1,,""', None, ""),  # nothing is null, quotes around nothing are an empty text
        (b"1,x", "x", None),
        (b"1,x,y,z", "x", "y"),
        (b'1,5" pipe,y', '5" pipe', "y"),
        (b'1, "x",y', ' "x"', "y"),
        (b"\xef\xbb\xbf1,x,y", "x", "y"),
        (b"1,12,1.50", "12", "1.50"),  # values are texts, as they are written
        ("1,é,😀".encode(), "é", "😀"),
        (b'"1","x","y"', "x", "y"),
    ],
)
def test_csv_values(payload: bytes, a: Any, b: Any) -> None:
    expected = {k: v for k, v in (("a", a), ("b", b)) if v is not None}
    assert row(CSV, payload, schema=schema_of(dimensions=["a", "b"])) == expected


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b'1,"x', "not CSV: a quote without its end"),
        (b'1,"x"y,z', "not CSV"),
        (b"\n", "there is no row of values"),
        (b"\xff,1", "not UTF-8: invalid start byte at byte 0"),
        (b"", "the payload is empty"),
    ],
)
def test_csv_records_that_are_unparseable(payload: bytes | None, message: str) -> None:
    assert fault(CSV, payload).startswith(message)


def test_lists() -> None:
    schema = schema_of(dimensions=[{"name": "a", "type": "json"}, "b"])
    assert row(CSV, b"1,x\x01\x01y,z", schema=schema) == {"a": '["x","","y"]', "b": "z"}
    assert row({**CSV, "listDelimiter": "|"}, b'1,"x|y",z', schema=schema)["a"] == '["x","y"]'
    assert row({**CSV, "listDelimiter": "--"}, b"1,x--y,z", schema=schema)["a"] == '["x","y"]'


def test_numbers_only_when_asked_for() -> None:
    spec = {**CSV, "tryParseNumbers": True}
    assert row(spec, b"1,12,-1.5") == {"a": 12, "b": -1.5}
    assert row(spec, b"1,0x1,1e2") == {"a": "0x1", "b": 100.0}
    assert row(CSV, b"1,12,-1.5") == {"a": "12", "b": "-1.5"}


def test_header_rows_are_the_records_own() -> None:
    """A stream has no beginning but that of each record, as in Druid."""
    spec = {"type": "csv", "findColumnsFromHeader": True, "skipHeaderRows": 1}
    assert row(spec, b"# made by x\nt,a\n1,2\n") == {"a": "2"}
    assert row({"type": "csv", "hasHeaderRow": True}, b"t,a\n1,2") == {"a": "2"}
    assert row({**CSV, "skipHeaderRows": 1}, b"t,a,b\n1,2,3") == {"a": "2", "b": "3"}
    assert fault(spec, b"# made by x\n") == "there is no header row"
    assert fault(spec, b"# made by x\nt,a") == "there is no row of values"


@pytest.mark.parametrize(
    ("spec", "payload", "expected"),
    [
        (TSV, b"1\tx\ty", {"a": "x", "b": "y"}),
        (TSV, b"1\t\ty", {"b": "y"}),
        (TSV, b'1\t"x"\t5" pipe', {"a": '"x"', "b": '5" pipe'}),  # quotes mean nothing
        (TSV, b"1\tx,y\tz", {"a": "x,y", "b": "z"}),
        ({**TSV, "delimiter": "|"}, b"1|x|y", {"a": "x", "b": "y"}),
        ({**TSV, "delimiter": "||"}, b"1||x|y||z", {"a": "x|y", "b": "z"}),
        ({**TSV, "type": "delimited", "delimiter": ";"}, b"1;x;y\n", {"a": "x", "b": "y"}),
        ({**TSV, "listDelimiter": ","}, b"1\tx,y\tz", {"a": '["x","y"]', "b": "z"}),
    ],
)
def test_tsv(spec: dict[str, Any], payload: bytes, expected: dict[str, Any]) -> None:
    assert row(spec, payload) == expected


@settings(max_examples=100)
@given(values=st.lists(st.text(alphabet='ab," \r\né', max_size=5), min_size=3, max_size=3))
def test_what_a_csv_writer_writes_is_read(engine: Engine, values: list[str]) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerow(values)
    texts, errors = DelimitedReader(format_of(CSV), engine).read([text.getvalue().encode()], None)
    assert not errors
    assert json.loads(texts[0].as_py()) == dict(zip(["t", "a", "b"], values, strict=True))


NO_NUMBERS = st.binary(max_size=5).filter(lambda raw: not any(48 <= byte <= 57 for byte in raw))
LINES = st.lists(st.text(alphabet='ab,"\t\x01 \r\n\0é', max_size=8).map(str.encode) | NO_NUMBERS, max_size=8)


@settings(max_examples=150, deadline=None)
@given(spec=st.sampled_from([CSV, TSV, {**TSV, "delimiter": "||"}, {**CSV, "listDelimiter": "a"}]), payloads=LINES)
def test_records_read_at_once_are_as_records_read_one_by_one(
    engine: Engine, spec: dict[str, Any], payloads: list[bytes]
) -> None:
    """With ``tryParseNumbers`` every record goes its own way; no value here is a number."""
    texts, errors = DelimitedReader(format_of(spec), engine).read([None, *payloads], None)
    others, faults = DelimitedReader(format_of({**spec, "tryParseNumbers": True}), engine).read([None, *payloads], None)
    assert errors == faults
    for text, other in zip(texts.to_pylist(), others.to_pylist(), strict=True):
        assert (text is None) == (other is None)
        if text is not None:
            assert {k: v for k, v in json.loads(text).items() if v is not None} == {
                k: v for k, v in json.loads(other).items() if v is not None
            }


@pytest.mark.parametrize(
    ("number", "told"),
    [
        ("1e400", "field 'a' has a number that is too large for a double"),
        ("12345678901234567891", "field 'a' is rounded: it has more digits than a double can store"),
        ("1.5", ""),
        ("9223372036854775807", ""),
    ],
)
def test_a_number_that_its_column_does_not_hold_is_told(number: str, told: str) -> None:
    found = decoded({**CSV, "tryParseNumbers": True}, [f"1,{number},x".encode()])
    assert found.processed_with_error.get(0, "") == told
