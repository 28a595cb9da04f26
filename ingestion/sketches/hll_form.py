"""Whether bytes are an HLL sketch through and through: the library trusts what stands in them, and others that do not
hold together end the process.

A sketch has a preamble of 8 bytes, then a list of coupons, a set of them, or an array of registers: of 4 bits with the
exceptions behind it, of 6, or of 8. Lists, sets and exceptions are taken in their compact form, which Druid writes.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
_SERIAL_VERSION, _FAMILY = 1, 7
_EMPTY, _COMPACT = 4, 8
_LIST, _SET, _ARRAY = 0, 1, 2
_PREAMBLES = {_LIST: 2, _SET: 3, _ARRAY: 10}  # in words of 4 bytes
_LONGEST_LIST = 8
_MIN_SET_LG_K = 8
_GREATEST_REGISTER = 63
_EXCEPTION = 15  # of 4 bits: the register stands behind the array


def is_sound(stored: bytes) -> bool:
    """Whether the library may have it."""
    if len(stored) < 8:
        return False
    words, version, family, lg_k, lg_array, flags, listed, mode_byte = stored[:8]
    mode, width = mode_byte & 3, mode_byte >> 2
    if (version, family) != (_SERIAL_VERSION, _FAMILY) or not 4 <= lg_k <= 21:
        return False
    if width > 2 or _PREAMBLES.get(mode) != words or len(stored) < 4 * words:
        return False
    if flags & _EMPTY and (
        mode != _LIST or listed
    ):  # what stands behind it would not be read, and counted all the same
        return False
    if mode == _ARRAY:
        return _is_array(stored, lg_k, lg_array, width, bool(flags & _COMPACT))
    return bool(flags & _COMPACT) and _is_list(stored, lg_k, mode)


def _is_list(stored: bytes, lg_k: int, mode: int) -> bool:
    """A list or a set of coupons."""
    if mode == _LIST:
        count, start, most = stored[6], 8, _LONGEST_LIST
    else:
        count, start, most = struct.unpack_from("<I", stored, 8)[0], 12, 3 << max(lg_k - 5, 0)
    if count > most or len(stored) != start + 4 * count or (mode == _SET and lg_k < _MIN_SET_LG_K):
        return False
    return _are_coupons(np.frombuffer(stored, "<u4", count, start))


def _are_coupons(coupons: npt.NDArray[np.uint32]) -> bool:
    values = coupons >> 26
    return bool((values > 0).all()) and len(np.unique(coupons)) == len(coupons)


def _is_array(stored: bytes, lg_k: int, lg_array: int, width: int, compact: bool) -> bool:
    registers, least = 1 << lg_k, stored[6]
    at_least, exceptions = struct.unpack_from("<II", stored, 32)
    body = np.frombuffer(stored, np.uint8, offset=40)
    if not np.isfinite(np.frombuffer(stored, "<f8", 3, 8)).all() or at_least > registers:
        return False
    if width == 0:
        return compact and lg_array <= lg_k and _is_of_4_bits(body, registers, least, at_least, exceptions)
    if least or exceptions:
        return False
    if width == 1:
        return len(body) == registers * 3 // 4 + 1
    return len(body) == registers and bool((body <= _GREATEST_REGISTER).all())


def _is_of_4_bits(body: Bytes, registers: int, least: int, at_least: int, exceptions: int) -> bool:
    """Every exception is told of, and no other."""
    if least >= _GREATEST_REGISTER or exceptions > registers or len(body) != registers // 2 + 4 * exceptions:
        return False
    packed = body[: registers // 2]
    nibbles = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)
    behind = np.frombuffer(body[registers // 2 :].tobytes(), "<u4")
    slots = np.sort((behind & np.uint32(0x3FFFFFF)) & np.uint32(registers - 1))
    if not np.array_equal(slots, np.flatnonzero(nibbles == _EXCEPTION)):
        return False
    if least + int(nibbles[nibbles < _EXCEPTION].max(initial=0)) > _GREATEST_REGISTER:
        return False
    return bool(((behind >> 26) >= least + _EXCEPTION).all()) and int((nibbles == 0).sum()) == at_least
