"""Whether bytes are a compact theta sketch through and through: see ``hll_form`` for why that must be known first.

A sketch has a preamble of one to three words of 8 bytes, then its hashes. Druid and the library write serial version 3.
"""

from __future__ import annotations

import struct

import numpy as np

_SERIAL_VERSION, _FAMILY = 3, 3
_BIG_ENDIAN, _EMPTY, _COMPACT, _ORDERED = 1, 4, 8, 16
_ALL = 2**63 - 1  # theta of a sketch that holds every hash it has seen


def is_sound(stored: bytes) -> bool:
    """Whether the library may have it."""
    if len(stored) < 8:
        return False
    words, version, family, _, _, flags = stored[:6]
    if (version, family) != (_SERIAL_VERSION, _FAMILY) or flags & _BIG_ENDIAN or not flags & _COMPACT:
        return False
    if flags & _EMPTY:
        return words == 1 and len(stored) == 8
    if words == 1:
        return len(stored) == 16 and _are_hashes(stored, 1, 1, _ALL, ordered=True)
    if words not in (2, 3) or len(stored) < 8 * words:
        return False
    theta = struct.unpack_from("<Q", stored, 16)[0] if words == 3 else _ALL
    count = struct.unpack_from("<I", stored, 8)[0]
    if theta > _ALL or len(stored) != 8 * (words + count):
        return False
    return _are_hashes(stored, words, count, theta, ordered=bool(flags & _ORDERED))


def _are_hashes(stored: bytes, words: int, count: int, theta: int, ordered: bool) -> bool:
    """Below theta, each once."""
    hashes = np.frombuffer(stored, "<u8", count, 8 * words)
    ascending = hashes if ordered else np.sort(hashes)
    below = bool((hashes > 0).all()) and bool((hashes < np.uint64(theta)).all())
    return below and bool((ascending[1:] > ascending[:-1]).all())
