"""The records of a part of a file that is no lines: each becomes a line of JSON, for the decoder that lines have.

Of a file in parts each row group, or stripe, belongs to one of them: see ``columnar``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from ingestion.batch.avro_files import read_records
from ingestion.batch.columnar import IsNeeded, read_columnar_rows
from ingestion.batch.errors import InputRefused
from ingestion.batch.lines import Line
from ingestion.batch.splits import Part
from ingestion.decode.formats.base import BadRecord, json_encoder, short_error
from ingestion.specs.formats.file_format import AvroFileInputFormat, ContainerFormat

_FORMAT_LABELS = {"parquet": "Parquet", "orc": "ORC", "avro_ocf": "Avro container"}


def read_container_rows(
    part: Part, name: str, stream: BinaryIO, written: ContainerFormat, needs: IsNeeded
) -> Iterator[Line]:
    """``stream``: the whole file, seekable; ``needs``: which columns are read. Raises ``InputRefused``, also after some
    rows.
    """
    encode = json_encoder(written.binaryAsString)
    try:
        if isinstance(written, AvroFileInputFormat):
            for number, record in enumerate(read_records(stream, written)):
                needed = {column: value for column, value in record.items() if needs(column)}
                yield _line(f"{name}, row", number, needed, encode)
            return
        for called, first, rows in read_columnar_rows(part, name, stream, written, needs, encode):
            for number, row in enumerate(rows, first):
                yield _line(called, number, row, encode)
    except (
        pa.ArrowException,
        OSError,
        EOFError,
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        BadRecord,
    ) as error:
        # Whatever a library makes of a file that is something else, or of a type that has no JSON form.
        raise InputRefused(
            f"{name} can't be read: it is not a valid {_FORMAT_LABELS[written.type]} file, or has values that JSON "
            f"cannot express. The reason: {short_error(error)}."
        ) from None


def _line(called: str, number: int, row: dict[str, Any], encode: Callable[[object], str]) -> Line:
    """A row with a text that is not UTF-8 is a line that is not, either: nobody reads it, and its fault says where."""
    text = encode(row)
    try:
        return Line(called, number, text.encode())
    except UnicodeEncodeError:
        bad_column = next((column for column, value in row.items() if not _is_unicode(encode([column, value]))), "")
        fault = f"column {bad_column!r} has a text that is not UTF-8"
        return Line(called, number, text.encode(errors="surrogateescape"), fault=fault)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
