"""``kafka``: another format's fields, and beside them what Kafka says of the record.

As in Druid: a field of the value hides one of the record's with the same name; among the record's own headers win over
time, topic and key, and of several headers of one name the last; a record without a value is a tombstone, and one whose
value is JSON but no object, as ``42`` or ``null``, has Kafka's own fields alone. Of
the key the first field is taken, or the first column, under the key's name. A key that can't be read makes the record
unparseable.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, lookup
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.engine import RECORDS, Engine
from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import DecodeError
from ingestion.decode.fields import flat
from ingestion.decode.formats.base import Reader, Texts, json_encoder, to_text_array
from ingestion.specs.formats.input_format import KafkaInputFormat

Headers = tuple[tuple[str, bytes | None], ...]

_VALID = "SELECT json_valid(j) FROM records"
_SPACE = " \t\r\n"


class KafkaReader:
    """Reads ``kafka``; ``value`` and ``key`` read what is in the record."""

    def __init__(self, spec: KafkaInputFormat, engine: Engine, value: Reader, key: Reader | None) -> None:
        self._spec = spec
        self._engine = engine
        self._value = value
        self._key = key
        self._encode = json_encoder()

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        if envelope is None:
            raise DecodeError("the input format kafka needs keys, headers and times of the records")
        texts, errors = self._value.read(payloads, envelope)
        keys, bad_keys = self._keys(envelope)
        errors |= {i: f"the key: {e}" for i, e in bad_keys.items() if i not in errors}
        own_members = to_text_array(self._own_fields(envelope, keys), errors)
        opened = self._opened(texts)
        comma = pc.if_else(pc.equal(opened, "{"), "", ",")
        # What is no JSON is left to the next stage, which says why.
        blended = pc.coalesce(pc.binary_join_element_wise(opened, comma, own_members, "}", ""), texts)
        return pc.if_else(_mask_at(errors, len(texts)), pa.scalar(None, pa.string()), blended), errors

    def _opened(self, texts: pa.Array) -> pa.Array:
        """JSON objects without their last brace, nor a comma that DuckDB lets pass there; null for what is no JSON.

        Of other JSON values an object without fields.
        """
        valid = flat(self._engine.run(_VALID, RECORDS, pa.table({"j": texts})).column(0))
        objects = pc.and_(valid, pc.starts_with(pc.utf8_ltrim(texts, _SPACE), "{"))
        opened = _without_last_character(pc.utf8_rtrim(texts, _SPACE))
        with_comma = pc.ends_with(opened, ",")
        if pc.any(with_comma).as_py():
            opened = pc.if_else(with_comma, _without_last_character(opened), opened)
        return pc.if_else(objects, opened, pc.if_else(valid, "{", pa.scalar(None, pa.string())))

    def _own_fields(self, envelope: Envelope, keys: dict[int, str]) -> list[str | None]:
        """Every record's own fields as members of a JSON object. Of a name that comes twice the first one counts."""
        time_name = self._encode(self._spec.timestampColumnName)
        topic = self._encode({self._spec.topicColumnName: envelope.topic})[1:-1]
        times = ["null" if t is None else str(t) for t in envelope.timestamps_ms]
        members: list[str | None] = [f"{time_name}:{t},{topic}{keys.get(i, '')}" for i, t in enumerate(times)]
        if self._spec.headerFormat is not None:
            encoded: dict[Headers, str] = {}
            for index, headers in enumerate(envelope.headers):
                if headers:
                    members[index] = f"{self._headers(tuple(headers), encoded)},{members[index]}"
        return members

    def _headers(self, headers: Headers, encoded: dict[Headers, str]) -> str:
        """A record's headers as members; ``encoded``: those that were met before, for most records have the same."""
        text = encoded.get(headers)
        if text is None:
            encoding = self._spec.headerFormat.encoding if self._spec.headerFormat else "utf-8"
            fields = {
                self._spec.headerColumnPrefix + name: None if value is None else _decode_header(value, encoding)
                for name, value in headers
            }
            text = encoded[headers] = self._encode(fields)[1:-1]
        return text

    def _keys(self, envelope: Envelope) -> tuple[dict[int, str], dict[int, str]]:
        """The keys as members that follow others, and errors, by index; neither for a record without a key."""
        if self._key is None:
            return {}, {}
        raw = list(envelope.keys)
        texts, errors = self._key.read(raw, envelope)
        encoded: dict[str, str] = {}
        keys: dict[int, str] = {}
        for index, text in enumerate(texts.to_pylist()):
            if raw[index] is None:
                errors.pop(index, None)
            elif text is not None:
                try:
                    keys[index] = encoded[text] if text in encoded else self._member(text)
                    encoded[text] = keys[index]
                except ValueError as error:
                    errors[index] = f"not a JSON object: {error}"
        return keys, errors

    def _member(self, text: str) -> str:
        return "," + self._encode({self._spec.keyColumnName: _first_field(text)})[1:-1]


def _decode_header(value: bytes, encoding: str) -> str:
    """In UTF-16 the higher byte comes first, unless a mark says otherwise, as in Java."""
    if lookup(encoding).name == "utf-16" and value[:2] not in (BOM_UTF16_LE, BOM_UTF16_BE):
        encoding = "utf-16-be"
    return value.decode(encoding, "replace")


def _first_field(text: str) -> Any:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError(f"but a {type(document).__name__}")
    return next(iter(document.values()), None)


def _without_last_character(texts: pa.Array) -> pa.Array:
    """The texts without their last character, which is one byte, nor space before it."""
    return pc.utf8_rtrim(pc.binary_slice(texts.cast(pa.binary()), 0, -1).view(pa.string()), _SPACE)


def _mask_at(indexes: Iterable[int], count: int) -> pa.Array:
    """True there."""
    mask = np.zeros(count, np.bool_)
    mask[list(indexes)] = True
    return pa.array(mask)
