"""The rows of a part of a Parquet or ORC file, as values that JSON has; those of a row group, or a stripe, together.

As in Druid, times are milliseconds; those that Parquet has in nanoseconds (but not in INT96), and times of day, are the
numbers stored. Dates are milliseconds in Parquet and ISO in ORC. Texts that are not UTF-8 hold what stands there as
halves of surrogate pairs (``surrogateescape``), for others to say so of their row alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from ingestion.batch.splits import Part
from ingestion.decode.druid_values import number_text
from ingestion.decode.exact_numbers import parse_number, single_number
from ingestion.specs.formats.file_format import OrcInputFormat, ParquetInputFormat

_ROWS = 4_096
_ENUM = "ENUM"
NumberedRows = tuple[str, int, list[dict[str, Any]]]  # what rows are called, the number of the first, and they
Convert = Callable[[Any], Any]
IsNeeded = Callable[[str], bool]  # whether a column of this name is read


def read_columnar_rows(
    part: Part,
    name: str,
    stream: BinaryIO,
    written: ParquetInputFormat | OrcInputFormat,
    needs: IsNeeded,
    encode: Callable[[Any], str],
) -> Iterator[NumberedRows]:
    """The rows with the needed columns, without nulls. ``encode`` writes JSON. Raises pyarrow's exceptions."""
    batches = _parquet_batches if isinstance(written, ParquetInputFormat) else _orc_batches
    for called, first, batch in batches(part, name, stream, needs):
        yield called, first, _rows(batch, encode)


def _parquet_batches(
    part: Part, name: str, stream: BinaryIO, needs: IsNeeded
) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    file = pq.ParquetFile(pa.PythonFile(stream, mode="r"), coerce_int96_timestamp_unit="ms")
    texts = _enum_types(file)
    chosen = [column for column in file.schema_arrow.names if needs(column)]
    first = 0
    for group in range(file.num_row_groups):
        if _begins_in_part(part, group, file.num_row_groups):
            at = first
            for batch in file.iter_batches(_ROWS, row_groups=[group], columns=chosen, use_threads=False):
                yield f"{name}, row", at, _normalize(batch, needs, texts, dates_are_ms=True)
                at += len(batch)
        first += file.metadata.row_group(group).num_rows


def _orc_batches(part: Part, name: str, stream: BinaryIO, needs: IsNeeded) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    file = orc.ORCFile(pa.PythonFile(stream, mode="r"))
    chosen = [column for column in file.schema.names if needs(column)]
    for stripe in range(file.nstripes):
        if _begins_in_part(part, stripe, file.nstripes):
            stripe_batch, at = _read_stripe(file, stream, stripe, chosen), 0
            while at < len(stripe_batch):
                batch = _normalize(stripe_batch.slice(at, _ROWS), needs, {}, dates_are_ms=False)
                yield f"{name}, stripe {stripe}, row", at, batch
                at += _ROWS


def _read_stripe(file: orc.ORCFile, stream: BinaryIO, stripe: int, chosen: list[str]) -> pa.RecordBatch:
    """``chosen``: columns that have to be read; of others Arrow may give some, too."""
    named = chosen and not any(map(_may_be_nested, chosen))
    try:
        return file.read_stripe(stripe, columns=chosen if named else None)
    except pa.ArrowInvalid:
        if not chosen:
            raise
        return pa.record_batch([_read_column(file, stream, stripe, name) for name in chosen], names=chosen)


def _may_be_nested(name: str) -> bool:
    """Whether Arrow takes it for the way to a field of a struct."""
    return "." in name


def _read_column(file: orc.ORCFile, stream: BinaryIO, stripe: int, name: str) -> pa.Array:
    kind = file.schema.field(name).type
    in_ms = _map_leaf_types(kind, lambda inner: _time_in_ms(inner, dates_are_ms=False))
    try:
        if not _may_be_nested(name):
            return file.read_stripe(stripe, columns=[name]).column(0)
    except pa.ArrowInvalid:
        if in_ms == kind:  # it is not for its times
            raise
    from ingestion.batch.orc_times import column_in_ms  # not at the top: pyorc takes long

    return column_in_ms(stream, stripe, file.schema.get_field_index(name), in_ms)


def _begins_in_part(part: Part, number: int, count: int) -> bool:
    """Whether a piece of the file, of about equal ones, begins in the part."""
    size = part.file.size if part.file is not None else 0
    return part.start <= size * number // count < part.end


def _enum_types(file: pq.ParquetFile) -> dict[str, pa.DataType]:
    """The types of columns that hold Parquet's ENUM, which Arrow takes for bytes, as those of texts."""
    leaves = iter([file.schema.column(i).logical_type.type == _ENUM for i in range(len(file.schema))])
    text_types = {
        f.name: _map_leaf_types(f.type, lambda kind: pa.string() if next(leaves) else kind) for f in file.schema_arrow
    }
    return {field.name: text_types[field.name] for field in file.schema_arrow if text_types[field.name] != field.type}


