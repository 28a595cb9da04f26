"""One split to rows: decoded by the decoder that streams have, in chunks of one segment interval each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from ingestion.batch.columnar import Needs
from ingestion.batch.containers import rows_in
from ingestion.batch.inputs import Inputs
from ingestion.batch.kept import Kept, Room
from ingestion.batch.lines import Line, Lines, begin_of, lines_of, opened, together
from ingestion.batch.needed import needed_columns
from ingestion.batch.rows import rows_of
from ingestion.batch.splits import Part, Split
from ingestion.decode.decoded import Decoded
from ingestion.decode.engine import Engine
from ingestion.decode.errors import TooWide
from ingestion.decode.isolated import IsolatedDecoder
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.rows import ROW, joined_rows, row_indexes
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.intervals import intervals_of
from ingestion.segments.shape import int64s, is_own
from ingestion.segments.taken_times import TakenTimes
from ingestion.specs.formats.file_format import CONTAINERS, LineFormat
from ingestion.specs.formats.input_format import JsonInputFormat, of_one_row
from ingestion.specs.inputs.input_source import DruidInputSource
from ingestion.specs.limits import MOST_UNREAD
from ingestion.specs.messages.protocol import UnreadRecord
from ingestion.specs.schema.data_schema import EXTENTS
from ingestion.specs.schema.intervals import interval_ms
from ingestion.specs.tasks.batch import BatchSpec
from ingestion.task.errors import TooManyParseExceptions

_CHUNK_ROWS = 65_536  # gathered before they are dealt out to intervals
_CHUNK_BYTES = 8 * 1024 * 1024
_LONGEST_ERROR = 300
_LONGEST_START = 500  # of a record that is told
_LONGEST_PLACE = 2_000
_HANG_S = 60.0

Place = tuple[int, int]  # a segment interval in milliseconds, half-open


@dataclass(frozen=True)
class Chunk:
    """Rows of one segment interval, as an Arrow stream; column 0 counts them."""

    place: Place
    number: int  # within its split
    rows: int
    content: bytes
    held: pa.Schema  # its dimensions that are not null in all rows

    @classmethod
    def of(cls, place: Place, number: int, rows: pa.Table, metrics: Collection[str]) -> Chunk:
        """``metrics``: the names of columns that are no dimensions."""
        counted = rows.set_column(0, ROW, pa.array(np.arange(len(rows), dtype=np.int32)))
        pairs = zip(rows.schema, rows.columns, strict=True)
        held = [f for f, c in list(pairs)[2:] if c.null_count < len(c) and f.name not in metrics and not is_own(f)]
        return cls(place, number, len(rows), _packed(counted), pa.schema(held))

    @property
    def table(self) -> pa.Table:
        return pa.ipc.open_stream(self.content).read_all()


@dataclass
class Told:
    """What became of a split's records."""

    split: int
    polled: int = 0
    input_bytes: int = 0
    processed: int = 0
    with_error: int = 0  # of those that were processed
    filtered: int = 0
    outside: int = 0  # of the spec's intervals
    unparseable: int = 0
    unread: list[UnreadRecord] = field(default_factory=list)  # the first of them
    kept: Kept = field(default_factory=Kept)  # of the unparseable ones

    @property
    def parse_exceptions(self) -> int:
        return self.unparseable + self.with_error


