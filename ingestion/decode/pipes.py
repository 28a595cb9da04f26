"""Frames between a decoder and its child process: 8 bytes of length (big-endian), then the bytes.

A request is a JSON frame, then the payloads as an Arrow stream; an answer is a JSON frame, then for a decode the rows
as an Arrow stream. Arrow and JSON only: nothing that is read can run code.
"""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from ingestion.decode.decoded import Decoded
from ingestion.decode.envelope import Envelope
from ingestion.decode.message_window import MessageWindow

_LENGTH = struct.Struct(">Q")
_CHUNK = 1024 * 1024
_HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.large_binary())]))


class PipeClosed(Exception):
    """The other side is gone."""


class PipeTimeout(Exception):
    """The other side did not read or write in time."""


class Pipe:
    """Both directions to another process. ``deadline``: a ``time.monotonic()`` value, or None to wait for ever."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    def send(self, frame: bytes | memoryview, deadline: float | None = None) -> None:
        """Write one frame. Raises ``PipeClosed`` or ``PipeTimeout``."""
        for part in (memoryview(_LENGTH.pack(len(frame))), memoryview(frame)):
            rest = part
            while rest:
                _wait(self._write_fd, deadline, write=True)
                rest = rest[self._write(rest[:_CHUNK]) :]

    def receive(self, deadline: float | None = None) -> bytes:
        """Read one frame. Raises ``PipeClosed`` (also at the end of the stream) or ``PipeTimeout``."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline))
        return self._exactly(length, deadline)

    def close(self) -> None:
        os.close(self._read_fd)
        os.close(self._write_fd)

    def _write(self, part: memoryview) -> int:
        try:
            return os.write(self._write_fd, part)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise PipeClosed from error

    def _exactly(self, length: int, deadline: float | None) -> bytes:
        received = bytearray()
        while len(received) < length:
            _wait(self._read_fd, deadline, write=False)
            try:
                part = os.read(self._read_fd, min(_CHUNK, length - len(received)))
            except BlockingIOError:
                continue
            if not part:
                raise PipeClosed
            received += part
        return bytes(received)


def _wait(fd: int, deadline: float | None, write: bool) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLOUT if write else select.POLLIN)
    left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    if not poll.poll(left):
        raise PipeTimeout


def pack_payloads(payloads: Sequence[bytes | None], envelope: Envelope | None = None) -> memoryview:
    """The payloads as an Arrow stream: a binary column, and with an envelope one for each of its columns."""
    columns = {"payload": pa.array(payloads, pa.large_binary())}
    if envelope is not None:
        columns["key"] = pa.array(list(envelope.keys), pa.large_binary())
        columns["timestamp_ms"] = pa.array(list(envelope.timestamps_ms), pa.int64())
        headers = [[{"name": n, "value": v} for n, v in some] for some in envelope.headers]
        columns["headers"] = pa.array(headers, _HEADERS)
    return _to_ipc(pa.table(columns))


def unpack_payloads(frame: bytes, topic: str | None = None) -> tuple[list[bytes | None], Envelope | None]:
    """The payloads, and their envelope if there is one (then ``topic`` is given)."""
    columns = _from_ipc(frame).to_pydict()
    if topic is None:
        return columns["payload"], None
    headers = [[(h["name"], h["value"]) for h in some] for some in columns["headers"]]
    return columns["payload"], Envelope(topic, columns["key"], columns["timestamp_ms"], headers)


def pack_rows(decoded: Decoded) -> memoryview:
    return _to_ipc(decoded.rows)


def pack_outcome(decoded: Decoded) -> dict[str, Any]:
    """All of a result but its rows, fit for JSON."""
    return {
        "unparseable": list(decoded.unparseable.items()),
        "filtered": decoded.filtered,
        "outside_window": decoded.outside_window,
        "tombstones": decoded.tombstones,
        "processed_with_error": list(decoded.processed_with_error.items()),
    }


def unpack_decoded(outcome: dict[str, Any], frame: bytes) -> Decoded:
    return Decoded(
        rows=_from_ipc(frame),
        unparseable=dict(outcome["unparseable"]),
        filtered=outcome["filtered"],
        outside_window=outcome["outside_window"],
        tombstones=outcome["tombstones"],
        processed_with_error=dict(outcome["processed_with_error"]),
    )


def pack_window(window: MessageWindow) -> list[str | None]:
    return [None if t is None else t.isoformat() for t in (window.earliest, window.latest)]


def unpack_window(times: list[str | None]) -> MessageWindow:
    earliest, latest = (None if t is None else datetime.fromisoformat(t) for t in times)
    return MessageWindow(earliest, latest)


def _to_ipc(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def _from_ipc(frame: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(frame)) as reader:
        return reader.read_all()
