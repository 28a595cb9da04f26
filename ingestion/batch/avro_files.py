"""The records of an Avro object container file, by fastavro. Whole files only: they have one beginning."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

import fastavro
import fastavro.read
import pyarrow as pa

from ingestion.decode.formats.avro import AvroSchema
from ingestion.specs.formats.file_format import AvroFileInputFormat

_CHECKSUM_BYTES = 4
_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_HEADER = {
    "type": "record",
    "name": "Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": len(_MAGIC)}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": _SYNC_BYTES}},
    ],
}
_MAX_BLOCK_BYTES = 1 << 30


def read_records(stream: BinaryIO, written: AvroFileInputFormat) -> Iterator[Any]:
    """Each read by an ``AvroSchema``. A text that is not UTF-8 has halves of surrogate pairs (``surrogateescape``).

    ``stream`` is seekable. Raises whatever fastavro meets an odd file with.
    """
    header: Any = fastavro.schemaless_reader(stream, _HEADER, None)
    if header["magic"] != _MAGIC:
        raise ValueError("not an Avro container file")
    writers = json.loads(header["meta"]["avro.schema"])
    schema = AvroSchema(writers, written.extractUnionsByType, seen_as=written.avro_schema)
    unpack = fastavro.read.BLOCK_READERS[header["meta"].get("avro.codec", b"null").decode()]
    for count, content in _blocks(stream, unpack, header["sync"]):
        for _ in range(count):
            yield schema.next_of(content, "surrogateescape")


def _blocks(stream: BinaryIO, unpack: Callable[[BinaryIO], BinaryIO], sync: bytes) -> Iterator[tuple[int, BinaryIO]]:
    """How many records each holds, and they. Not fastavro's, which is stricter than Java with the writer's schema."""
    while stream.read(1):
        stream.seek(-1, io.SEEK_CUR)
        count = cast("int", fastavro.schemaless_reader(stream, "long", None))
        content = unpack(stream)
        if stream.read(_SYNC_BYTES) != sync:
            raise ValueError("a block does not end where it should")
        yield count, content


def _read_bytes(stream: BinaryIO) -> bytes:
    return cast("bytes", fastavro.schemaless_reader(stream, "bytes", None))


def _snappy(stream: BinaryIO) -> io.BytesIO:
    """What fastavro needs another package for; pyarrow has it. A block says first how large it is unpacked."""
    packed = _read_bytes(stream)[:-_CHECKSUM_BYTES]
    size = shift = 0
    for byte in packed:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > _MAX_BLOCK_BYTES:
        raise ValueError("a block is too large")
    return io.BytesIO(pa.Codec("snappy").decompress(packed, size, asbytes=True))


def _zstandard(stream: BinaryIO) -> io.BytesIO:
    packed = pa.BufferReader(_read_bytes(stream))
    content = pa.CompressedInputStream(packed, "zstd").read(_MAX_BLOCK_BYTES + 1)
    if len(content) > _MAX_BLOCK_BYTES:
        raise ValueError("a block is too large")
    return io.BytesIO(content)


fastavro.read.BLOCK_READERS.update(snappy=_snappy, zstandard=_zstandard)
