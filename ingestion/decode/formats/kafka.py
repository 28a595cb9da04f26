"""``kafka``: another format's fields, and beside them what Kafka says of the record.

As in Druid: a field of the value hides one of the record's with the same name; among the record's own headers win over
time, topic and key, and of several headers of one name the last; a record without a value has these fields alone. Of
the key the first field is taken, or the first column, under the key's name. A key that can't be read makes the record
unparseable.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.engine import RECORDS, Engine
from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import DecodeError
from ingestion.decode.fields import flat
from ingestion.decode.formats.base import Reader, Texts, as_array, json_encoder
from ingestion.specs.input_format import KafkaInputFormat

# Whether a text is a JSON object, and it without its last brace, and without a comma that DuckDB lets pass there.
_OPENED = r"""SELECT CASE WHEN starts_with(ltrim(j, E' \t\r\n'), '{') AND json_valid(j)
  THEN regexp_replace(j, ',?\s*\}\s*$', '') END AS j FROM records"""


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
        opened = flat(self._engine.run(_OPENED, RECORDS, pa.table({"j": texts})).column(0)).to_pylist()
        for index, payload in enumerate(payloads):
            if payload is None:
                opened[index] = "{"
                errors.pop(index, None)
        errors |= {i: f"the key: {e}" for i, e in bad_keys.items() if i not in errors}
        blended: list[str | None] = [
            None if start is None or index in errors else _joined(start, self._meta(envelope, keys, index))
            for index, start in enumerate(opened)
        ]
        # What is no JSON object is left to the next stage, which says why.
        blended_array = as_array(blended, errors)
        bad = pa.array([i in errors for i in range(len(blended))], pa.bool_())
        return pc.if_else(bad, pa.scalar(None, pa.string()), pc.coalesce(blended_array, texts)), errors

    def _meta(self, envelope: Envelope, keys: dict[int, Any], index: int) -> str:
        """The record's own fields as a JSON object's text."""
        spec = self._spec
        fields: dict[str, Any] = {}
        if spec.headerFormat is not None:
            encoding = spec.headerFormat.encoding
            for name, value in envelope.headers[index]:
                text = None if value is None else value.decode(encoding, errors="replace")
                fields[spec.headerColumnPrefix + name] = text
        fields.setdefault(spec.timestampColumnName, envelope.timestamps_ms[index])
        fields.setdefault(spec.topicColumnName, envelope.topic)
        if index in keys:
            fields.setdefault(spec.keyColumnName, keys[index])
        return self._encode(fields)

    def _keys(self, envelope: Envelope) -> tuple[dict[int, Any], dict[int, str]]:
        """The keys' values, and errors, by index; neither for a record without a key."""
        if self._key is None:
            return {}, {}
        raw = list(envelope.keys)
        texts, errors = self._key.read(raw, envelope)
        keys: dict[int, Any] = {}
        for index, text in enumerate(texts.to_pylist()):
            if raw[index] is None:
                errors.pop(index, None)
            elif text is not None:
                try:
                    keys[index] = _first_field(text)
                except ValueError as error:
                    errors[index] = f"not a JSON object: {error}"
        return keys, errors


def _first_field(text: str) -> Any:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"but a {type(found).__name__}")
    return next(iter(found.values()), None)


def _joined(opened: str, fields: str) -> str:
    return opened + (fields[1:] if opened.rstrip() == "{" else "," + fields[1:])
