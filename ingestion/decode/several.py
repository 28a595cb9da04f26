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

from ingestion.decode.decoded import Decoded, joined
from ingestion.decode.envelope import Envelope, taken
from ingestion.decode.errors import TooWide
from ingestion.decode.fields import MOST_IN_BATCH
from ingestion.decode.formats.delimited import LINE_END, csv_ends
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
_MOST_OF_A_RECORD_BYTES = 256 * 1024 * 1024  # of its rows
_TOO_LARGE = "holds rows that are, each with the header, {:,} bytes, {:,} at most"
_SHARE = 8
Bounds = Sequence[tuple[int, int]]
Decode = Callable[[Sequence[bytes], Envelope | None], Decoded]


@dataclass(frozen=True)
class Rows:
    """Where a payload's rows begin and end."""

    bounds: Bounds
    head: int = 0  # how many of its first bytes stand before each row's own
    empty: bytes = b""  # what a row without a byte is as a payload

    @property
    def size_bytes(self) -> int:
        """Of all of them as payloads."""
        return len(self.bounds) * self.head + sum(end - start for start, end in self.bounds)

    def of(self, payload: bytes) -> Iterator[bytes]:
        """Each row as a payload of its own."""
        head = payload[: self.head]
        return (head + payload[start:end] or self.empty for start, end in self.bounds)


