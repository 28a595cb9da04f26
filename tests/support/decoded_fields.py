"""Records of a few fields, decoded under a schema of few dimensions."""

from __future__ import annotations

from typing import Any

from ingestion.decode.decoded import Decoded
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.specs.schema.data_schema import DataSchema


def schema_of(**dimensions_spec: Any) -> DataSchema:
    return DataSchema.model_validate(
        {"dataSource": "d", "timestampSpec": {"column": "t"}, "dimensionsSpec": dimensions_spec}
    )


def decode(decoder: JsonDecoder, *fields: str) -> Decoded:
    """Decode records with a good time and these ``fields`` (the inside of a JSON object)."""
    payloads = [("{" + ",".join(['"t":0', f] if f else ['"t":0']) + "}").encode() for f in fields]
    return decoder.decode(payloads, MessageWindow())
