"""Whether bytes are a quantiles sketch through and through: see ``hll_form`` for why that must be known first.

A sketch has a preamble of 8 bytes; the number of its values, the least and the greatest; the values that came last,
fewer than ``2 * k``; and of those before, ``k`` sorted ones for each bit that is set in their number by ``2 * k``. It
is taken in its compact form, which Druid writes.
"""

from __future__ import annotations

import struct

import numpy as np

_SERIAL_VERSION, _FAMILY = 3, 8
_BIG_ENDIAN, _EMPTY, _COMPACT = 1, 4, 8
_START = 32  # of the values


def is_sound(stored: bytes) -> bool:
    """Whether the library may have it."""
    if len(stored) < 8:
        return False
    words, version, family, flags = stored[:4]
    k = struct.unpack_from("<H", stored, 4)[0]
    if (version, family) != (_SERIAL_VERSION, _FAMILY) or flags & _BIG_ENDIAN or k < 2 or k & (k - 1):
        return False
    if flags & _EMPTY:
        return words == 1 and len(stored) == 8
    if words != 2 or not flags & _COMPACT or len(stored) < _START:
        return False
    n = struct.unpack_from("<Q", stored, 8)[0]
    levels, last = divmod(n, 2 * k)
    if not 0 < n < 2**63 or len(stored) != _START + 8 * (last + levels.bit_count() * k):
        return False
    least, greatest = struct.unpack_from("<dd", stored, 16)
    values = np.frombuffer(stored, "<f8", offset=_START)
    if not bool(((least <= values) & (values <= greatest)).all()):  # nor is any NaN
        return False
    sorted_ones = values[last:].reshape(-1, k)
    return bool((sorted_ones[:, 1:] >= sorted_ones[:, :-1]).all())
