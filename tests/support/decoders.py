"""Decoders for tests that look at what is decoded only: to start DuckDB takes ten times as long as to use it."""

from __future__ import annotations

from collections import OrderedDict

from ingestion.decode.formats import JSON
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.specs.formats.input_format import InputFormat, JsonInputFormat
from ingestion.specs.schema.data_schema import DataSchema

# For values that are not JSON but get into columns by other formats: NaN and infinities.
ANY_NUMBER = JsonInputFormat(type="json", featureSpec={"ALLOW_NON_NUMERIC_NUMBERS": True})
_MAX_OPEN = 32
_made: OrderedDict[str, JsonDecoder] = OrderedDict()


def decoder_of(schema: DataSchema, input_format: InputFormat = JSON) -> JsonDecoder:
    """The one of this schema and format, not to be closed. Like a task's, it may have decoded other records before."""
    key = repr((schema, input_format))
    if key not in _made:
        _made[key] = JsonDecoder(schema, input_format=input_format, memory_limit_bytes=2**28)
    _made.move_to_end(key)
    if len(_made) > _MAX_OPEN:
        _made.popitem(last=False)[1].close()
    return _made[key]
