"""The records of an Avro object container file, by fastavro. Whole files only: they have one beginning."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import fastavro
import fastavro.read
import pyarrow as pa

from ingestion.decode.formats.avro import AvroSchema
from ingestion.specs.file_format import AvroFileInputFormat

_CHECKSUM_BYTES = 4
_MOST_BLOCK_BYTES = 1 << 30


def records_of(stream: BinaryIO, written: AvroFileInputFormat) -> Iterator[Any]:
    """Each read by an ``AvroSchema``. A text that is not UTF-8 has halves of surrogate pairs (``surrogateescape``).

    Raises whatever fastavro meets an odd file with.
    """
    schema: AvroSchema | None = None
    for block in fastavro.block_reader(stream):
        if schema is None:
            schema = AvroSchema(block.writer_schema, written.extractUnionsByType, seen_as=written.avro_schema)
        content: BinaryIO = block.bytes_  # type: ignore[attr-defined]  # its stubs lack it
        for _ in range(block.num_records):
            yield schema.next_of(content, "surrogateescape")


def _packed(stream: BinaryIO) -> bytes:
    return cast("bytes", fastavro.schemaless_reader(stream, "bytes", None))


def _snappy(stream: BinaryIO) -> io.BytesIO:
    """What fastavro needs another package for; pyarrow has it. A block says first how large it is unpacked."""
    packed = _packed(stream)[:-_CHECKSUM_BYTES]
    size = shift = 0
    for byte in packed:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > _MOST_BLOCK_BYTES:
        raise ValueError("a block is too large")
    return io.BytesIO(pa.Codec("snappy").decompress(packed, size, asbytes=True))


def _zstandard(stream: BinaryIO) -> io.BytesIO:
    packed = pa.BufferReader(_packed(stream))
    content = pa.CompressedInputStream(packed, "zstd").read(_MOST_BLOCK_BYTES + 1)
    if len(content) > _MOST_BLOCK_BYTES:
        raise ValueError("a block is too large")
    return io.BytesIO(content)


fastavro.read.BLOCK_READERS.update(snappy=_snappy, zstandard=_zstandard)
