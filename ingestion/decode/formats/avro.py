"""``avro_stream``: Avro datums, read by fastavro.

As in Druid, logical types are left aside and the value beneath is taken (a ``timestamp-millis`` is a long, for the
timestampSpec to read, a ``uuid`` the text that was written), except decimals, which are numbers. Bytes and fixed are
base64.

What Java's library lets pass in a schema to read with is read: defaults of another type, since nobody needs a writer's
defaults; decimals without a precision, or with a wrong one, which are bytes then; a union of records at the top.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, BinaryIO

import fastavro
import fastavro.read
import numpy as np
from fastavro.schema import parse_schema

from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import UnusableSchema
from ingestion.decode.exact_numbers import NumberToken, single_number
from ingestion.decode.formats.access import Access
from ingestion.decode.formats.avro_unions import record_expander, type_expander
from ingestion.decode.formats.base import BadRecord, Texts, json_encoder, read_texts
from ingestion.decode.formats.files import read_schema_file
from ingestion.decode.formats.registry import HEAD_BYTES, RegisteredSchema, RegistrySchemas, split_head
from ingestion.specs.formats.input_format import (
    AvroFileDecoder,
    AvroInlineDecoder,
    AvroInputFormat,
    AvroMultipleDecoder,
)

_VERSION = 1
_DECIMAL = "exact-decimal"  # fastavro's own rounds to the precision, which Java does not
_SINGLE = "float of 32 bits"
_WHOLE = "whole number that may become a float"
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MAX_DECIMAL_BYTES = 4_096
_RECORDS = ("record", "error")
_WRAPPER_FIELD = "v"  # a record of this one field is written as its value alone: so fastavro reads a union


class AvroSchema:
    """A schema, ready to read with. ``seen_as``: another one, by which what was written with it is read."""

    def __init__(
        self, schema: Any, unions_by_type: bool, references: Sequence[Any] = (), seen_as: Any | None = None
    ) -> None:
        named: dict[str, Any] = {}
        for reference in references:
            parse_schema(_prepare_schema(reference), named)
        self._wrapped = not isinstance(schema, dict) or isinstance(seen_as, list)
        self._writer_schema = self._parsed(_prepare_schema(schema, has_reader_schema=seen_as is not None), named)
        self._reader_schema = None
        if seen_as is not None:
            named = {}
            self._reader_schema = self._parsed(_prepare_schema(seen_as, defaults=True), named)
        result_schema = self._writer_schema if self._reader_schema is None else self._reader_schema
        result_schema = result_schema["fields"][0]["type"] if self._wrapped else result_schema
        members = result_schema if isinstance(result_schema, list) else [result_schema]
        if not all(_is_record(m, named) for m in members if m != "null"):
            raise ValueError("the schema must be a record's, or a union of records")
        self._expand = None
        if unions_by_type:
            self._expand = record_expander(members, named) if self._wrapped else type_expander(result_schema, named)

    def _parsed(self, schema: Any, named: dict[str, Any]) -> Any:
        if self._wrapped:
            schema = {"type": "record", "name": "headgate.Top", "fields": [{"name": _WRAPPER_FIELD, "type": schema}]}
        return parse_schema(schema, named)

    def read(self, payload: bytes, start: int) -> Any:
        """The record that begins at ``start``, as values that JSON has, bytes, decimals and ``NumberToken``."""
        stream = io.BytesIO(payload)
        stream.seek(start)
        try:
            record = self.next_of(stream)
        except (EOFError, IndexError):
            raise BadRecord("not Avro of this schema: it ends too early, or selects no branch of a union") from None
        left = len(payload) - stream.tell()
        if left:
            raise BadRecord(f"not Avro of this schema: {left} bytes follow the record")
        return record

    def next_of(self, stream: BinaryIO, not_unicode: str = "strict") -> Any:
        """The record that begins here, likewise. Raises what fastavro does, which is anything.

        ``not_unicode``: how a text is read that is not UTF-8, in the words of Python's ``decode``.
        """
        named = self._expand is not None
        record: Any = fastavro.schemaless_reader(
            stream, self._writer_schema, self._reader_schema, handle_unicode_errors=not_unicode, return_named_type=named
        )
        if self._wrapped:
            record = record[_WRAPPER_FIELD]
            if record is None:
                raise BadRecord("null instead of a record")
        return record if self._expand is None else self._expand(record)


def _is_record(member: Any, named: dict[str, Any]) -> bool:
    definition = named.get(member) if isinstance(member, str) else member
    return isinstance(definition, dict) and definition.get("type") in _RECORDS


def _prepare_schema(schema: Any, *, defaults: bool = False, has_reader_schema: bool = False) -> Any:
    """The schema of a type with logical types of our own for numbers that JSON has not, and without those left aside.

    ``defaults``: whether these stay. Nobody needs a writer's. ``has_reader_schema``: whether another schema says what
    they become.
    """
    if isinstance(schema, list):
        return [_prepare_schema(member, defaults=defaults, has_reader_schema=has_reader_schema) for member in schema]
    if not isinstance(schema, dict):
        return _prepare_primitive({"type": schema}, has_reader_schema) or schema
    if primitive := _prepare_primitive(schema, has_reader_schema):
        return primitive
    prepared = {k: v for k, v in schema.items() if k != "logicalType" and (defaults or k != "default")}
    prepared |= {
        k: _prepare_schema(prepared[k], defaults=defaults, has_reader_schema=has_reader_schema)
        for k in ("type", "items", "values")
        if k in prepared
    }
    if isinstance(prepared.get("fields"), list):
        prepared["fields"] = [_prepare_field(f, defaults, has_reader_schema) for f in prepared["fields"]]
    return prepared | {"logicalType": _DECIMAL} if _is_decimal(schema) else prepared


def _prepare_primitive(schema: dict[str, Any], has_reader_schema: bool) -> dict[str, Any] | None:
    if schema.get("type") == "float":
        return {**schema, "logicalType": _SINGLE}
    return {**schema, "logicalType": _WHOLE} if has_reader_schema and schema.get("type") in ("int", "long") else None


def _prepare_field(field: Any, defaults: bool, has_reader_schema: bool) -> Any:
    if not isinstance(field, dict):
        return field
    prepared = {k: v for k, v in field.items() if defaults or k != "default"}
    return prepared | {
        "type": _prepare_schema(field.get("type"), defaults=defaults, has_reader_schema=has_reader_schema)
    }


def _is_decimal(schema: dict[str, Any]) -> bool:
    """Whether Java's library takes it for a decimal, and not for the type beneath."""
    precision, scale, size = schema.get("precision"), schema.get("scale", 0), schema.get("size")
    if schema.get("logicalType") != "decimal" or type(precision) is not int or type(scale) is not int:
        return False
    if schema.get("type") == "fixed" and type(size) is int:
        most = math.floor(math.log10(2) * (8 * size - 1))
    else:
        most = 2**31 - 1 if schema.get("type") == "bytes" else 0
    return 0 < precision <= most and 0 <= scale <= precision


