"""Records of one format to rows, for the tests of formats."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from pydantic import TypeAdapter

from ingestion.decode.decoded import Decoded
from ingestion.decode.envelope import Envelope
from ingestion.decode.formats.access import Access
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.rows import row_indexes
from ingestion.specs.formats.input_format import InputFormat
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.decoders import decoder_of

HERE = AddressPolicy.of(["127.0.0.0/8", "::1"], [], ["1-65535"])  # where tests' own servers are
_FORMAT: TypeAdapter[Any] = TypeAdapter(InputFormat)


def schema_of(**dimensions: Any) -> DataSchema:
    """Time in ``t``; records without one are of 1970."""
    return DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "t", "format": "auto", "missingValue": "1970-01-01"},
            "dimensionsSpec": dimensions or {"useSchemaDiscovery": True},
        }
    )


def format_of(spec: dict[str, Any]) -> Any:
    return _FORMAT.validate_python(spec)


def decoded(
    spec: dict[str, Any],
    payloads: Sequence[bytes | None],
    envelope: Envelope | None = None,
    open_registry: Any = None,
    schema: DataSchema | None = None,
    schema_folder: str = "",
) -> Decoded:
    """What becomes of the records; every index has ended exactly once."""
    by = schema or schema_of()
    if open_registry is None and not schema_folder:
        found = decoder_of(by, format_of(spec)).decode(payloads, envelope=envelope)
    else:  # what is read there may be another thing the next time
        access = Access(open_registry, schema_folder, HERE)
        with closing(JsonDecoder(by, input_format=format_of(spec), access=access)) as decoder:
            found = decoder.decode(payloads, envelope=envelope)
    assert ends(found) == list(range(len(payloads)))
    return found


def ends(found: Decoded) -> list[int]:
    """All indexes in all outcomes, sorted."""
    return sorted(
        [
            *{*row_indexes(found.rows).tolist()},  # a record may have several
            *found.unparseable,
            *found.filtered,
            *found.outside_window,
            *found.tombstones,
            *found.crashed,
        ]
    )


def rows(found: Decoded) -> list[dict[str, Any]]:
    """The rows without the columns of every row, and without nulls."""
    assert not found.unparseable, found.unparseable
    return [
        {k: v for k, v in row.items() if not k.startswith("__") and v is not None} for row in found.rows.to_pylist()
    ]


def row(spec: dict[str, Any], payload: bytes, **more: Any) -> dict[str, Any]:
    """The one record's row."""
    (only,) = rows(decoded(spec, [payload], **more))
    return only


def fault(spec: dict[str, Any], payload: bytes | None, **more: Any) -> str:
    """Why the one record is unparseable."""
    return decoded(spec, [payload], **more).unparseable[0]
