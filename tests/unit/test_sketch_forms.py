"""The bytes of sketches: those of one value as the library writes them, and what others wrote, torn too."""

from __future__ import annotations

import base64
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingestion.sketches.description import describe_sketch
from ingestion.sketches.hashing import hash_doubles, hash_longs, hash_texts
from ingestion.sketches.merging import Merger, read_sketch
from ingestion.sketches.single_values import from_hashes, from_numbers
from tests.support.sketches import HLL, QUANTILES, THETA, schema_of


def metric_of(written: dict[str, Any]) -> Any:
    return schema_of([written]).metricsSpec[0]


@settings(max_examples=100)
@given(texts=st.lists(st.text(min_size=1, max_size=50), min_size=1, max_size=8), cut=st.integers(0, 7))
def test_texts_are_hashed_as_the_library_does(texts: list[str], cut: int) -> None:
    column = pa.array(["", *texts, "é"]).slice(min(cut, len(texts)))
    theta, hll = metric_of(THETA), metric_of({**HLL, "stringEncoding": "utf8"})
    hashes = hash_texts(column, "utf8")
    for text, one, other in zip(column.to_pylist(), from_hashes(theta, hashes), from_hashes(hll, hashes), strict=True):
        if text:
            wanted = datasketches.update_theta_sketch(14)
            wanted.update(text)
            assert one.as_py() == wanted.compact().serialize()
            wanted = datasketches.hll_sketch(12, datasketches.HLL_4)
            wanted.update(text)
            assert other.as_py() == wanted.serialize_compact()


@settings(max_examples=100)
@given(
    longs=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    doubles=st.lists(st.floats(allow_nan=False), min_size=1, max_size=5),
)
def test_numbers_are_hashed_as_the_library_does(longs: list[int], doubles: list[float]) -> None:
    hll, quantiles = metric_of({**HLL, "tgtHllType": "HLL_8", "lgK": 9}), metric_of({**QUANTILES, "k": 32})
    for values, hashes in (
        (longs, hash_longs(np.array(longs, np.int64))),
        (doubles, hash_doubles(np.array(doubles))),
    ):
        for value, made in zip(values, from_hashes(hll, hashes).to_pylist(), strict=True):
            wanted = datasketches.hll_sketch(9, datasketches.HLL_8)
            wanted.update(value)
            assert made == wanted.serialize_compact()
    for value, made in zip(doubles, from_numbers(quantiles, np.array(doubles)).to_pylist(), strict=True):
        wanted = datasketches.quantiles_doubles_sketch(32)
        wanted.update(value)
        assert made == wanted.serialize()


def foreign() -> list[tuple[dict[str, Any], bytes, int]]:
    """Sketches of every form and size, as the library writes them, and of how many values."""
    found: list[tuple[dict[str, Any], bytes, int]] = []
    for count in (0, 1, 6, 30, 3_000):
        for lg_k in (4, 8, 12):
            for kind in (datasketches.HLL_4, datasketches.HLL_6, datasketches.HLL_8):
                hll = datasketches.hll_sketch(lg_k, kind)
                for n in range(count):
                    hll.update(n)
                found.append(({**HLL, "type": "HLLSketchMerge"}, hll.serialize_compact(), count))
        theta, quantiles = datasketches.update_theta_sketch(8), datasketches.quantiles_doubles_sketch(16)
        for n in range(count):
            theta.update(n)
            quantiles.update(float(n))
        found.append(({**THETA, "isInputThetaSketch": True}, theta.compact().serialize(), count))
        found.append((QUANTILES, quantiles.serialize(), count))
    return found


FOREIGN = foreign()


def test_sketches_of_others_are_read() -> None:
    """An HLL sketch of 16 registers is known to be wrong by a quarter."""
    for written, stored, count in FOREIGN:
        metric = metric_of(written)
        found = read_sketch(base64.b64encode(stored).decode(), Merger.of(metric))
        assert found is not None
        told = describe_sketch(metric.kind, found)
        assert told.get("n", told.get("estimate")) == pytest.approx(count, rel=0.5)


@settings(max_examples=600, deadline=None)
@given(
    which=st.integers(0, len(FOREIGN) - 1),
    changes=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), min_size=1, max_size=4),
    end=st.none() | st.integers(0, 60),
)
@example(which=28, changes=[(5, 12)], end=None)  # a list of six that calls itself empty
@example(which=36, changes=[(8, 64), (6, 60), (12, 2)], end=None)  # registers beyond what one holds
@example(which=42, changes=[(4, 1), (11, 128), (1, 2)], end=None)  # theta of another serial version
def test_no_bytes_end_the_process(which: int, changes: list[tuple[int, int]], end: int | None) -> None:
    """The library trusts what it is given: bytes of a sketch that do not hold together would end the process."""
    written, stored, _ = FOREIGN[which]
    torn = bytearray(stored[:end])
    for place, byte in changes:
        if place < len(torn):
            torn[place] = byte
    found = read_sketch(base64.b64encode(bytes(torn)).decode(), Merger.of(metric_of(written)))
    assert found is None or read_sketch(base64.b64encode(found).decode(), Merger.of(metric_of(written))) is not None
