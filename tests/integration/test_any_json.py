"""Any JSON at all as field names and values, through decode and publish, on the real metadata store."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as budget
from hypothesis import strategies as st

from controlplane.publishing.models import IndexerFence, ProgressKey, SettledRange
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import Segment
from controlplane.sources.models import Source, SourceEvent
from controlplane.tasks.models import Task
from ingestion.decode import fields
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.specs.messages.protocol import StartRequest
from ingestion.specs.source_traits import OFFSET_RANGE, SHARE_GROUP
from ingestion.task.control import Control
from tests.contracts.test_control_plane import KAFKA_SPEC, SPEC, make_task
from tests.support.in_process import client_of
from tests.support.indexer import OneLog

SCHEMA = {"dataSource": "contract", "timestampSpec": {"column": "time"}, "dimensionsSpec": {"useSchemaDiscovery": True}}
ODD = st.sampled_from(
    ["", " ", "\0", "a\0b", "\ud800", "\udfff\ud800", "__time", "__row", "time", "\u2028", "'", '"', "%s", "x" * 1001]
)
NAMES = ODD | st.text(st.characters(), max_size=6)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats()
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.lists(st.dictionaries(NAMES, VALUES, max_size=5), min_size=1, max_size=6)
DAY = "2025-06-01T00:00:00Z"
_OFFSETS = itertools.count(step=100)  # of one topic for all examples, as its offsets are settled once


def payload(record: dict[str, Any]) -> bytes:
    """With a time that can be read, unless the record says something else."""
    return json.dumps({"time": DAY, **record}).encode()


def task_of(document: dict[str, Any], kind: Any = SHARE_GROUP.kind) -> Task:
    make_receipt_partitions()
    return make_task(kind, {**document, "dataSchema": SCHEMA})


@pytest.fixture
def deep(tmp_path: Path, settings: Any) -> Path:
    settings.DEEP_STORAGE = str(tmp_path / "segments")
    return tmp_path / "segments"


@budget(max_examples=40, suppress_health_check=list(HealthCheck))
@given(records=RECORDS)
@example(records=[{"c\0d": 1}, {"v": "a\0b"}, {"n": {"a\0": "\0"}}, {"l": ["\0"]}, {"\0": None}, {"x" * 1001: 1}])
@example(records=[{"a": 1}, {"a": "\ud800"}, {"\ud800": 1}, {"a": float("nan")}, {"a": 1e400}])
def test_every_record_is_stored_or_quarantined(
    db: None, deep: Path, run_indexer: Any, tmp_path: Path, records: list[dict[str, Any]]
) -> None:
    task, first = task_of(SPEC), next(_OFFSETS)
    payloads = [payload(r) for r in records]
    source = MemoryLeasedSource([(0, first + n, p) for n, p in enumerate(payloads)])
    run_indexer(source, client_of(task), dataSource="contract")
    held = IndexerFence.objects.get(task_id=task.pk)
    kept = QuarantinedRecord.objects.filter(task_id=task.pk)
    assert (held.polled, held.published + kept.count()) == (len(records), len(records))
    assert not kept.filter(reason="refused").exists(), "what the metadata store can't hold, the decoder says"
    assert {bytes(k.payload or b"") for k in kept} <= set(payloads)
    for segment in Segment.objects.filter(task_id=task.pk):
        file = pq.read_table(deep / segment.path)
        assert [c["name"] for c in segment.columns] == file.column_names
        assert file.num_rows == segment.rows


NUL = rb'{"time":"2025-06-01","c\u0000d":1}'
GOOD = [json.dumps({"time": DAY, "n": n}).encode() for n in range(20)]


@pytest.mark.parametrize("kind", ["share_group", "offset_range"])
def test_what_the_decoder_lets_through_is_found_by_its_refusal(
    db: None, deep: Path, run_indexer: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Row 30 of the failure matrix."""
    monkeypatch.setattr(fields, "unusable_name", lambda name: "")
    payloads = [*GOOD[:13], NUL, *GOOD[13:]]
    control = Control(0, 1)
    if kind == "share_group":
        task = task_of(SPEC)
        run_indexer(
            MemoryLeasedSource([(0, n, p) for n, p in enumerate(payloads)]), client_of(task), dataSource="contract"
        )
    else:
        task = task_of(KAFKA_SPEC, OFFSET_RANGE.kind)
        plane = client_of(task)
        plane.start(0, StartRequest(cluster_id="cluster", topic_id="topic-id", host="here", pid=1))
        key = ProgressKey.objects.create(source=Source.objects.get(), partition=0, next_offset=0)

        def stored() -> int:
            return ProgressKey.objects.get(pk=key.pk).next_offset or 0

        source = OneLog(payloads, control, batch_records=8)
        once = {"maxRowsPerSegment": 21, "intermediateHandoffPeriod": "PT1H"}
        run_indexer(source, plane, control=control, kafka=True, dataSource="contract", tuningConfig=once)
        assert (stored(), source.rewinds) == (21, 1)
    [refused] = QuarantinedRecord.objects.all()
    assert (refused.offset, refused.reason, bytes(refused.payload or b"")) == (13, "refused", NUL)
    assert refused.error.startswith("its publish was refused: A value of the message cannot be stored: ")
    assert sum(s.rows for s in Segment.objects.all()) == 20
    assert IndexerFence.objects.get().published == 20
    assert sum(r.span.upper - r.span.lower for r in SettledRange.objects.all()) == 21
    [event] = SourceEvent.objects.filter(alarm=True)
    assert event.kind == SourceEvent.Kind.REFUSED and "partition 0, offset 13" in event.detail
