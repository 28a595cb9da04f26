"""``avro_stream``: Avro datums, read by fastavro.

As in Druid, logical types are left aside and the value beneath is taken (a ``timestamp-millis`` is a long, for the
timestampSpec to read), except decimals, which are numbers, and UUIDs, which are texts. Bytes and fixed are base64.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import fastavro
from fastavro.schema import parse_schema

from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import UnusableSchema
from ingestion.decode.formats.access import Access
from ingestion.decode.formats.avro_unions import by_type
from ingestion.decode.formats.base import BadRecord, Texts, json_encoder, texts_by
from ingestion.decode.formats.files import read_schema_file
from ingestion.decode.formats.registry import HEAD_BYTES, RegisteredSchema, RegistrySchemas, split_head
from ingestion.specs.input_format import (
    AvroFileDecoder,
    AvroInlineDecoder,
    AvroInputFormat,
    AvroMultipleDecoder,
)

_KEPT_LOGICAL = ("decimal", "uuid")
_VERSION = 1


class AvroSchema:
    """A schema, ready to read with. ``seen_as``: another one, by which what was written with it is read."""

    def __init__(
        self, schema: Any, unions_by_type: bool, references: Sequence[Any] = (), seen_as: Any | None = None
    ) -> None:
        named: dict[str, Any] = {}
        for reference in references:
            parse_schema(without_logical(reference), named)
        self._written = parse_schema(without_logical(schema), named)
        self._seen_as = None
        if seen_as is not None:
            named = {}
            self._seen_as = parse_schema(without_logical(seen_as), named)
        told = self._written if self._seen_as is None else self._seen_as
        if not isinstance(told, dict) or told.get("type") not in ("record", "error"):
            raise ValueError("the schema must be a record's")
        self._expand = by_type(told, named) if unions_by_type else None

    def read(self, payload: bytes, start: int) -> Any:
        """The record that begins at ``start``, as values that JSON has, and bytes, decimals and UUIDs."""
        stream = io.BytesIO(payload)
        stream.seek(start)
        try:
            record = self.next_of(stream)
        except (EOFError, IndexError):
            raise BadRecord("not Avro of this schema: it ends too early, or no branch of a union is meant") from None
        left = len(payload) - stream.tell()
        if left:
            raise BadRecord(f"not Avro of this schema: {left} bytes are left behind the record")
        return record

    def next_of(self, stream: BinaryIO) -> Any:
        """The record that begins here, likewise. Raises what fastavro does, which is anything."""
        named = self._expand is not None
        record = fastavro.schemaless_reader(stream, self._written, self._seen_as, return_named_type=named)
        return record if self._expand is None else self._expand(record)


def without_logical(schema: Any) -> Any:
    """The schema without the logical types that are left aside."""
    if isinstance(schema, list):
        return [without_logical(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {k: v if k == "default" else without_logical(v) for k, v in schema.items()}
    if isinstance(kept.get("logicalType"), str) and kept["logicalType"] not in _KEPT_LOGICAL:
        del kept["logicalType"]
    return kept


class AvroReader:
    """Reads ``avro_stream``."""

    def __init__(self, spec: AvroInputFormat, access: Access) -> None:
        self._record = _record_by(spec, access)
        self._encode = json_encoder(spec.binaryAsString)

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        return texts_by(payloads, self._text)

    def _text(self, payload: bytes) -> str:
        return self._encode(self._record(payload))


def _record_by(spec: AvroInputFormat, access: Access) -> Callable[[bytes], Any]:
    decoder, unions = spec.avroBytesDecoder, spec.extractUnionsByType
    if isinstance(decoder, AvroInlineDecoder):
        return _by_one(checked_schema(decoder.avro_schema, unions))
    if isinstance(decoder, AvroFileDecoder):
        return _by_one(checked_schema(_from_file(decoder.file, access.schema_folder), unions))
    if isinstance(decoder, AvroMultipleDecoder):
        return _by_number({n: checked_schema(s, unions) for n, s in decoder.schemas.items()})

    def parse(schema: RegisteredSchema) -> AvroSchema:
        return AvroSchema(json.loads(schema.text), unions, [json.loads(text) for _, text in schema.references])

    return _by_registry(RegistrySchemas(decoder, access.registry(decoder), "AVRO", parse))


def checked_schema(schema: Any, unions_by_type: bool = False) -> AvroSchema:
    """Ready to read with. Raises ``UnusableSchema``."""
    try:
        return AvroSchema(schema, unions_by_type)
    except Exception as error:  # fastavro meets an odd schema with any error at all
        raise UnusableSchema(f"the Avro schema can't be used: {type(error).__name__}: {error}") from error


def _from_file(place: str, folder: str) -> Any:
    try:
        return json.loads(read_schema_file(place, folder))
    except ValueError as error:
        raise UnusableSchema(f"the file {place} holds no JSON: {error}") from None


def _by_one(schema: AvroSchema) -> Callable[[bytes], Any]:
    return lambda payload: schema.read(payload, 0)


def _by_number(schemas: dict[int, AvroSchema]) -> Callable[[bytes], Any]:
    def read(payload: bytes) -> Any:
        if len(payload) < HEAD_BYTES or payload[0] != _VERSION:
            raise BadRecord("it does not begin with byte 1 and four bytes with the number of a schema")
        number = int.from_bytes(payload[1:HEAD_BYTES], signed=True)
        if number not in schemas:
            raise BadRecord(f"the spec has no schema {number}")
        return schemas[number].read(payload, HEAD_BYTES)

    return read


def _by_registry(schemas: RegistrySchemas[AvroSchema]) -> Callable[[bytes], Any]:
    def read(payload: bytes) -> Any:
        schema_id, start = split_head(payload)
        return schemas.of(schema_id).read(payload, start)

    return read
