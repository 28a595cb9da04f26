"""What becomes of a sample's records, by the indexers' own decoder and rollup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ingestion.decode.decoded import Decoded
from ingestion.decode.engine import Engine
from ingestion.decode.errors import UnusableSchema
from ingestion.decode.formats import ReaderTools, create_reader
from ingestion.decode.formats.access import Access
from ingestion.decode.formats.registry import Registry
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.decode.multi_row import errors_by_record
from ingestion.decode.named_fields import flattened_by, named_fields
from ingestion.decode.wide_records import decode_together
from ingestion.errors import IngestionError
from ingestion.rows import RECORD_TIME, Indexes, row_indexes
from ingestion.segments.accepted_times import AcceptedTimes
from ingestion.segments.rollup import roll_up
from ingestion.segments.table_shape import Shape, int64s
from ingestion.segments.writer import columns_of
from ingestion.specs.formats.input_format import JSON_FEATURES, JsonInputFormat, RegistryDecoder
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.messages.protocol import Column
from ingestion.specs.messages.sampler_spec import NO_TIME
from ingestion.specs.messages.sampling import AbsentField, Outcome, Place, RolledUpRow, SampleOrder
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.task.check_spec import expression_faults
from ingestion.task.sampler.records import Records
from ingestion.task.sampler.values import json_rows, json_value
from ingestion.task.schema_registry import ConfluentRegistry

MEMORY_BYTES = 256 * 1024 * 1024
_ALL_FIELDS = DataSchema.model_validate(
    {"dataSource": "sample", "timestampSpec": NO_TIME, "dimensionsSpec": {"useSchemaDiscovery": True}}
)
_ANY_TEXT = JsonInputFormat(type="json", featureSpec=dict.fromkeys(JSON_FEATURES, True))  # of texts that were read


class Unusable(IngestionError):
    """A part of the spec can't be compiled."""

    permanent = True

    def __init__(self, place: Place, message: str, within: Sequence[str | int] = ()) -> None:
        self.place, self.within = place, [*within]
        super().__init__(message)


@dataclass
class SampleOutcomes:
    """By record; ``fields`` and ``rows`` by row. Empty ``outcomes`` leave all records as they are."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    held: dict[int, list[int]] = field(default_factory=dict)  # record → its rows
    fields: dict[int, Any] = field(default_factory=dict)
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    field_columns: list[Column] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    absent: list[AbsentField] = field(default_factory=list)
    rollup: list[RolledUpRow] | None = None
    stored_bytes: int = 0


def decode_records(order: SampleOrder, records: Records) -> SampleOutcomes:
    """Decode the records. Raises ``Unusable``, ``RegistryUnreachable``, ``DecoderBroken``."""
    if not order.formatted:
        return SampleOutcomes()
    by_row, owners = records.by_row(order.io_config.inputFormat)
    outcomes = SampleOutcomes()
    for row, record in enumerate(owners):
        outcomes.held.setdefault(record, []).append(row)
    _add_fields(outcomes, _texts(order, by_row))
    decoded = _add_outcomes(outcomes, _decoded(order, by_row), np.array(owners, np.int64))
    outcomes.absent = _absent_fields(order, outcomes.fields)
    rows = _visible_columns(decoded.rows, order)
    outcomes.columns = columns_of(rows.schema)
    outcomes.rows = dict(zip(row_indexes(decoded.rows).tolist(), json_rows(rows), strict=True))
    stored = rows
    if order.data_schema.granularitySpec.rollup:
        stored = _merge_rows(decoded.rows, order)
        outcomes.rollup = list(_rollup_rows(stored, order, owners)) if len(rows) else []
    outcomes.stored_bytes = _stored_bytes(stored)
    return outcomes


def read_fields(order: SampleOrder, records: Records) -> tuple[list[Any], list[int | None]]:
    """What the input format reads of each row, None where it can't; and the times of their records.

    Raises ``Unusable``, ``RegistryUnreachable``.
    """
    rows, _ = records.by_row(order.io_config.inputFormat)
    fields = [None if text is None else json_value(text) for text in _texts(order, rows).to_pylist()]
    return fields, rows.timestamps_ms


def open_registry(spec: RegistryDecoder, policy: AddressPolicy) -> Registry:
    """The indexers' client."""
    return ConfluentRegistry(spec, policy)


def _fault_place(schema: DataSchema) -> list[str | int]:
    """Of the expression that is at fault; empty if none is."""
    engine = Engine(MEMORY_BYTES)
    try:
        fault = next(expression_faults(engine, schema.transformSpec), None)
    finally:
        engine.close()
    return [] if fault is None else fault.place[1:]


def _texts(order: SampleOrder, records: Records) -> pa.Array:
    """What the input format reads of each record, as JSON text; null where it can't."""
    access = Access(open_registry, order.schema_folder, order.address_policy)
    engine = Engine(MEMORY_BYTES)
    try:
        tools = ReaderTools.of(engine, order.data_schema, access)
        try:
            reader = create_reader(order.io_config.inputFormat, tools)
        except UnusableSchema as error:
            raise Unusable("inputFormat", str(error)) from None
        return reader.read(records.payloads, records.envelope)[0]
    finally:
        engine.close()


def _add_fields(outcomes: SampleOutcomes, texts: pa.Array) -> None:
    decoder = JsonDecoder(_ALL_FIELDS, MEMORY_BYTES, input_format=_ANY_TEXT)
    try:
        payloads = [None if t is None else t.encode() for t in texts.to_pylist()]
        decoded = decode_together(decoder, payloads, MessageWindow())
    finally:
        decoder.close()
    outcomes.field_columns = columns_of(decoded.rows.select(range(2, decoded.rows.num_columns)).schema)
    outcomes.fields = {i: json_value(texts[i].as_py()) for i in row_indexes(decoded.rows).tolist()}