class Reader:
    """Reads splits, one after the other. Close it.

    ``room``: for what of a split goes into quarantine. ``careful``: in a child process, since a record may have killed
    the process that tried before.
    """

    def __init__(self, spec: BatchSpec, inputs: Inputs, storage: DeepStorage, room: Room, *, careful: bool) -> None:
        self._spec = spec
        self._room = room
        self._inputs = inputs
        self._storage = storage
        self._careful = careful
        source, written = spec.ioConfig.inputSource, spec.ioConfig.inputFormat
        self._with_digits = isinstance(source, DruidInputSource) or isinstance(written, CONTAINERS)
        self._taken = TakenTimes(spec.dataSchema)
        self._metrics = {m.name for m in spec.dataSchema.metricsSpec}
        self._granularity = spec.dataSchema.granularitySpec.segmentGranularity
        self._decoder: tuple[LineFormat, JsonDecoder | IsolatedDecoder] | None = None

    def close(self) -> None:
        """Free what the decoder holds."""
        if self._decoder is not None:
            self._decoder[1].close()

    def chunks(self, split: Split, told: Told) -> Iterator[Chunk]:
        """Its rows; ``told`` is whole when they are. Raises ``InputRefused``, ``InputChanged``, ``DecodeError``,
        ``SegmentError`` and ``TooManyParseExceptions``.
        """
        number = 0
        for rows in self._gathered(split, told):
            for chunk in self.dealt(rows, number):
                yield chunk
                number += 1

    def dealt(self, rows: pa.Table, number: int = 0) -> Iterator[Chunk]:
        """To chunks of one interval each, the first of this number."""
        for place, part in self._by_interval(rows):
            yield Chunk.of(place, number, part, self._metrics)
            number += 1

    def _gathered(self, split: Split, told: Told) -> Iterator[pa.Table]:
        held: list[pa.Table] = []
        for rows in chain.from_iterable(self._of_part(part, told) for part in split.parts):
            held.append(rows)
            if sum(map(len, held)) >= _CHUNK_ROWS or sum(t.nbytes for t in held) >= _CHUNK_BYTES:
                yield joined_rows(held)
                held = []
        if held:
            yield joined_rows(held)

    def _of_part(self, part: Part, told: Told) -> Iterator[pa.Table]:
        source, written = self._spec.ioConfig.inputSource, self._spec.ioConfig.line_format
        if part.segment is not None and isinstance(source, DruidInputSource):
            lines = rows_of(part.segment, self._storage, interval_ms(source.interval), self._spec.dataSchema)
            yield from self._rows(together(lines), written, told)
            return
        container = self._spec.ioConfig.inputFormat
        if part.file is not None and isinstance(container, CONTAINERS):
            with self._inputs.opened_again(part.file) as stream:
                rows = rows_in(part, part.file.path, stream, container, self._needs)
                yield from self._rows(together(rows), written, told)
            return
        with opened(part, self._inputs) as (name, stream, end):
            begin = begin_of(written, name, stream)
            of_json = isinstance(begin.written, JsonInputFormat)
            batches = lines_of(part, name, stream, begin.begins, end, of_json=of_json)
            yield from self._rows(batches, begin.written, told, begin.header)

    @cached_property
    def _needs(self) -> Needs:
        engine = Engine(self._spec.tuningConfig.decoding_bytes)
        try:
            return needed_columns(self._spec.dataSchema, self._spec.ioConfig.line_format, engine)
        finally:
            engine.close()

    def _rows(
        self, batches: Iterator[Lines], written: LineFormat, told: Told, header: bytes = b""
    ) -> Iterator[pa.Table]:
        for lines in batches:
            yield from (rows for _, rows in self.rows(lines, written, told, header) if len(rows))

    def rows(
        self, lines: Lines, written: LineFormat, told: Told, header: bytes = b""
    ) -> Iterator[tuple[Lines, pa.Table]]:
        """What is taken of these lines, in parts: column 0 has the places among the part's lines. ``header``: to be
        kept with those that can't be read.
        """
        for part, decoded in _decoded(self._decoder_for(written), lines):
            yield part, self._kept(part, decoded, told, header)

    def _decoder_for(self, written: LineFormat) -> JsonDecoder | IsolatedDecoder:
        if self._decoder is None or self._decoder[0] != written:
            self.close()
            schema, memory, lines = self._spec.dataSchema, self._spec.tuningConfig.decoding_bytes, of_one_row(written)
            made: JsonDecoder | IsolatedDecoder
            if self._careful:
                made = IsolatedDecoder(schema, memory, input_format=lines, with_digits=self._with_digits)
            else:
                made = JsonDecoder(schema, memory, input_format=lines, hang_s=_HANG_S, with_digits=self._with_digits)
            self._decoder = written, made
        return self._decoder[1]

    def _kept(self, lines: Lines, decoded: Decoded, told: Told, header: bytes) -> pa.Table:
        """The rows that are taken; everything is counted."""
        taken = self._taken.holding(int64s(decoded.rows.column(1).cast(pa.int64())))
        found = _with_extents(decoded.rows, lines)
        rows = found if taken.all() else found.filter(pa.array(taken))
        stored = set(row_indexes(rows).tolist()) if decoded.processed_with_error else set()
        faulty = {i: e for i, e in decoded.processed_with_error.items() if i in stored}
        lost = {i: lines[i].fault or e for i, e in {**decoded.unparseable, **decoded.crashed}.items()}
        told.polled += len(lines)
        told.input_bytes += lines.size_bytes
        told.processed += len(rows)
        told.with_error += len(faulty)
        told.filtered += len(decoded.filtered)
        told.outside += len(decoded.rows) - len(rows)
        told.unparseable += len(lost)
        for index, error in sorted({**lost, **faulty}.items()):
            if len(told.unread) < MOST_UNREAD:
                told.unread.append(_unread(lines[index], error, stored=index in faulty))
        for index, error in sorted(lost.items()):
            told.kept.add(lines[index], error, self._room, crashed=index in decoded.crashed, header=header)
        check_parse_exceptions(self._spec, told.parse_exceptions, told.unread)
        return rows

    def _by_interval(self, rows: pa.Table) -> Iterator[tuple[Place, pa.Table]]:
        ms = int64s(rows.column(1).cast(pa.int64()))
        order = np.argsort(ms, kind="stable")
        for interval, part in intervals_of(ms[order], self._granularity):
            chosen = rows.take(pa.array(np.sort(order[part])))
            place = tuple(int(t.timestamp() * 1000) for t in interval)
            yield (place[0], place[1]), chosen


def _with_extents(rows: pa.Table, lines: Lines) -> pa.Table:
    """Those of the lines, for the rows that were made of them."""
    if not lines.extents:
        return rows
    held = np.array(lines.extents, np.int64)[row_indexes(rows)]
    for number, name in enumerate(EXTENTS):
        rows = rows.append_column(name, pa.array(held[:, number]))
    return rows


def _unread(line: Line, error: str, *, stored: bool) -> UnreadRecord:
    start = line.payload[:_LONGEST_START].decode(errors="replace")
    return UnreadRecord(place=line.place[-_LONGEST_PLACE:], start=start, error=error[:_LONGEST_ERROR], stored=stored)


def check_parse_exceptions(spec: BatchSpec, seen: int, unread: Sequence[UnreadRecord]) -> None:
    """Raise ``TooManyParseExceptions`` when there are more than the spec allows."""
    most = spec.tuningConfig.most_parse_exceptions
    if most is not None and seen > most:
        first = f" The first: {unread[0].place}: {unread[0].error}" if unread else ""
        raise TooManyParseExceptions(
            f"There are {seen} parse exceptions at least, more than tuningConfig.maxParseExceptions ({most}) allows."
            f"{first}"
        )


def _decoded(decoder: JsonDecoder | IsolatedDecoder, lines: Lines) -> Iterator[tuple[Lines, Decoded]]:
    """In parts where together they would be too wide a table."""
    try:
        yield lines, decoder.decode(lines.payloads)
        return
    except TooWide:
        if len(lines) < 2:
            raise
    for half in lines.halves():
        yield from _decoded(decoder, half)


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content
