"""One split to rows: decoded by the decoder that streams have, in chunks of one segment interval each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from ingestion.batch.columnar import IsNeeded
from ingestion.batch.containers import read_container_rows
from ingestion.batch.inputs import Inputs
from ingestion.batch.lines import Line, Lines, batch_lines, open_part, read_layout, read_lines
from ingestion.batch.needed_columns import needed_columns
from ingestion.batch.segment_rows import read_segment_rows
from ingestion.batch.split_quarantine import QuarantineLimits, SplitQuarantine
from ingestion.batch.splits import Part, Split
from ingestion.decode.decoded import Decoded
from ingestion.decode.engine import Engine
from ingestion.decode.errors import TooWide
from ingestion.decode.isolated_decoder import IsolatedDecoder
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.rows import ROW, join_rows, row_indexes
from ingestion.segments.accepted_times import AcceptedTimes
from ingestion.segments.deep_storage import DeepStorage
from ingestion.segments.intervals import split_by_interval
from ingestion.segments.table_shape import int64s, is_hidden
from ingestion.specs.formats.file_format import CONTAINERS, LineFormat
from ingestion.specs.formats.input_format import JsonInputFormat, as_single_row
from ingestion.specs.inputs.input_source import DruidInputSource
from ingestion.specs.limits import MAX_UNREAD
from ingestion.specs.messages.protocol import UnreadRecord
from ingestion.specs.schema.data_schema import EXTENTS
from ingestion.specs.schema.intervals import interval_ms
from ingestion.specs.tasks.batch import BatchSpec
from ingestion.task.errors import TooManyParseExceptions

_CHUNK_ROWS = 65_536  # gathered before they are dealt out to intervals
_CHUNK_BYTES = 8 * 1024 * 1024
_LONGEST_ERROR = 300
_LONGEST_EXCERPT = 500  # of a record that is told
_LONGEST_PLACE = 2_000
_HANG_S = 60.0

IntervalMs = tuple[int, int]  # a segment interval in milliseconds, half-open


@dataclass(frozen=True)
class Chunk:
    """Rows of one segment interval, as an Arrow stream; column 0 counts them."""

    place: IntervalMs
    number: int  # within its split
    rows: int
    content: bytes
    held: pa.Schema  # its dimensions that are not null in all rows

    @classmethod
    def of(cls, interval: IntervalMs, number: int, rows: pa.Table, metrics: Collection[str]) -> Chunk:
        """``metrics``: the names of columns that are no dimensions."""
        counted = rows.set_column(0, ROW, pa.array(np.arange(len(rows), dtype=np.int32)))
        pairs = zip(rows.schema, rows.columns, strict=True)
        dimensions = [
            f for f, c in list(pairs)[2:] if c.null_count < len(c) and f.name not in metrics and not is_hidden(f)
        ]
        return cls(interval, number, len(rows), _to_ipc(counted), pa.schema(dimensions))

    @property
    def table(self) -> pa.Table:
        return pa.ipc.open_stream(self.content).read_all()


@dataclass
class SplitReport:
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
    quarantine: SplitQuarantine = field(default_factory=SplitQuarantine)  # of the unparseable ones

    @property
    def parse_exceptions(self) -> int:
        return self.unparseable + self.with_error


class Reader:
    """Reads splits, one after the other. Close it.

    ``room``: for what of a split goes into quarantine. ``careful``: in a child process, since a record may have killed
    the process that tried before.
    """

    def __init__(
        self, spec: BatchSpec, inputs: Inputs, storage: DeepStorage, room: QuarantineLimits, *, careful: bool
    ) -> None:
        self._spec = spec
        self._quarantine_limits = room
        self._inputs = inputs
        self._storage = storage
        self._is_careful = careful
        source, written = spec.ioConfig.inputSource, spec.ioConfig.inputFormat
        self._with_digits = isinstance(source, DruidInputSource) or isinstance(written, CONTAINERS)
        self._accepted_times = AcceptedTimes(spec.dataSchema)
        self._metrics = {m.name for m in spec.dataSchema.metricsSpec}
        self._granularity = spec.dataSchema.granularitySpec.segmentGranularity
        self._decoder: tuple[LineFormat, JsonDecoder | IsolatedDecoder] | None = None

    def close(self) -> None:
        """Free what the decoder holds."""
        if self._decoder is not None:
            self._decoder[1].close()

    def chunks(self, split: Split, report: SplitReport) -> Iterator[Chunk]:
        """Its rows; ``storable_text`` is whole when they are. Raises ``InputRefused``, ``InputChanged``,
        ``DecodeError``, ``SegmentError`` and ``TooManyParseExceptions``.
        """
        number = 0
        for rows in self._row_tables(split, report):
            for chunk in self.split_by_interval(rows, number):
                yield chunk
                number += 1

    def split_by_interval(self, rows: pa.Table, number: int = 0) -> Iterator[Chunk]:
        """To chunks of one interval each, the first of this number."""
        for interval, part in self._by_interval(rows):
            yield Chunk.of(interval, number, part, self._metrics)
            number += 1

    def _row_tables(self, split: Split, report: SplitReport) -> Iterator[pa.Table]:
        tables: list[pa.Table] = []
        for rows in chain.from_iterable(self._part_tables(part, report) for part in split.parts):
            tables.append(rows)
            if sum(map(len, tables)) >= _CHUNK_ROWS or sum(t.nbytes for t in tables) >= _CHUNK_BYTES:
                yield join_rows(tables)
                tables = []
        if tables:
            yield join_rows(tables)

    def _part_tables(self, part: Part, report: SplitReport) -> Iterator[pa.Table]:
        source, written = self._spec.ioConfig.inputSource, self._spec.ioConfig.line_format
        if part.segment is not None and isinstance(source, DruidInputSource):
            lines = read_segment_rows(part.segment, self._storage, interval_ms(source.interval), self._spec.dataSchema)
            yield from self._rows(batch_lines(lines), written, report)
            return
        container = self._spec.ioConfig.inputFormat
        if part.file is not None and isinstance(container, CONTAINERS):
            with self._inputs.open_input(part.file) as stream:
                rows = read_container_rows(part, part.file.path, stream, container, self._is_needed)
                yield from self._rows(batch_lines(rows), written, report)
            return
        with open_part(part, self._inputs) as (name, stream, end):
            begin = read_layout(written, name, stream)
            of_json = isinstance(begin.line_format, JsonInputFormat)
            batches = read_lines(part, name, stream, begin.first_row, end, of_json=of_json)
            yield from self._rows(batches, begin.line_format, report, begin.header)

    @cached_property
    def _is_needed(self) -> IsNeeded:
        engine = Engine(self._spec.tuningConfig.decoding_bytes)
        try:
            return needed_columns(self._spec.dataSchema, self._spec.ioConfig.line_format, engine)
        finally:
            engine.close()

    def _rows(
        self, batches: Iterator[Lines], written: LineFormat, report: SplitReport, header: bytes = b""
    ) -> Iterator[pa.Table]:
        for lines in batches:
            yield from (rows for _, rows in self.rows(lines, written, report, header) if len(rows))

    def rows(
        self, lines: Lines, written: LineFormat, report: SplitReport, header: bytes = b""
    ) -> Iterator[tuple[Lines, pa.Table]]:
        """What is taken of these lines, in parts: column 0 has the places among the part's lines. ``header``: to be
        kept with those that can't be read.
        """
        for part, decoded in _decode_parts(self._decoder_for(written), lines):
            yield part, self._accepted_rows(part, decoded, report, header)

    def _decoder_for(self, written: LineFormat) -> JsonDecoder | IsolatedDecoder:
        if self._decoder is None or self._decoder[0] != written:
            self.close()
            schema, memory, lines = (
                self._spec.dataSchema,
                self._spec.tuningConfig.decoding_bytes,
                as_single_row(written),
            )
            decoder: JsonDecoder | IsolatedDecoder
            if self._is_careful:
                decoder = IsolatedDecoder(schema, memory, input_format=lines, with_digits=self._with_digits)
            else:
                decoder = JsonDecoder(schema, memory, input_format=lines, hang_s=_HANG_S, with_digits=self._with_digits)
            self._decoder = written, decoder
        return self._decoder[1]

    def _accepted_rows(self, lines: Lines, decoded: Decoded, report: SplitReport, header: bytes) -> pa.Table:
        """The rows that are taken; everything is counted."""
        is_accepted = self._accepted_times.holding(int64s(decoded.rows.column(1).cast(pa.int64())))
        decoded_rows = _add_extents(decoded.rows, lines)
        rows = decoded_rows if is_accepted.all() else decoded_rows.filter(pa.array(is_accepted))
        stored = set(row_indexes(rows).tolist()) if decoded.processed_with_error else set()
        faulty = {i: e for i, e in decoded.processed_with_error.items() if i in stored}
        lost = {i: lines[i].fault or e for i, e in {**decoded.unparseable, **decoded.crashed}.items()}
        report.polled += len(lines)
        report.input_bytes += lines.size_bytes
        report.processed += len(rows)
        report.with_error += len(faulty)
        report.filtered += len(decoded.filtered)
        report.outside += len(decoded.rows) - len(rows)
        report.unparseable += len(lost)
        for index, error in sorted({**lost, **faulty}.items()):
            if len(report.unread) < MAX_UNREAD:
                report.unread.append(_unread_record(lines[index], error, stored=index in faulty))
        for index, error in sorted(lost.items()):
            report.quarantine.add(
                lines[index], error, self._quarantine_limits, crashed=index in decoded.crashed, header=header
            )
        check_parse_exceptions(self._spec, report.parse_exceptions, report.unread)
        return rows

    def _by_interval(self, rows: pa.Table) -> Iterator[tuple[IntervalMs, pa.Table]]:
        ms = int64s(rows.column(1).cast(pa.int64()))
        order = np.argsort(ms, kind="stable")
        for interval, part in split_by_interval(ms[order], self._granularity):
            chosen = rows.take(pa.array(np.sort(order[part])))
            interval_ms = tuple(int(t.timestamp() * 1000) for t in interval)
            yield (interval_ms[0], interval_ms[1]), chosen


def _add_extents(rows: pa.Table, lines: Lines) -> pa.Table:
    """Those of the lines, for the rows that were made of them."""
    if not lines.extents:
        return rows
    extents = np.array(lines.extents, np.int64)[row_indexes(rows)]
    for number, name in enumerate(EXTENTS):
        rows = rows.append_column(name, pa.array(extents[:, number]))
    return rows


def _unread_record(line: Line, error: str, *, stored: bool) -> UnreadRecord:
    start = line.payload[:_LONGEST_EXCERPT].decode(errors="replace")
    return UnreadRecord(place=line.place[-_LONGEST_PLACE:], start=start, error=error[:_LONGEST_ERROR], stored=stored)


def check_parse_exceptions(spec: BatchSpec, total: int, unread: Sequence[UnreadRecord]) -> None:
    """Raise ``TooManyParseExceptions`` when there are more than the spec allows."""
    most = spec.tuningConfig.parse_exceptions_limit
    if most is not None and total > most:
        first = f" The first: {unread[0].place}: {unread[0].error}" if unread else ""
        raise TooManyParseExceptions(
            f"There are at least {total} parse exceptions, more than tuningConfig.maxParseExceptions ({most}) allows."
            f"{first}"
        )


def _decode_parts(decoder: JsonDecoder | IsolatedDecoder, lines: Lines) -> Iterator[tuple[Lines, Decoded]]:
    """In parts where together they would be too wide a table."""
    try:
        yield lines, decoder.decode(lines.payloads)
        return
    except TooWide:
        if len(lines) < 2:
            raise
    for half in lines.halves():
        yield from _decode_parts(decoder, half)


def _to_ipc(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content