def _normalize(
    batch: pa.RecordBatch, needs: IsNeeded, types: dict[str, pa.DataType], *, dates_are_ms: bool
) -> pa.RecordBatch:
    """What is needed of it, with numbers for times, at any depth. ``types``: what columns are taken for."""
    batch = batch.select([place for place, name in enumerate(batch.schema.names) if needs(name)])
    columns = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        kind = types.get(field.name, field.type)
        in_ms = _map_leaf_types(kind, lambda kind: _time_in_ms(kind, dates_are_ms))
        cut = column if in_ms == field.type else column.cast(in_ms, safe=False)
        numbers = _map_leaf_types(in_ms, _as_number)
        columns.append(cut if numbers == in_ms else cut.cast(numbers))
    return pa.record_batch(columns, names=batch.schema.names) if columns else batch


def _time_in_ms(kind: pa.DataType, dates_are_ms: bool) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _time_in_ms(kind.value_type, dates_are_ms)
    if isinstance(kind, pa.JsonType):
        return kind.storage_type
    if pa.types.is_timestamp(kind) and (kind.unit != "ns" or not dates_are_ms):
        return pa.timestamp("ms", kind.tz)
    return pa.timestamp("ms") if dates_are_ms and pa.types.is_date(kind) else kind


def _as_number(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) or pa.types.is_duration(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_time32(kind) else kind


def _map_leaf_types(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with its innermost ones changed, from the first to the last."""
    if pa.types.is_struct(kind):
        return pa.struct(
            [kind.field(i).with_type(_map_leaf_types(kind.field(i).type, change)) for i in range(kind.num_fields)]
        )
    if pa.types.is_map(kind):
        return pa.map_(
            _map_leaf_types(kind.key_type, change), kind.item_field.with_type(_map_leaf_types(kind.item_type, change))
        )
    if pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list(kind):
        field = kind.value_field.with_type(_map_leaf_types(kind.value_type, change))
        make_list = pa.large_list if pa.types.is_large_list(kind) else pa.list_
        return make_list(field, kind.list_size) if pa.types.is_fixed_size_list(kind) else make_list(field)
    return cast("pa.DataType", change(kind))


def _rows(batch: pa.RecordBatch, encode: Callable[[Any], str]) -> list[dict[str, Any]]:
    names = batch.schema.names
    columns = [_values(column, encode) for column in batch.columns]
    rows = zip(*columns, strict=True) if columns else [()] * len(batch)
    return [{name: v for name, v in zip(names, row, strict=True) if v is not None} for row in rows]


def _values(column: pa.Array, encode: Callable[[Any], str]) -> list[Any]:
    kind, checked = column.type, _is_valid(column)
    read = _map_leaf_types(kind, lambda inner: _readable_type(inner, checked))
    readable = column if read == kind else column.cast(read)
    convert, values = _converter(kind, checked, encode), readable.to_pylist(maps_as_pydicts="lossy")
    return values if convert is None else [convert(value) for value in values]


def _is_valid(column: pa.Array) -> bool:
    """Whether all texts in it are UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _readable_type(kind: pa.DataType, checked: bool) -> pa.DataType:
    """What Python is given for a type that it can't read all values of: of texts that are no texts their bytes."""
    if pa.types.is_date32(kind):
        return pa.int32()
    if checked:
        return kind
    return {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}.get(kind, kind)


def _converter(kind: pa.DataType, checked: bool, encode: Callable[[Any], str]) -> Convert | None:
    """What makes JSON's values of Python's; None where they are so already."""

    def inner(inner_kind: pa.DataType) -> Convert | None:
        return _converter(inner_kind, checked, encode)

    if pa.types.is_struct(kind):
        fields = {kind.field(i).name: c for i in range(kind.num_fields) if (c := inner(kind.field(i).type))}
        return _unless_null(lambda v: {n: fields[n](i) if n in fields else i for n, i in v.items()}) if fields else None
    if pa.types.is_map(kind):
        key, item = inner(kind.key_type) or _identity, inner(kind.item_type) or _identity
        return _unless_null(lambda v: {_map_key(key(k), encode): item(i) for k, i in v.items()})
    if pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list(kind):
        each = inner(kind.value_type)
        return None if each is None else _unless_null(lambda v: [each(i) for i in v])
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        return _unless_null(single_number)
    if pa.types.is_date32(kind):
        return _unless_null(lambda days: f"{np.datetime64(days, 'D')}T00:00:00.000Z")
    is_text = not checked and (pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return _unless_null(lambda raw: raw.decode(errors="surrogateescape")) if is_text else None


def _unless_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _identity(value: Any) -> Any:
    return value


def _map_key(key: Any, encode: Callable[[Any], str]) -> Any:
    """A map's key as JSON has it: a text, or what Python makes one of."""
    if isinstance(key, str | int):
        return key
    text = encode(key)
    return json.loads(text) if text.startswith('"') else number_text(parse_number(text))
