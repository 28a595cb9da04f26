"""Records of which each has few enough fields, and all of a batch together have too many for one table.

The limits are a hundredth of what they are: tables of a thousand columns take long.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestion.client.memory import MemoryControlPlane
from ingestion.decode import fields, json_decoder
from ingestion.decode.decoded import Decoded
from ingestion.decode.errors import TooWide
from ingestion.decode.isolated_decoder import IsolatedDecoder
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.decode.wide_records import decode_together
from ingestion.rows import row_indexes
from ingestion.segments import index
from ingestion.sources.base import ACCEPT, Batch
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.task.control import Control
from ingestion.task.decoding import LATE_DELIVERY
from tests.support.decoded_fields import schema_of
from tests.support.decoders import decoder_of
from tests.support.indexer import OneLog, assignment, stored, total
from tests.unit.test_refused_publishes import POISON, Squeamish

pytestmark = pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
DISCOVERY = {"useSchemaDiscovery": True, "dimensionExclusions": ["never", "t"]}
MAX_COUNT, MAX_TOGETHER = 10, 20


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "MAX_DISCOVERED", MAX_COUNT)
    monkeypatch.setattr(json_decoder, "MAX_IN_BATCH", MAX_TOGETHER)


def record(n: int, **own: int) -> bytes:
    """``own``: so many fields of a name."""
    more = {f"{name}{i}": 1 for name, count in own.items() for i in range(count)}
    return json.dumps({"t": 0, "time": 0, "n": n, "never": 1, **more}).encode()


RARE = [record(n, **{f"r{n}_": 6}) for n in range(5)]
FREQUENT = [record(n, f=7) for n in range(6, 9)]
BATCH = [*RARE[:3], record(5, w=20), FREQUENT[0], b"{no", *RARE[3:], *FREQUENT[1:]]


def verdicts(decoded: Decoded) -> list[str]:
    """By record."""
    found = {**decoded.unparseable, **dict.fromkeys(row_indexes(decoded.rows).tolist(), "stored")}
    return [found[i] for i in sorted(found)]


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.sets(st.integers(1, len(BATCH) - 1)), turned=st.booleans())
def test_a_records_verdict_is_the_same_however_its_batch_is_cut(cuts: set[int], turned: bool) -> None:
    batch = BATCH[::-1] if turned else BATCH
    decoder = decoder_of(schema_of(**DISCOVERY))
    parts = [batch[start:stop] for start, stop in pairwise([0, *sorted(cuts), len(batch)])]
    found = [v for part in parts for v in verdicts(decode_together(decoder, part, MessageWindow()))]
    expected = ["stored"] * len(BATCH)
    expected[3] = f"has 22 fields to discover, at most {MAX_COUNT} are allowed: list the dimensions, or exclude fields"
    expected[5] = found[batch.index(b"{no")]
    assert found == (expected[::-1] if turned else expected)


def test_what_is_too_wide_is_not_decoded_at_once() -> None:
    decoder = JsonDecoder(schema_of(**DISCOVERY))
    with pytest.raises(TooWide, match="5 records have 32 fields to discover"):
        decoder.decode(RARE)
    assert len(decoder.decode(RARE[:2]).rows) == 2
    decoder.close()


def test_a_child_process_says_so_too() -> None:
    """Its limits are those of production."""
    isolated = IsolatedDecoder(schema_of(**DISCOVERY))
    wide = [record(n, **{f"r{n}_": 700}) for n in range(3)]
    with pytest.raises(TooWide, match="3 records have 2,102 fields to discover"):
        isolated.decode(wide)
    assert len(isolated.decode(wide[:1]).rows) == 1
    isolated.close()


class Late(MemoryLeasedSource):
    """Every second record has been delivered before."""

    def poll(self, timeout_s: float) -> Batch | None:
        batch = super().poll(timeout_s)
        return batch and replace(batch, delivery_counts=np.where(batch.offsets % 2, LATE_DELIVERY, 1))


@pytest.mark.parametrize("kind", [MemoryLeasedSource, Late])
def test_a_share_groups_batch_is_published_in_parts(
    run_indexer: Any, tmp_path: Path, kind: type[MemoryLeasedSource]
) -> None:
    """Also where some of it is decoded in a child process."""
    source = kind([(0, n, p) for n, p in enumerate(BATCH)])
    plane = run_indexer(source, dimensionsSpec=DISCOVERY)
    fallen = {3, 5} if kind is MemoryLeasedSource else {5}  # a child takes a wider one
    assert {q.offset for p in plane.published for q in p.quarantined} == fallen
    assert {o for (_, o), v in source.acknowledgements.items() if v == ACCEPT} == set(range(len(BATCH))) - fallen
    assert (total(plane).polled, total(plane).unparseable) == (len(BATCH), len(fallen))
    assert len(plane.published) > 1
    assert stored(plane, tmp_path) == sorted([0, 1, 2, 3, 4, 6, 7, 8, *([] if 3 in fallen else [5])])


@pytest.mark.parametrize("most_columns", [1_000, 15])
def test_what_gathers_is_handed_off_before_it_is_too_wide(
    run_indexer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_columns: int
) -> None:
    monkeypatch.setattr(index, "MAX_COLUMNS", most_columns)
    plane, control = MemoryControlPlane(assignment(tmp_path)), Control(0, 1)
    source = OneLog(BATCH * 3, control, batch_records=len(BATCH))
    tuning = {"intermediateHandoffPeriod": "PT1H"}
    run_indexer(source, plane, control=control, kafka=True, dimensionsSpec=DISCOVERY, tuningConfig=tuning)
    assert stored(plane, tmp_path) == sorted([0, 1, 2, 3, 4, 6, 7, 8] * 3)
    assert (source.rewinds, plane.stored[("topic-id", 0)]) == (0, 3 * len(BATCH))
    assert total(plane).unparseable == 6
    widest = max(len(s.columns) for p in plane.published for s in p.segments)
    assert (len(plane.published) > 1) == (most_columns < 1_000)
    assert widest <= most_columns + MAX_TOGETHER


def test_a_batch_that_is_begun_anew_is_not_gone_on_with(
    run_indexer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first half is refused, and read again with all that follows."""
    monkeypatch.setattr(index, "MAX_COLUMNS", 5)
    plane, control = Squeamish(assignment(tmp_path)), Control(0, 1)
    batch = [json.dumps({"time": 0, "n": 9, POISON: 1}).encode(), *RARE]
    source = OneLog(batch, control, batch_records=len(batch))
    tuning = {"intermediateHandoffPeriod": "PT1H"}
    run_indexer(source, plane, control=control, kafka=True, dimensionsSpec=DISCOVERY, tuningConfig=tuning)
    assert stored(plane, tmp_path) == [0, 1, 2, 3, 4]
    assert [(q.offset, q.reason) for p in plane.published for q in p.quarantined] == [(0, "refused")]
    assert (source.rewinds, plane.stored[("topic-id", 0)]) == (2, len(batch))
