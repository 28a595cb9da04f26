"""The records of a part: its lines.

A line belongs to the part in which it begins, so every line of a file is in exactly one of its parts. Line breaks are
``\\n`` and ``\\r\\n``; a value in quotes can't hold one, as in Druid. Empty lines are no records.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from ingestion.batch.errors import InputRefused
from ingestion.batch.inputs import Inputs
from ingestion.batch.splits import Part
from ingestion.decode.payloads import JsonLines
from ingestion.specs.formats.file_format import LineFormat
from ingestion.specs.formats.input_format import CsvInputFormat, JsonInputFormat

MAX_LINE_BYTES = 64 * 1024 * 1024
_MAX_LINES, _MAX_BYTES = 8_192, 4 * 1024 * 1024  # of what is decoded at once
INLINE = "inputSource inline"
_NEWLINE = ord("\n")
_BOM = b"\xef\xbb\xbf"
_DECOMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class Line(NamedTuple):
    """One record and its place. ``name`` ends with the unit of ``position`` (byte or row)."""

    name: str
    position: int
    payload: bytes
    extents: tuple[int, ...] | None = None  # of a segment's row, where the schema needs them
    fault: str = ""  # why nobody can read it, where that is known already

    @property
    def place(self) -> str:
        return f"{self.name} {self.position}"


@dataclass(frozen=True)
class Lines:
    """Records that are decoded together. There are millions: they are ``Line`` only where somebody asks for one."""

    name: str
    positions: Sequence[int]
    payloads: Sequence[bytes]
    extents: Sequence[tuple[int, ...]] = ()  # of a segment's rows, where the schema needs them
    faults: Sequence[str] = ()  # of each, where one of them has one

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Lines:
        """Those of one name."""
        extents = [line.extents for line in lines if line.extents is not None]
        faults = [line.fault for line in lines] if any(line.fault for line in lines) else []
        return cls(lines[0].name, [line.position for line in lines], [line.payload for line in lines], extents, faults)

    def __len__(self) -> int:
        return len(self.payloads)

    def __getitem__(self, index: int) -> Line:
        extents = self.extents[index] if self.extents else None
        fault = self.faults[index] if self.faults else ""
        return Line(self.name, int(self.positions[index]), self.payloads[index], extents, fault)

    @property
    def size_bytes(self) -> int:
        return self.payloads.size_bytes if isinstance(self.payloads, JsonLines) else sum(map(len, self.payloads))

    def halves(self) -> tuple[Lines, Lines]:
        """Two of about as many lines."""
        middle = len(self) // 2
        return self._cut(slice(middle)), self._cut(slice(middle, None))

    def _cut(self, chosen: slice) -> Lines:
        return Lines(
            self.name, self.positions[chosen], self.payloads[chosen], self.extents[chosen], self.faults[chosen]
        )


def batch_lines(lines: Iterator[Line]) -> Iterator[Lines]:
    """The lines of one name, as many as are decoded at once."""
    batch: list[Line] = []
    size = 0
    for line in lines:
        if batch and (len(batch) >= _MAX_LINES or size >= _MAX_BYTES or line.name != batch[0].name):
            yield Lines.of(batch)
            batch, size = [], 0
        batch.append(line)
        size += len(line.payload)
    if batch:
        yield Lines.of(batch)


@contextmanager
def open_part(part: Part, inputs: Inputs) -> Iterator[tuple[str, BinaryIO, int | None]]:
    """What the part is called, its bytes, decompressed, and where it ends (None: with the file)."""
    if part.file is None:
        yield INLINE, io.BytesIO(part.text.encode()), None
        return
    path = part.file.path
    with inputs.open_input(part.file) as file:
        suffix = next((s for s in _DECOMPRESSED if path.lower().endswith(s)), None)
        if suffix is None:
            yield path, file, part.end
            return
        try:
            with _DECOMPRESSED[suffix](file, "rb") as inner:
                yield path, cast("BinaryIO", io.BufferedReader(inner, 1 << 20)), None
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise InputRefused(f"{path} can't be decompressed: {type(error).__name__}.") from None


class LineLayout(NamedTuple):
    """How a file's lines are to be read, and at which byte they begin, behind its header, if columns stand in one."""

    line_format: LineFormat
    first_row: int = 0
    header: bytes = b""


