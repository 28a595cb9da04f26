"""``thrift``: every protocol, the documents' structs, what is refused."""

from __future__ import annotations

import io
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.parser import parse_fp
from thriftpy2.protocol import TApacheJSONProtocol, TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.transport import TMemoryBuffer
from thriftpy2.utils import serialize

from ingestion.decode.errors import UnusableSchema
from ingestion.decode.json_decoder import JsonDecoder
from tests.support.formats import decoded, fault, format_of, row, schema_of

# Druid's example, and a field of every other kind.
IDL = """
namespace java com.example.druid
enum Kind { NOVEL = 1, ESSAY = 2 }
struct Author { 1: string firstName; 2: string lastName; }
struct Book {
  1: string date; 2: double price; 3: string title; 4: Author author;
  5: list<string> tags; 6: map<string, i64> counts; 7: Kind kind; 8: binary raw; 9: bool sold; 10: set<i32> years;
  11: map<i32, Author> byNumber
}
struct Strict { 1: required string a; 2: optional string b }
"""
SPEC: dict[str, Any] = {"type": "thrift", "thriftClass": "com.example.druid.Book", "thriftIdl": IDL}


def structs() -> Any:
    return parse_fp(io.StringIO(IDL), "test_formats_thrift", enable_cache=False)


MODULE = structs()
AUTHOR = MODULE.Author(firstName="Émile", lastName="Zola")
BOOK = MODULE.Book(
    date="1885-03-01",
    price=19.5,
    title="Germinal",
    author=AUTHOR,
    tags=["x", "y"],
    counts={"k": 2**40},
    kind=2,
    raw=b"\xff\x00",
    sold=True,
    years=[1885],
    byNumber={7: AUTHOR},
)
ROW = {
    "date": "1885-03-01",
    "price": 19.5,
    "title": "Germinal",
    "author": '{"firstName":"Émile","lastName":"Zola"}',
    "tags": '["x","y"]',
    "counts": '{"k":1099511627776}',
    "kind": 2,
    "raw": "/wA=",
    "sold": True,
    "years": "[1885]",
    "byNumber": '{"7":{"firstName":"Émile","lastName":"Zola"}}',
}


def as_json(struct: Any) -> bytes:
    """Thrift's own JSON: the argument of a call, without the call around it."""
    buffer = TMemoryBuffer()
    protocol = TApacheJSONProtocol(buffer)
    protocol.write_message_begin("m", 1, 0)
    protocol.write_struct(struct)
    protocol.write_message_end()
    return bytes(buffer.getvalue()).split(b",", 4)[4].rsplit(b"]", 1)[0].strip()


WRITTEN = {
    "binary": serialize(BOOK, TBinaryProtocolFactory()),
    "compact": serialize(BOOK, TCompactProtocolFactory()),
}


@pytest.mark.parametrize("protocol", ["binary", "compact"])
@pytest.mark.parametrize("told", [True, False])
def test_a_struct_in_each_protocol(protocol: str, told: bool) -> None:
    spec = {**SPEC, "protocol": protocol} if told else SPEC
    assert row(spec, WRITTEN[protocol]) == ROW


def test_json() -> None:
    """Thrift's JSON names fields by their numbers, each with its type; written by hand from its protocol."""
    payload = b'{"1":{"str":"1885-03-01"},"2":{"dbl":19.5},"4":{"rec":{"2":{"str":"Zola"}}},"9":{"tf":1}}'
    expected = {"date": "1885-03-01", "price": 19.5, "author": '{"lastName":"Zola"}', "sold": True}
    assert row(SPEC, payload) == expected
    assert row({**SPEC, "protocol": "json"}, payload) == expected


def test_base64_around_it() -> None:
    assert row(SPEC, b64encode(WRITTEN["compact"])) == ROW
    assert row(SPEC, b64encode(WRITTEN["binary"])) == ROW


def test_the_documents_flatten_spec() -> None:
    fields = [{"type": "path", "name": "lastName", "expr": "$.author.lastName"}]
    spec = {**SPEC, "flattenSpec": {"useFieldDiscovery": True, "fields": fields}}
    schema = schema_of(dimensions=["title", "lastName"])
    assert row(spec, WRITTEN["compact"], schema=schema) == {"title": "Germinal", "lastName": "Zola"}


@pytest.mark.parametrize("payload", [b"", b"\x0b", b"\x0b\x00\x01\x7f\xff\xff\xff", b"{", b'{"1":5}', b"\x18\xff"])
def test_bad_records(payload: bytes) -> None:
    assert fault(SPEC, payload)


def test_a_required_field_that_is_missing() -> None:
    spec = {**SPEC, "thriftClass": "Strict"}
    found = decoded(spec, [serialize(MODULE.Strict(a="x"), TBinaryProtocolFactory()), b"\x0b\0\x02\0\0\0\x01x\0"])
    assert found.rows.column("a").to_pylist() == ["x"]
    assert found.unparseable == {1: "not a Thrift Strict: the required field a is missing"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"thriftClass": "com.example.Nobody"}, "no struct Nobody"),
        ({"thriftClass": "Kind"}, "no struct Kind"),
        ({"thriftIdl": "struct {"}, "the Thrift IDL can't be used"),
        ({"thriftIdl": 'include "/etc/passwd"\nstruct Book {}'}, "the Thrift IDL can't be used"),
        ({"thriftIdl": None, "thriftFile": "book.thrift"}, "HEADGATE_SCHEMA_FOLDER"),
    ],
)
def test_specs_that_are_of_no_use(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableSchema, match=message):
        JsonDecoder(schema_of(), input_format=format_of({**SPEC, **change}))


def test_an_idl_file(tmp_path: Path) -> None:
    (tmp_path / "book.thrift").write_text(IDL)
    spec = {"type": "thrift", "thriftClass": "Book", "thriftFile": "book.thrift"}
    assert row(spec, WRITTEN["binary"], schema_folder=str(tmp_path)) == ROW
