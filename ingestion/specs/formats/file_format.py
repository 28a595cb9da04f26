"""Input formats of a batch task's files: ``ioConfig.inputFormat``, with Druid's JSON names.

Source: Druid's reference of input formats. Message formats are refused, because they do not mark a record's end.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ingestion.specs.formats.flatten_spec import FlattenSpecByPaths, FormatModel
from ingestion.specs.formats.input_format import CsvInputFormat, DelimitedInputFormat, JsonInputFormat

_MESSAGES = ("avro_stream", "protobuf", "thrift", "kafka")
_DRUIDS = ("regex", "lines", "javascript")
_BUILT = "json, csv, tsv, parquet, orc, avro_ocf"


class _Container(FormatModel):
    """Files that name their own columns. Binary values become base64, or text in UTF-8."""

    flattenSpec: FlattenSpecByPaths | None = None
    binaryAsString: bool = False


class ParquetInputFormat(_Container):
    """Parquet files. Times become milliseconds. Times in nanoseconds stay nanoseconds, as in Druid."""

    type: Literal["parquet"]


class OrcInputFormat(_Container):
    """ORC files. Times become milliseconds, dates ISO 8601 texts."""

    type: Literal["orc"]


class AvroFileInputFormat(_Container):
    """Avro object container files. They are read with their own schema or with ``schema``."""

    type: Literal["avro_ocf"]
    avro_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    extractUnionsByType: bool = False


LineFormat = JsonInputFormat | CsvInputFormat | DelimitedInputFormat
ContainerFormat = ParquetInputFormat | OrcInputFormat | AvroFileInputFormat
CONTAINERS = (ParquetInputFormat, OrcInputFormat, AvroFileInputFormat)


def _check_file_format(value: Any) -> Any:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind in _MESSAGES:
        raise ValueError(f"{kind!r} is a message format, not a file format: use {_BUILT}")
    if kind in _DRUIDS:
        raise ValueError(f"the input format {kind!r} of Druid is not supported for files: use {_BUILT}")
    if kind == "json" and value.get("assumeNewlineDelimited") is True:  # which is how files are read anyway
        return {name: v for name, v in value.items() if name != "assumeNewlineDelimited"}
    return value


FileFormat = Annotated[
    Annotated[LineFormat | ContainerFormat, Field(discriminator="type")],
    BeforeValidator(_check_file_format),
]
