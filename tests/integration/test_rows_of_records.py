"""Records of several rows through decode and publish: their rows in segments, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from controlplane.common.errors import InvalidInput
from controlplane.publishing.fence import take_epoch
from controlplane.publishing.models import IndexerFence, ProgressKey, Receipt, SettledRange
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.selectors.coverage import coverage
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.quarantine import replays
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import Segment
from controlplane.sources.models import Source
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.specs.messages.protocol import Outcomes, PublishRequest, StartRequest
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord
from ingestion.specs.source_traits import OFFSET_RANGE, SHARE_GROUP
from ingestion.task.control import Control
from tests.contracts.test_control_plane import KAFKA_SPEC, SPEC, make_task
from tests.support.house import House
from tests.support.in_process import client_of
from tests.support.indexer import OneLog, record
from tests.support.invariants import check_adds_up, stored_numbers
from tests.support.publishes import DAY, make_source, request, segment, send, settled_offsets, start
from tests.support.records import numbered
from tests.support.waiting import wait_for
from tests.support.workers import Workers

BAD = record(6) + b"\n{no"
PAYLOADS = [
    record(0),
    b"\n".join([record(1, 1), record(2, 2), record(3, 1)]),  # in two segments
    BAD,
    record(4) + record(100),  # one is filtered
    record(100) + record(101),  # both are
    record(5),
]
FILTER = {"filter": {"type": "bound", "dimension": "n", "upper": "50", "ordering": "numeric"}}


def run(kind: str, run_indexer: Any, **schema: Any) -> Task:
    """An indexer in this process, on the real metadata store."""
    make_receipt_partitions()
    named = {"dataSource": "contract", "transformSpec": FILTER, **schema}
    if kind == "share_group":
        task = make_task(SHARE_GROUP.kind, SPEC)
        run_indexer(MemoryLeasedSource([(0, n, p) for n, p in enumerate(PAYLOADS)]), client_of(task), **named)
        return task
    control = Control(0, 1)
    task = make_task(OFFSET_RANGE.kind, KAFKA_SPEC)
    plane = client_of(task)
    plane.start(0, StartRequest(cluster_id="cluster", topic_id="topic-id", host="here", pid=1))
    ProgressKey.objects.create(source=Source.objects.get(), partition=0, next_offset=0)
    run_indexer(OneLog(PAYLOADS, control, batch_records=4), plane, control=control, kafka=True, **named)
    return task


@pytest.fixture
def superuser(db: None, tmp_path: Path, settings: Any) -> Client:
    settings.DEEP_STORAGE = str(tmp_path / "segments")
    client = Client()
    client.force_login(User.objects.create(username="root", is_superuser=True))
    return client


@pytest.mark.parametrize("kind", ["share_group", "offset_range"])
def test_records_and_rows_are_counted_as_what_they_are(superuser: Client, run_indexer: Any, kind: str) -> None:
    task = run(kind, run_indexer)
    report = superuser.get(f"/druid/indexer/v1/task/{task.pk}/reports").json()
    ours = report["headgate"]["payload"]
    expected = {"polled": 6, "published": 6, "further_rows": 2, "unparseable": 1, "thrown_away": 1, "rolled_up": 0}
    assert {name: ours[name] for name in expected} == expected
    check_adds_up(ours)
    stats = report["ingestionStatsAndErrors"]["payload"]["rowStats"]["totals"]["buildSegments"]
    assert (stats["processed"], stats["unparseable"], stats["thrownAway"]) == (6, 1, 1)  # Druid counts rows
    shown = superuser.get("/api/v1/datasources/contract/").json()
    assert (shown["rows"], shown["totals"]["further_rows"], shown["totals"]["adds_up"]) == (6, 2, True)
    assert sorted(s.rows for s in Segment.objects.all()) == [1, 5]
    [kept] = QuarantinedRecord.objects.all()
    assert (kept.offset, bytes(kept.payload or b"")) == (2, BAD)
    assert sum(r.span.upper - r.span.lower for r in SettledRange.objects.all()) == 6


def test_a_record_is_found_in_each_segment_that_has_a_row_of_it(superuser: Client, run_indexer: Any) -> None:
    run("share_group", run_indexer)
    by_offset = []
    for offset in range(6):
        found = superuser.get(f"/api/v1/records/?topic=t&partition=0&offset={offset}").json()
        [fate] = found["fates"]
        by_offset.append((fate["outcome"], len(fate["segments"])))
    assert by_offset == [
        ("stored", 1),
        ("stored", 2),
        ("unparseable", 0),
        ("stored", 1),
        ("thrown_away", 0),
        ("stored", 1),
    ]
    [seen] = coverage(Source.objects.get())
    assert seen.totals == {"stored": 4, "unparseable": 1, "thrown_away": 1}


def test_rows_of_one_record_are_rolled_up(superuser: Client, run_indexer: Any) -> None:
    rollup = {
        "dimensionsSpec": {"dimensions": ["word"]},
        "metricsSpec": [{"type": "count", "name": "count"}],
        "granularitySpec": {"rollup": True, "segmentGranularity": "DAY"},
    }
    run("offset_range", run_indexer, **rollup)
    fence = IndexerFence.objects.get()
    assert (fence.published, fence.rolled_up, fence.further_rows) == (2, 4, 2)


def in_two_segments(epoch: int, further: int) -> PublishRequest:
    """Two records with a row each in two segments."""
    files = [segment({0: [(2, 4)]}), segment({0: [(2, 4)]}, DAY + timedelta(days=1))]
    what = request(epoch, segments=files)
    polled = what.counters.published - further
    return what.model_copy(
        update={"counters": what.counters.model_copy(update={"polled": polled, "further_rows": further})}
    )


def test_an_offset_is_in_several_segments_only_as_often_as_there_are_further_rows(db: None) -> None:
    source = make_source("flights")
    with pytest.raises(InvalidInput, match="two outcomes"):
        send(in_two_segments(start(source), 0))
    with pytest.raises(InvalidInput, match="2 offsets stand in a further segment, and there are fewer further rows"):
        send(in_two_segments(start(source), 1))
    send(in_two_segments(start(source), 2))
    assert settled_offsets(source) == {0: [(2, 4)]}
    assert Receipt.objects.get().outcomes == {"stored": [[2, 4, 0]], "further": [[2, 4, 1]]}


def test_a_replay_stores_all_rows_of_a_record(db: None) -> None:
    source = make_source("flights")
    kept = [WireRecord(partition=0, offset=o, delivery_count=1, reason="unparseable", error="bad") for o in (2, 3)]
    send(request(start(source), outcomes={0: Outcomes(unparseable=[(2, 4)])}, quarantined=kept))
    assert replays.take_records(QuarantinedRecord.objects.all(), "replay") == 2
    datasource = source.datasource
    epoch = take_epoch(task_id="replay", number=0, datasource=datasource, source=source, replay=True).epoch
    send(in_two_segments(epoch, 2), task="replay")
    assert {q.state for q in QuarantinedRecord.objects.all()} == {"stored"}
    assert datasource_totals(datasource).adds_up
    totals = datasource_totals(datasource)
    assert (totals.polled, totals.published, totals.further_rows, totals.unparseable) == (2, 4, 2, 0)


@pytest.mark.parametrize("lane", ["share_group", "offsets"])
def test_they_are_stored_once_though_an_indexer_dies(
    house: House, make_workers: Callable[..., Workers], tmp_path: Path, lane: str
) -> None:
    """Killed when all rows are uploaded, and none is published."""
    topic = house.topic(partitions=2)
    rows = list(numbered(0, 300))
    house.produce(topic, [b"\n".join(rows[n : n + 3]) for n in range(0, 300, 3)])
    workers = make_workers(house.spec(topic) if lane == "share_group" else house.kafka_spec(topic))
    held = tmp_path / "held"
    house.fail_at(topic, uploaded=f"hold:{held}")
    workers.start(0)
    wait_for("rows are uploaded", held.exists, 60, lambda: house.logs(topic))
    house.fail_at(topic)
    workers.kill(0)
    workers.start(0)
    wait_for("all is published", lambda: house.totals(topic)["published"] >= 300, 90, lambda: house.logs(topic))
    workers.finish(0)
    numbers, total = stored_numbers(house, topic)
    assert (sorted(numbers.elements()), total) == (list(range(300)), 3 * sum(range(300)))
    totals = house.totals(topic)
    assert (totals["published"], totals["further_rows"], totals["unparseable"]) == (300, 200, 0)
    check_adds_up(totals)