def read_layout(written: LineFormat, name: str, stream: BinaryIO) -> LineLayout:
    """``stream`` is at its start. Raises ``InputRefused``."""
    if isinstance(written, JsonInputFormat) or not (written.has_header or written.skipHeaderRows):
        return LineLayout(written)
    for _ in range(written.skipHeaderRows):
        _read_line(name, stream)
    header = _read_line(name, stream).removeprefix(_BOM).rstrip(b"\r\n") if written.has_header else b""
    return LineLayout(single_line_format(written, name, header), stream.tell(), header)


def single_line_format(written: LineFormat, name: str, header: bytes) -> LineFormat:
    """How a line alone is to be read, its file's header known, if it has one. Raises ``InputRefused``."""
    if isinstance(written, JsonInputFormat):
        return written
    columns = _header_columns(written, name, header) if written.has_header else written.columns
    plain = {"columns": columns, "findColumnsFromHeader": None, "hasHeaderRow": None, "skipHeaderRows": 0}
    return written.model_copy(update=plain)


def _header_columns(written: Any, name: str, header: bytes) -> list[str]:
    try:
        text = header.decode()
    except UnicodeDecodeError:
        raise InputRefused(f"The header of {name} is not UTF-8.") from None
    if not text:
        raise InputRefused(f"{name} has no header row.")
    names = next(csv.reader([text])) if isinstance(written, CsvInputFormat) else text.split(written.delimiter)
    named = [name or f"column_{number}" for number, name in enumerate(names, 1)]
    twice = sorted({n for n in named if named.count(n) > 1}) if len(set(named)) < len(named) else []
    if twice:
        raise InputRefused(f"The header of {name} names columns twice: {', '.join(twice[:20])}.")
    return named


def read_lines(
    part: Part, name: str, stream: BinaryIO, begins: int, end: int | None, *, of_json: bool
) -> Iterator[Lines]:
    """``begins``: where a file's lines do; see ``read_layout``. Raises ``InputRefused`` for a line that is too long."""
    lines_in = _split_json_lines if of_json else _split_lines
    at = max(part.start, begins)
    if at > begins:
        stream.seek(at - 1)  # a line that begins here is one of this part
        at += len(_read_line(name, stream)) - 1
    else:
        stream.seek(at)
    while end is None or at < end:
        block = stream.read(_MAX_BYTES if end is None else min(_MAX_BYTES, end - at))
        if not block:
            return
        if not block.endswith(b"\n"):
            block += _read_line(name, stream)
        yield from _split_to_limits(lines_in(name, at, block))
        at += len(block)


def _split_lines(name: str, start: int, block: bytes) -> Lines:
    """Those of whole lines, of which the first begins at byte ``start``; what ends with a line break ends with none."""
    payloads = block.removesuffix(b"\n").split(b"\n")
    lengths = np.fromiter(map(len, payloads), np.int64, len(payloads)) + 1
    if lengths.max() > MAX_LINE_BYTES:
        raise _too_long(name)
    at = start + np.cumsum(lengths) - lengths
    if b"\r" in block:
        payloads = [payload.rstrip(b"\r") for payload in payloads]
    if b"" in payloads:
        at = at[[bool(payload) for payload in payloads]]
        payloads = [payload for payload in payloads if payload]
    return Lines(f"{name}, byte", cast("Sequence[int]", at), payloads)


def _split_json_lines(name: str, start: int, block: bytes) -> Lines:
    """What ``_split_lines`` finds, without an object for each line where every line is a record."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE) + 1
    if not ends.size or ends[-1] < len(block):
        ends = np.append(ends, len(block))
    lengths = np.diff(ends, prepend=0)
    if lengths.min() <= 1 or lengths.max() > MAX_LINE_BYTES or b"\r" in block:
        return _split_lines(name, start, block)
    return Lines(f"{name}, byte", cast("Sequence[int]", start + ends - lengths), JsonLines.of(block, ends))


def _split_to_limits(lines: Lines) -> Iterator[Lines]:
    """In parts that are decoded at once."""
    if len(lines) > _MAX_LINES:
        for half in lines.halves():
            yield from _split_to_limits(half)
    elif lines:
        yield lines


def _read_line(name: str, stream: BinaryIO) -> bytes:
    line = stream.readline(MAX_LINE_BYTES)
    if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
        raise _too_long(name)
    return line


def _too_long(name: str) -> InputRefused:
    return InputRefused(f"{name} has a line of more than {MAX_LINE_BYTES // (1 << 20)} MiB.")
