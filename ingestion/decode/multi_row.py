"""Records of several rows: taken apart into payloads of one row each, decoded as records are, and put together again.

As in Druid, a record may hold several JSON objects one after the other, or several lines of csv, tsv, regex or lines;
header rows are those of the record itself. Its rows share its fate: one that can't be read makes the whole record
unparseable, and it is thrown away only if all of its rows are. Only records that can't be read as one row are looked
at: to those that can it costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ingestion.decode.decoded import Decoded, join_decoded
from ingestion.decode.envelope import Envelope, take_records
from ingestion.decode.errors import TooWide
from ingestion.decode.fields import MAX_IN_BATCH
from ingestion.decode.formats.delimited import LINE_END, csv_line_ends
from ingestion.rows import ROW, Indexes, columns_of, row_indexes
from ingestion.specs.formats.input_format import (
    CsvInputFormat,
    DelimitedInputFormat,
    InputFormat,
    JsonInputFormat,
    KafkaInputFormat,
)

PORTION_ROWS = 20_000  # that are decoded at once, as many as a batch has records
PORTION_BYTES = 8 * 1024 * 1024
# A text as JSON has it, or what is between one object and the next: elsewhere no two braces stand like that.
_BETWEEN_OBJECTS = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|\}([ \t\r\n]*+)(?=\{)', re.DOTALL)
_LINE_END = re.compile(LINE_END.pattern.encode())
_ONE_ROW = 1
_MAX_BYTES_OF_RECORD = 256 * 1024 * 1024  # of its rows
_TOO_LARGE = "has rows of {:,} bytes, each with the header; at most {:,} are allowed"
_SHARE = 8
Bounds = Sequence[tuple[int, int]]
Decode = Callable[[Sequence[bytes], Envelope | None], Decoded]


@dataclass(frozen=True)
class RowBounds:
    """Where a payload's rows begin and end."""

    bounds: Bounds
    head: int = 0  # how many of its first bytes stand before each row's own
    empty: bytes = b""  # what a row without a byte is as a payload

    @property
    def size_bytes(self) -> int:
        """Of all of them as payloads."""
        return len(self.bounds) * self.head + sum(end - start for start, end in self.bounds)

    def rows(self, payload: bytes) -> Iterator[bytes]:
        """Each row as a payload of its own."""
        head = payload[: self.head]
        return (head + payload[start:end] or self.empty for start, end in self.bounds)


