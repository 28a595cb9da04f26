"""The records of a part of a file that is no lines: each becomes a line of JSON, for the decoder that lines have.

As in Druid, times are milliseconds; those that Parquet has in nanoseconds, and times of day, are the numbers stored.
Dates are milliseconds in Parquet and ISO in ORC. Of a file in parts each row group, or stripe, belongs to one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from ingestion.batch.avro_files import records_of
from ingestion.batch.errors import InputRefused
from ingestion.batch.lines import Line
from ingestion.batch.splits import Part
from ingestion.decode.formats.base import BadRecord, json_encoder
from ingestion.specs.file_format import AvroFileInputFormat, ContainerFormat, ParquetInputFormat

_ROWS = 4_096
_CALLED = {"parquet": "Parquet", "orc": "ORC", "avro_ocf": "Avro container"}
Batches = Iterator[tuple[str, int, pa.RecordBatch]]  # what its rows are called, the number of the first, and they


def rows_in(part: Part, name: str, stream: BinaryIO, written: ContainerFormat) -> Iterator[Line]:
    """``stream``: the whole file, seekable. Raises ``InputRefused``, also after some rows."""
    encode = json_encoder(written.binaryAsString)
    try:
        if isinstance(written, AvroFileInputFormat):
            for number, record in enumerate(records_of(stream, written)):
                yield Line(f"{name}, row", number, encode(record).encode())
            return
        batches = _parquet if isinstance(written, ParquetInputFormat) else _orc
        for called, first, batch in batches(part, name, stream):
            yield from _lines(batch, called, first, encode)
    except (pa.ArrowException, OSError, EOFError, ValueError, TypeError, LookupError, BadRecord):
        # Whatever a library makes of a file that is something else, or of a type that has no JSON form.
        raise InputRefused(
            f"{name} can't be read: it is no {_CALLED[written.type]} file, a damaged one, or holds what JSON has not."
        ) from None


def _parquet(part: Part, name: str, stream: BinaryIO) -> Batches:
    file = pq.ParquetFile(pa.PythonFile(stream, mode="r"))
    first = 0
    for group in range(file.num_row_groups):
        if _is_of(part, group, file.num_row_groups):
            at = first
            for batch in file.iter_batches(_ROWS, row_groups=[group], use_threads=False):
                yield f"{name}, row", at, _plain(batch, dates_are_ms=True)
                at += len(batch)
        first += file.metadata.row_group(group).num_rows


def _orc(part: Part, name: str, stream: BinaryIO) -> Batches:
    file = orc.ORCFile(pa.PythonFile(stream, mode="r"))
    for stripe in range(file.nstripes):
        if _is_of(part, stripe, file.nstripes):
            whole, at = file.read_stripe(stripe), 0
            while at < len(whole):
                yield f"{name}, stripe {stripe}, row", at, _plain(whole.slice(at, _ROWS), dates_are_ms=False)
                at += _ROWS


def _is_of(part: Part, number: int, count: int) -> bool:
    """Whether a piece of the file, of about equal ones, begins in the part."""
    size = part.file.size if part.file is not None else 0
    return part.start <= size * number // count < part.end


def _lines(batch: pa.RecordBatch, called: str, first: int, encode: Callable[[object], str]) -> Iterator[Line]:
    names = batch.schema.names
    columns = [column.to_pylist(maps_as_pydicts="lossy") for column in batch.columns]
    for number, values in enumerate(zip(*columns, strict=True) if columns else [()] * len(batch), first):
        row = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        yield Line(called, number, encode(row).encode())


def _plain(batch: pa.RecordBatch, *, dates_are_ms: bool) -> pa.RecordBatch:
    """With numbers for times, at any depth."""
    columns = []
    for column in batch.columns:
        in_ms = _mapped(column.type, lambda kind: _in_ms(kind, dates_are_ms))
        cut = column if in_ms == column.type else column.cast(in_ms, safe=False)
        numbers = _mapped(in_ms, _as_number)
        columns.append(cut if numbers == in_ms else cut.cast(numbers))
    return pa.record_batch(columns, names=batch.schema.names)


def _in_ms(kind: pa.DataType, dates_are_ms: bool) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _in_ms(kind.value_type, dates_are_ms)
    if pa.types.is_timestamp(kind) and (kind.unit != "ns" or not dates_are_ms):
        return pa.timestamp("ms", kind.tz)
    return pa.timestamp("ms") if dates_are_ms and pa.types.is_date(kind) else kind


def _as_number(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) or pa.types.is_duration(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_time32(kind) else kind


def _mapped(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with its innermost ones changed."""
    if pa.types.is_struct(kind):
        return pa.struct([kind.field(i).with_type(_mapped(kind.field(i).type, change)) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_mapped(kind.key_type, change), kind.item_field.with_type(_mapped(kind.item_type, change)))
    if pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list(kind):
        field = kind.value_field.with_type(_mapped(kind.value_type, change))
        made = pa.large_list if pa.types.is_large_list(kind) else pa.list_
        return made(field, kind.list_size) if pa.types.is_fixed_size_list(kind) else made(field)
    return cast("pa.DataType", change(kind))