def _read_decimal(unscaled: bytes, schema: Any, _: Any = None) -> Decimal | bytes:
    """With all digits that were written, also more than the schema's precision.

    More bytes than any number has stay bytes: their digits would take minutes.
    """
    if len(unscaled) > _MAX_DECIMAL_BYTES:
        return unscaled
    return Decimal(int.from_bytes(unscaled, signed=True)).scaleb(-schema.get("scale", 0), _EXACT)


def _read_float(value: float, _schema: Any, seen_as: Any) -> NumberToken | float:
    return single_number(value) if seen_as is None or _type_name(seen_as) == "float" else value


def _read_integer(value: int, _schema: Any, seen_as: Any) -> NumberToken | float:
    if _type_name(seen_as) == "float":
        return single_number(float(np.int64(value).astype(np.float32)))
    return float(value) if _type_name(seen_as) == "double" else value


def _type_name(schema: Any) -> Any:
    return schema.get("type") if isinstance(schema, dict) else schema


# fastavro's own way to have other logical types, by the type beneath.
fastavro.read.LOGICAL_READERS.update(
    {
        f"bytes-{_DECIMAL}": _read_decimal,
        f"fixed-{_DECIMAL}": _read_decimal,
        f"float-{_SINGLE}": _read_float,
        f"int-{_WHOLE}": _read_integer,
        f"long-{_WHOLE}": _read_integer,
    }
)


class AvroReader:
    """Reads ``avro_stream``."""

    def __init__(self, spec: AvroInputFormat, access: Access) -> None:
        self._record = _record_reader(spec, access)
        self._encode = json_encoder(spec.binaryAsString)

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        return read_texts(payloads, self._text)

    def _text(self, payload: bytes) -> str:
        return self._encode(self._record(payload))


def _record_reader(spec: AvroInputFormat, access: Access) -> Callable[[bytes], Any]:
    decoder, unions = spec.avroBytesDecoder, spec.extractUnionsByType
    if isinstance(decoder, AvroInlineDecoder):
        return _single_schema_reader(checked_schema(decoder.avro_schema, unions))
    if isinstance(decoder, AvroFileDecoder):
        return _single_schema_reader(checked_schema(_load_schema(decoder.file, access.schema_folder), unions))
    if isinstance(decoder, AvroMultipleDecoder):
        return _numbered_schema_reader({n: checked_schema(s, unions) for n, s in decoder.schemas.items()})

    def parse(schema: RegisteredSchema) -> AvroSchema:
        return AvroSchema(json.loads(schema.text), unions, [json.loads(text) for _, text in schema.references])

    return _registry_reader(RegistrySchemas(decoder, access.registry(decoder), "AVRO", parse))


def checked_schema(schema: Any, unions_by_type: bool = False, *, of_reader: bool = False) -> AvroSchema:
    """Ready to read with; ``of_reader``: by which others' records are seen. Raises ``UnusableSchema``."""
    try:
        return AvroSchema(schema, unions_by_type, seen_as=schema if of_reader else None)
    except Exception as error:  # fastavro meets an odd schema with any error at all
        raise UnusableSchema(f"the Avro schema can't be used: {type(error).__name__}: {error}") from error


def _load_schema(place: str, folder: str) -> Any:
    try:
        return json.loads(read_schema_file(place, folder))
    except ValueError as error:
        raise UnusableSchema(f"the file {place} is not JSON: {error}") from None


def _single_schema_reader(schema: AvroSchema) -> Callable[[bytes], Any]:
    return lambda payload: schema.read(payload, 0)


def _numbered_schema_reader(schemas: dict[int, AvroSchema]) -> Callable[[bytes], Any]:
    def read(payload: bytes) -> Any:
        if len(payload) < HEAD_BYTES or payload[0] != _VERSION:
            raise BadRecord("it does not begin with byte 1 and the four bytes of a schema id")
        number = int.from_bytes(payload[1:HEAD_BYTES], signed=True)
        if number not in schemas:
            raise BadRecord(f"the spec has no schema {number}")
        return schemas[number].read(payload, HEAD_BYTES)

    return read


def _registry_reader(schemas: RegistrySchemas[AvroSchema]) -> Callable[[bytes], Any]:
    def read(payload: bytes) -> Any:
        schema_id, start = split_head(payload)
        return schemas.parsed(schema_id).read(payload, start)

    return read
