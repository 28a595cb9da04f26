"""Times of ORC before 1677 and after 2262: Arrow reads all as nanoseconds, and refuses a stripe with one of these."""

from __future__ import annotations

from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa
import pyorc
from pyorc.converters import ORCConverter

_ROWS = 4_096
_NS_IN_MS = 1_000_000


class _Milliseconds(ORCConverter):
    """Rounded towards 1970, as Arrow rounds nanoseconds."""

    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, timezone: object) -> int:
        total = seconds * 1_000 * _NS_IN_MS + nanoseconds
        return total // _NS_IN_MS if total >= 0 else -(-total // _NS_IN_MS)

    @staticmethod
    def to_orc(*_: Any) -> Any:
        raise NotImplementedError


_TIMES = (pyorc.TypeKind.TIMESTAMP, pyorc.TypeKind.TIMESTAMP_INSTANT)
_CONVERTERS: dict[pyorc.TypeKind, type[ORCConverter]] = dict.fromkeys(_TIMES, _Milliseconds)


def column_in_ms(stream: BinaryIO, stripe: int, place: int, kind: pa.DataType) -> pa.Array:
    """One column of a stripe, by its place among the file's: a name with a dot may also be the way to a nested field.

    ``kind``: its type, with milliseconds for its times. Raises pyorc's exceptions.
    """
    file = pyorc.Reader(
        stream, column_indices=[place], struct_repr=pyorc.StructRepr.DICT, converters=_CONVERTERS, batch_size=_ROWS
    )
    rows, parts = iter(file.read_stripe(stripe)), [pa.array([], kind)]
    while part := [value for row in islice(rows, _ROWS) for value in row.values()]:
        parts.append(pa.array(part, kind))
    return pa.concat_arrays(parts)
