"""The hash that DataSketches goes by: MurmurHash3 of 128 bits (x64) with its seed, of many values at once.

The library's Python form hashes texts as UTF-8 alone; Druid's HLL sketches hash them as UTF-16.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.uint64]
_SEED = np.uint64(9001)
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_CANONICAL_NAN = np.uint64(0x7FF8000000000000)


@dataclass(frozen=True)
class Hashes:
    """Two words for each value."""

    first: Words
    second: Words


def hash_texts(texts: pa.Array, encoding: str) -> Hashes:
    """Of texts without nulls, as ``utf8`` or ``utf16le``."""
    if encoding == "utf16le":
        starts, data = _utf16(texts)
    else:
        plain = pa.concat_arrays([texts])  # its offsets begin at the buffer's start, whatever was cut off
        starts = np.frombuffer(plain.buffers()[1], np.int32)[plain.offset : plain.offset + len(plain) + 1].astype(
            np.int64
        )
        data = np.frombuffer(plain.buffers()[2] or b"", np.uint8)
    return _hash_bytes(starts, data)


def hash_longs(values: npt.NDArray[np.int64]) -> Hashes:
    return _hash_words(values.view(np.uint64))


def hash_doubles(values: npt.NDArray[np.float64]) -> Hashes:
    """0 and -0 are the same, and so is every NaN."""
    words = np.where(values == 0.0, 0.0, values).view(np.uint64)
    return _hash_words(np.where(np.isnan(values), _CANONICAL_NAN, words))


def _utf16(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        joined = "".join(texts.to_pylist()).encode()
        data = np.zeros(2 * len(joined), np.uint8)
        data[::2] = np.frombuffer(joined, np.uint8)
        lengths = 2 * pc.binary_length(texts).to_numpy(zero_copy_only=False)
    else:
        parts = [text.encode("utf-16-le", "surrogatepass") for text in texts.to_pylist()]
        data = np.frombuffer(b"".join(parts), np.uint8)
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    return np.append(0, np.cumsum(lengths)).astype(np.int64), data


def _hash_words(words: Words) -> Hashes:
    nothing = np.zeros(len(words), np.uint64)
    return _finalize(nothing + _SEED, nothing + _SEED, words, nothing, nothing + np.uint64(8))


def _hash_bytes(starts: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Hashes:
    """``starts``: where each value begins in the data, and the end of the last."""
    data = np.append(data, np.zeros(16, np.uint8))
    at, lengths = starts[:-1], np.diff(starts)
    blocks = lengths // 16
    h1, h2 = np.full(len(at), _SEED), np.full(len(at), _SEED)
    for block in range(int(blocks.max(initial=0))):
        some = np.flatnonzero(blocks > block)
        k = _words_at(data, at[some] + 16 * block)
        h1[some], h2[some] = _block(h1[some], h2[some], k[:, 0], k[:, 1])
    rest = (lengths - 16 * blocks)[:, None]
    tail = data[(at + 16 * blocks)[:, None] + np.arange(16)]
    tail[np.arange(16) >= rest] = 0
    k = tail.view(np.uint64)
    return _finalize(h1, h2, k[:, 0], k[:, 1], lengths.astype(np.uint64))


def _words_at(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> Words:
    words: Words = data[at[:, None] + np.arange(16)].view(np.uint64)
    return words


def _rotate(word: Words, by: int) -> Words:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


def _block(h1: Words, h2: Words, k1: Words, k2: Words) -> tuple[Words, Words]:
    h1 = _rotate(h1 ^ (_rotate(k1 * _C1, 31) * _C2), 27) + h2
    h1 = h1 * np.uint64(5) + np.uint64(0x52DCE729)
    h2 = _rotate(h2 ^ (_rotate(k2 * _C2, 33) * _C1), 31) + h1
    return h1, h2 * np.uint64(5) + np.uint64(0x38495AB5)


def _finalize(h1: Words, h2: Words, k1: Words, k2: Words, lengths: Words) -> Hashes:
    h2 = h2 ^ (_rotate(k2 * _C2, 33) * _C1) ^ lengths
    h1 = h1 ^ (_rotate(k1 * _C1, 31) * _C2) ^ lengths
    h1 = h1 + h2
    h2 = h2 + h1
    h1, h2 = _mix(h1), _mix(h2)
    h1 = h1 + h2
    return Hashes(h1, h1 + h2)


def _mix(word: Words) -> Words:
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))