class MultiRowReader:
    """Reads records of several rows. ``most_bytes``: how much the rows of several such records may need."""

    def __init__(self, rows_in: Callable[[bytes], RowBounds], most_bytes: int) -> None:
        self.rows_in = rows_in
        self._max_bytes = most_bytes

    @classmethod
    def of(cls, input_format: InputFormat, memory_limit_bytes: int) -> MultiRowReader | None:
        """None for a format, or a spec, by which a record is one row. ``memory_limit_bytes``: the decoder's."""
        rows_in = _row_finder(input_format.valueFormat if isinstance(input_format, KafkaInputFormat) else input_format)
        return None if rows_in is None else cls(rows_in, memory_limit_bytes // _SHARE)

    def read(
        self, decoded: Decoded, payloads: Sequence[bytes | None], envelope: Envelope | None, decode: Decode
    ) -> Decoded:
        """``decoded``: what the payloads are as records of one row; ``decode`` decodes such records.

        Raises ``TooWide`` and what ``decode`` does.
        """
        row_bounds = {i: self.rows_in(payload) for i in decoded.unparseable if (payload := payloads[i])}
        row_bounds = {i: rows for i, rows in row_bounds.items() if len(rows.bounds) > _ONE_ROW}
        sizes = {i: rows.size_bytes for i, rows in row_bounds.items()}
        over = {i: _TOO_LARGE.format(n, _MAX_BYTES_OF_RECORD) for i, n in sizes.items() if n > _MAX_BYTES_OF_RECORD}
        decoded = replace(decoded, unparseable=decoded.unparseable | over) if over else decoded
        row_bounds = {i: rows for i, rows in row_bounds.items() if i not in over}
        if not row_bounds:
            return decoded
        owners = np.repeat(list(row_bounds), [len(rows.bounds) for rows in row_bounds.values()])
        parts: list[Decoded] = []
        start = 0
        for portion in _portions(row for i, rows in row_bounds.items() for row in rows.rows(payloads[i] or b"")):
            stop = start + len(portion)
            portion_envelope = take_records(envelope, owners[start:stop].tolist())
            parts += [part.moved(range(start, stop)) for part in _decode_portion(portion, portion_envelope, decode)]
            start = stop
            alone = len(payloads) == 1
            too_many = _size_problem(parts, _MAX_BYTES_OF_RECORD if alone else self._max_bytes)
            if too_many and not alone:
                raise TooWide(f"{len(payloads)} records have {too_many}")
            if too_many:
                return replace(decoded, unparseable={0: f"has {too_many}"})
        return _merge_rows(decoded, join_decoded(parts), owners)


def split_rows(input_format: InputFormat, payloads: Sequence[bytes | None]) -> tuple[list[bytes | None], list[int]]:
    """Each row as a payload of its own, and of which payload it is; what holds no several rows as it is."""
    several = MultiRowReader.of(input_format, 0)
    rows_by_payload = [_split_payload(several, payload) for payload in payloads]
    return [row for rows in rows_by_payload for row in rows], [
        i for i, rows in enumerate(rows_by_payload) for _ in rows
    ]


def count_fitting(input_format: InputFormat, payloads: Sequence[bytes | None], most_rows: int, most_bytes: int) -> int:
    """The number of first payloads that have at most ``most_rows`` rows and ``most_bytes`` bytes; at least one."""
    several = MultiRowReader.of(input_format, 0)
    rows = size = 0
    for count, payload in enumerate(payloads if several is not None else ()):
        bounds = several.rows_in(payload) if several is not None and payload else RowBounds(())
        rows += max(1, len(bounds.bounds))
        size += max(len(payload or b""), bounds.size_bytes)
        if count and (rows > most_rows or size > most_bytes):
            return count
    return len(payloads)


def _split_payload(several: MultiRowReader | None, payload: bytes | None) -> list[bytes | None]:
    rows = several.rows_in(payload) if several is not None and payload else None
    return [payload] if rows is None or payload is None or len(rows.bounds) <= _ONE_ROW else [*rows.rows(payload)]


def _size_problem(parts: Sequence[Decoded], most_bytes: int) -> str:
    """Why these rows do not fit into one table. Empty if they do."""
    columns, widest = len(columns_of(p.rows for p in parts)), max(p.rows.num_columns for p in parts)
    if columns > max(MAX_IN_BATCH, widest):
        return f"rows with {columns:,} different fields; at most {MAX_IN_BATCH:,} are allowed"
    size = sum(p.rows.nbytes for p in parts)
    return f"rows that need {size:,} bytes of memory; at most {most_bytes:,} are allowed" if size > most_bytes else ""


def _row_finder(written: InputFormat) -> Callable[[bytes], RowBounds] | None:
    if getattr(written, "rowsPerRecord", _ONE_ROW) == _ONE_ROW:
        return None
    if isinstance(written, CsvInputFormat | DelimitedInputFormat):
        quoted = isinstance(written, CsvInputFormat)
        return lambda payload: _delimited_rows(payload, written.header_lines, quoted=quoted)
    return _object_rows if isinstance(written, JsonInputFormat) else _line_rows


def _object_rows(payload: bytes) -> RowBounds:
    between = [match.span(1) for match in _BETWEEN_OBJECTS.finditer(payload) if match[1] is not None]
    return RowBounds(_between_separators(between, len(payload)))


def _line_rows(payload: bytes) -> RowBounds:
    """An empty line is a row, but after the last line's end there is none."""
    bounds = _between_separators([match.span() for match in _LINE_END.finditer(payload)], len(payload))
    return RowBounds(bounds[:-1] if bounds[-1][0] == len(payload) else bounds, empty=b"\n")


def _delimited_rows(payload: bytes, header_lines: int, *, quoted: bool) -> RowBounds:
    ends = csv_line_ends(payload) if quoted and b'"' in payload else [m.span() for m in _LINE_END.finditer(payload)]
    bounds = _between_separators(ends, len(payload))
    while bounds and bounds[-1][0] == bounds[-1][1]:  # empty lines at the end
        bounds.pop()
    rows = bounds[header_lines:]
    return RowBounds(rows, rows[0][0] if rows else 0)


def _between_separators(between: Bounds, size: int) -> list[tuple[int, int]]:
    """The ranges before, between and after these."""
    return list(zip([0, *(end for _, end in between)], [*(start for start, _ in between), size], strict=True))


def _portions(rows: Iterable[bytes]) -> Iterator[list[bytes]]:
    portion: list[bytes] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += len(row)
        if len(portion) == PORTION_ROWS or size >= PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _decode_portion(rows: Sequence[bytes], envelope: Envelope | None, decode: Decode) -> Iterator[Decoded]:
    """In parts where together they would be too wide a table; each with its own places among the rows."""
    try:
        yield decode(rows, envelope)
        return
    except TooWide:
        middle = len(rows) // 2
    for span in (range(middle), range(middle, len(rows))):
        for part in _decode_portion(rows[span.start : span.stop], take_records(envelope, span), decode):
            yield part.moved(span)


def _merge_rows(decoded: Decoded, read: Decoded, owners: Indexes) -> Decoded:
    """``read``: what became of each row; ``owners``: whose it is. All of a record has one outcome."""
    bad = errors_by_record(read.unparseable, owners)
    row_owners = owners[row_indexes(read.rows)]
    good = ~np.isin(row_owners, list(bad))
    index = pa.array(row_owners[good], pa.int32())
    rows = read.rows if good.all() else read.rows.filter(pa.array(good))
    ended = {*bad, *row_owners.tolist()}
    filtered = sorted({*owners[read.filtered].tolist()} - ended)
    outside = sorted({*owners[read.outside_window].tolist()} - ended - {*filtered})
    faults = {i: fault for i, fault in errors_by_record(read.processed_with_error, owners).items() if i not in bad}
    taken_apart = {*owners.tolist()}
    others = replace(decoded, unparseable={i: e for i, e in decoded.unparseable.items() if i not in taken_apart})
    from_rows = Decoded(rows.set_column(0, ROW, index), bad, filtered, outside, processed_with_error=faults)
    combined = join_decoded([others, from_rows])
    return replace(
        combined,
        unparseable=dict(sorted(combined.unparseable.items())),
        processed_with_error=dict(sorted(combined.processed_with_error.items())),
    )


def errors_by_record(errors: Mapping[int, str], owners: Indexes) -> dict[int, str]:
    """By record, what is wrong with the first of its rows with which something is."""
    firsts, counts = np.unique(owners, return_index=True, return_counts=True)[1:]
    place = {int(owners[first]): (int(first), int(count)) for first, count in zip(firsts, counts, strict=True)}
    first_errors: dict[int, str] = {}
    for row, error in sorted(errors.items()):
        owner = int(owners[row])
        first, count = place[owner]
        first_errors.setdefault(owner, error if count == 1 else f"row {row - first + 1} of {count}: {error}")
    return first_errors