class Several:
    """Reads records of several rows. ``most_bytes``: how much the rows of several such records may need."""

    def __init__(self, rows_in: Callable[[bytes], Rows], most_bytes: int) -> None:
        self.rows_in = rows_in
        self._most_bytes = most_bytes

    @classmethod
    def of(cls, input_format: InputFormat, memory_limit_bytes: int) -> Several | None:
        """None for a format, or a spec, by which a record is one row. ``memory_limit_bytes``: the decoder's."""
        rows_in = _rows_by(input_format.valueFormat if isinstance(input_format, KafkaInputFormat) else input_format)
        return None if rows_in is None else cls(rows_in, memory_limit_bytes // _SHARE)

    def read(
        self, found: Decoded, payloads: Sequence[bytes | None], envelope: Envelope | None, decode: Decode
    ) -> Decoded:
        """``found``: what the payloads are as records of one row; ``decode`` decodes such records.

        Raises ``TooWide`` and what ``decode`` does.
        """
        held = {i: self.rows_in(payload) for i in found.unparseable if (payload := payloads[i])}
        held = {i: rows for i, rows in held.items() if len(rows.bounds) > _ONE_ROW}
        sizes = {i: rows.size_bytes for i, rows in held.items()}
        over = {
            i: _TOO_LARGE.format(n, _MOST_OF_A_RECORD_BYTES) for i, n in sizes.items() if n > _MOST_OF_A_RECORD_BYTES
        }
        found = replace(found, unparseable=found.unparseable | over) if over else found
        held = {i: rows for i, rows in held.items() if i not in over}
        if not held:
            return found
        owners = np.repeat(list(held), [len(rows.bounds) for rows in held.values()])
        parts: list[Decoded] = []
        start = 0
        for portion in _portions(row for i, rows in held.items() for row in rows.of(payloads[i] or b"")):
            stop = start + len(portion)
            said = taken(envelope, owners[start:stop].tolist())
            parts += [part.moved(range(start, stop)) for part in _decoded(portion, said, decode)]
            start = stop
            alone = len(payloads) == 1
            too_many = _beyond(parts, _MOST_OF_A_RECORD_BYTES if alone else self._most_bytes)
            if too_many and not alone:
                raise TooWide(f"{len(payloads)} records hold {too_many}")
            if too_many:
                return replace(found, unparseable={0: f"holds {too_many}"})
        return _with_rows(found, joined(parts), owners)


def taken_apart(input_format: InputFormat, payloads: Sequence[bytes | None]) -> tuple[list[bytes | None], list[int]]:
    """Each row as a payload of its own, and of which payload it is; what holds no several rows as it is."""
    several = Several.of(input_format, 0)
    held = [_apart(several, payload) for payload in payloads]
    return [row for rows in held for row in rows], [i for i, rows in enumerate(held) for _ in rows]


def fitting(input_format: InputFormat, payloads: Sequence[bytes | None], most_rows: int, most_bytes: int) -> int:
    """How many of the first payloads hold so many rows, of so many bytes, at most: the first one whatever it holds."""
    several = Several.of(input_format, 0)
    rows = size = 0
    for count, payload in enumerate(payloads if several is not None else ()):
        held = several.rows_in(payload) if several is not None and payload else Rows(())
        rows += max(1, len(held.bounds))
        size += max(len(payload or b""), held.size_bytes)
        if count and (rows > most_rows or size > most_bytes):
            return count
    return len(payloads)


def _apart(several: Several | None, payload: bytes | None) -> list[bytes | None]:
    rows = several.rows_in(payload) if several is not None and payload else None
    return [payload] if rows is None or payload is None or len(rows.bounds) <= _ONE_ROW else [*rows.of(payload)]


def _beyond(parts: Sequence[Decoded], most_bytes: int) -> str:
    """Why these are not to be kept in one table; empty if they may be."""
    columns, widest = len(columns_of(p.rows for p in parts)), max(p.rows.num_columns for p in parts)
    if columns > max(MOST_IN_BATCH, widest):
        return f"rows with {columns:,} fields in all, {MOST_IN_BATCH:,} at most"
    size = sum(p.rows.nbytes for p in parts)
    return f"rows that need {size:,} bytes of memory, {most_bytes:,} at most" if size > most_bytes else ""


def _rows_by(written: InputFormat) -> Callable[[bytes], Rows] | None:
    if getattr(written, "rowsPerRecord", _ONE_ROW) == _ONE_ROW:
        return None
    if isinstance(written, CsvInputFormat | DelimitedInputFormat):
        quoted = isinstance(written, CsvInputFormat)
        return lambda payload: _rows_of_values(payload, written.header_lines, quoted=quoted)
    return _objects if isinstance(written, JsonInputFormat) else _lines


def _objects(payload: bytes) -> Rows:
    between = [match.span(1) for match in _BETWEEN_OBJECTS.finditer(payload) if match[1] is not None]
    return Rows(_around(between, len(payload)))


def _lines(payload: bytes) -> Rows:
    """An empty line is a row, but after the last line's end there is none."""
    bounds = _around([match.span() for match in _LINE_END.finditer(payload)], len(payload))
    return Rows(bounds[:-1] if bounds[-1][0] == len(payload) else bounds, empty=b"\n")


def _rows_of_values(payload: bytes, header_lines: int, *, quoted: bool) -> Rows:
    ends = csv_ends(payload) if quoted and b'"' in payload else [m.span() for m in _LINE_END.finditer(payload)]
    bounds = _around(ends, len(payload))
    while bounds and bounds[-1][0] == bounds[-1][1]:  # empty lines at the end
        bounds.pop()
    rows = bounds[header_lines:]
    return Rows(rows, rows[0][0] if rows else 0)


def _around(between: Bounds, size: int) -> list[tuple[int, int]]:
    """What stands before, between and behind those."""
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


def _decoded(rows: Sequence[bytes], envelope: Envelope | None, decode: Decode) -> Iterator[Decoded]:
    """In parts where together they would be too wide a table; each with its own places among the rows."""
    try:
        yield decode(rows, envelope)
        return
    except TooWide:
        middle = len(rows) // 2
    for there in (range(middle), range(middle, len(rows))):
        for part in _decoded(rows[there.start : there.stop], taken(envelope, there), decode):
            yield part.moved(there)


def _with_rows(found: Decoded, read: Decoded, owners: Indexes) -> Decoded:
    """``read``: what became of each row; ``owners``: whose it is. All of a record has one outcome."""
    bad = told_by_record(read.unparseable, owners)
    mine = owners[row_indexes(read.rows)]
    good = ~np.isin(mine, list(bad))
    index = pa.array(mine[good], pa.int32())
    rows = read.rows if good.all() else read.rows.filter(pa.array(good))
    ended = {*bad, *mine.tolist()}
    filtered = sorted({*owners[read.filtered].tolist()} - ended)
    outside = sorted({*owners[read.outside_window].tolist()} - ended - {*filtered})
    faults = {i: fault for i, fault in told_by_record(read.processed_with_error, owners).items() if i not in bad}
    others = replace(found, unparseable={i: e for i, e in found.unparseable.items() if i not in {*owners.tolist()}})
    own = Decoded(rows.set_column(0, ROW, index), bad, filtered, outside, processed_with_error=faults)
    whole = joined([others, own])
    return replace(
        whole,
        unparseable=dict(sorted(whole.unparseable.items())),
        processed_with_error=dict(sorted(whole.processed_with_error.items())),
    )


def told_by_record(errors: Mapping[int, str], owners: Indexes) -> dict[int, str]:
    """By record, what is wrong with the first of its rows with which something is."""
    firsts, counts = np.unique(owners, return_index=True, return_counts=True)[1:]
    place = {int(owners[first]): (int(first), int(count)) for first, count in zip(firsts, counts, strict=True)}
    told: dict[int, str] = {}
    for row, error in sorted(errors.items()):
        owner = int(owners[row])
        first, count = place[owner]
        told.setdefault(owner, error if count == 1 else f"row {row - first + 1} of {count}: {error}")
    return told
