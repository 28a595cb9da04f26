"""Sketches of one value each, or of none: rows of a column, made all at once.

An HLL sketch of one value is a list of one coupon, a theta sketch its one hash, a quantiles sketch its number, and how
many there are, the least and the greatest.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestion.sketches.hashing import Hashes
from ingestion.specs.schema.sketch_metrics import HllMetric, QuantilesMetric, SketchMetric, ThetaMetric

Bytes = npt.NDArray[np.uint8]
_HLL_TYPES = {"HLL_4": 0, "HLL_6": 4, "HLL_8": 8}
_THETA_SEED_HASH = 0x93CC


def empty_sketch(metric: SketchMetric) -> bytes:
    """Of no value."""
    if isinstance(metric, ThetaMetric):
        return struct.pack("<6BH", 1, 3, 3, 0, 0, 0x1E, _THETA_SEED_HASH)
    if isinstance(metric, QuantilesMetric):
        return struct.pack("<4B2H", 1, 3, 8, 0x1C, metric.k, 0)
    return struct.pack("<8B", 2, 1, 7, metric.lgK, 3, 0x0C, 0, _HLL_TYPES[metric.tgtHllType])


def from_hashes(metric: HllMetric | ThetaMetric, hashes: Hashes) -> pa.Array:
    """A sketch for each."""
    if isinstance(metric, ThetaMetric):
        head = struct.pack("<6BH", 1, 3, 3, 0, 0, 0x1A, _THETA_SEED_HASH)
        return _bytes(head, (hashes.first >> np.uint64(1)).view(np.uint8).reshape(-1, 8))
    head = struct.pack("<8B", 2, 1, 7, metric.lgK, 3, 8, 1, _HLL_TYPES[metric.tgtHllType])
    return _bytes(head, _coupons(hashes).view(np.uint8).reshape(-1, 4))


def from_numbers(metric: QuantilesMetric, numbers: npt.NDArray[np.float64]) -> pa.Array:
    """A sketch for each."""
    head = struct.pack("<4B2Hq", 2, 3, 8, 0x18, metric.k, 0, 1)
    return _bytes(head, np.repeat(numbers, 3).view(np.uint8).reshape(-1, 24))


def _coupons(hashes: Hashes) -> npt.NDArray[np.uint32]:
    """Of the first word 26 bits; of the second with how many zeros it begins, and one."""
    address = hashes.first & np.uint64(0x3FFFFFF)
    zeros = 64 - _bit_lengths(hashes.second)
    value = np.minimum(zeros, 62).astype(np.uint64) + np.uint64(1)
    return (address | (value << np.uint64(26))).astype(np.uint32)


def _bit_lengths(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """A half at a time: a double holds 32 bits as they are."""
    high, low = (words >> np.uint64(32)).astype(np.float64), (words & np.uint64(0xFFFFFFFF)).astype(np.float64)
    lengths = np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(low)[1])
    return lengths.astype(np.int64)


def _bytes(head: bytes, bodies: Bytes) -> pa.Array:
    """An array of as many values as there are bodies, each behind the head."""
    count, width = len(bodies), len(head) + bodies.shape[1]
    data = np.empty((count, width), np.uint8)
    data[:, : len(head)] = np.frombuffer(head, np.uint8)
    data[:, len(head) :] = bodies
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