def _absent_fields(order: SampleOrder, fields: dict[int, Any]) -> list[AbsentField]:
    """Of records that could be read, if all that they hold is known: those nested too deeply are texts.

    What is flattened has a name in each record, and a value in some.
    """
    if not fields or not all(isinstance(record, dict) for record in fields.values()):
        return []
    engine = Engine(MEMORY_BYTES)
    try:
        named = named_fields(engine, order.data_schema, order.io_config.inputFormat, timed=order.timed)
    finally:
        engine.close()
    flattened = {field.name for field in flattened_by(order.io_config.inputFormat)}
    present = {
        name
        for record in fields.values()
        for name, value in record.items()
        if not (value is None and name in flattened)
    }
    return [AbsentField(name=name, read_by=readers) for name, readers in named.items() if name not in present]


def _decoded(order: SampleOrder, records: Records) -> Decoded:
    access = Access(open_registry, order.schema_folder, order.address_policy)
    schema, input_format = order.data_schema, order.io_config.inputFormat
    try:
        decoder = JsonDecoder(schema, MEMORY_BYTES, input_format=input_format, access=access)
    except UnusableSchema as error:
        raise Unusable("dataSchema", str(error), _fault_place(schema)) from None
    try:
        now = datetime.now(UTC)
        window = MessageWindow.of(order.io_config, now, now)
        indexes, left_out = _by_headers(order, records)
        payloads = [records.payloads[i] for i in indexes]
        decoded = decode_together(decoder, payloads, window, records.envelope.select(indexes)).moved(indexes)
        decoded = replace(decoded, filtered=sorted([*decoded.filtered, *left_out]))
        if order.bounded:
            decoded = _within_intervals(decoded, order.data_schema)
        return decoded.with_tombstones(order.io_config.tombstones)
    finally:
        decoder.close()


def _within_intervals(decoded: Decoded, schema: DataSchema) -> Decoded:
    """Rows outside of the intervals are taken out, as a batch task takes them out after it has read them."""
    is_accepted = AcceptedTimes(schema).holding(int64s(decoded.rows.column(1).cast(pa.int64())))
    outside = set(row_indexes(decoded.rows)[~is_accepted].tolist())
    return replace(
        decoded,
        rows=decoded.rows.filter(pa.array(is_accepted)),
        outside_window=sorted([*decoded.outside_window, *outside]),
        processed_with_error={i: e for i, e in decoded.processed_with_error.items() if i not in outside},
    )


def _by_headers(order: SampleOrder, records: Records) -> tuple[list[int], list[int]]:
    """Which records are decoded, and which are left out by their headers."""
    header_filter = order.io_config.header_filter
    takes = [header_filter is None or header_filter.matches(headers) for headers in records.headers]
    return [i for i, is_taken in enumerate(takes) if is_taken], [i for i, is_taken in enumerate(takes) if not is_taken]


def _add_outcomes(outcomes: SampleOutcomes, decoded: Decoded, owners: Indexes) -> Decoded:
    """``decoded``: of each row; ``owners``: of which record it is. Returns it without rows of records that are bad."""
    unparseable, faulty = (errors_by_record(e, owners) for e in (decoded.unparseable, decoded.processed_with_error))
    stored = owners[row_indexes(decoded.rows)]
    outcomes.errors = faulty | unparseable
    outcomes.outcomes = {
        **dict.fromkeys(owners[decoded.tombstones].tolist(), "tombstone"),
        **dict.fromkeys(owners[decoded.outside_window].tolist(), "outside_window"),
        **dict.fromkeys(owners[decoded.filtered].tolist(), "filtered"),
        **dict.fromkeys(stored.tolist(), "stored"),
        **dict.fromkeys(faulty, "processed_with_error"),
        **dict.fromkeys(unparseable, "unparseable"),
    }
    is_good = ~np.isin(stored, list(unparseable))
    return decoded if is_good.all() else replace(decoded, rows=decoded.rows.filter(pa.array(is_good)))


def _visible_columns(rows: pa.Table, order: SampleOrder) -> pa.Table:
    """The columns that a segment has; without the time where none is meant."""
    names = rows.column_names
    has_record_time = pa.types.is_timestamp(rows.column(len(names) - 1).type) and names[-1] == RECORD_TIME
    return rows.select(range(1 if order.timed else 2, len(names) - has_record_time))


def _merge_rows(rows: pa.Table, order: SampleOrder) -> pa.Table:
    shape = Shape.of(order.data_schema)
    return roll_up(shape.to_shape(rows), shape) if len(rows) else rows


def _rollup_rows(merged: pa.Table, order: SampleOrder, owners: Sequence[int]) -> Iterator[RolledUpRow]:
    shape = Shape.of(order.data_schema)
    visible = merged.select(range(shape.lead if order.timed else shape.lead + 1, merged.num_columns))
    for row, rows in zip(json_rows(visible), merged.column(0).to_pylist(), strict=True):
        records = sorted({owners[r] for r in rows})
        yield RolledUpRow.model_construct(row=row, records=records, rows=sorted(rows))


def _stored_bytes(rows: pa.Table) -> int:
    """Of their columns in Parquet: of few rows the footer would be most of it."""
    if not len(rows):
        return 0
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    groups = (footer.row_group(g) for g in range(footer.num_row_groups))
    return sum(group.column(c).total_compressed_size for group in groups for c in range(group.num_columns))
