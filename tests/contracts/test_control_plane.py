"""The in-memory control plane answers as the real one does, over HTTP on PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from controlplane.datasources.models import Datasource
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.tasks.lifecycle import end_task, new_token
from controlplane.tasks.models import Task
from controlplane.teams.models import Team
from ingestion.client.base import ControlPlane
from ingestion.client.errors import Invalid, PublishRefused, TaskOver
from ingestion.client.http import HttpControlPlane
from ingestion.client.memory import MemoryControlPlane
from ingestion.specs.counters import Counters
from ingestion.specs.messages.column_ids import TIME, ColumnsRequest
from ingestion.specs.messages.protocol import (
    AbandonRequest,
    Advance,
    Assignment,
    Claimed,
    ClaimRequest,
    Column,
    EndRequest,
    FaultyRecord,
    HeartbeatRequest,
    IndexerStatus,
    Outcomes,
    ParseExceptionTotals,
    PublishRequest,
    SegmentFile,
    SettledRequest,
    StartRequest,
)
from ingestion.specs.source_traits import OFFSET_RANGE, SHARE_GROUP
from ingestion.specs.tasks.ingestion_spec import parse_task_spec

pytestmark = pytest.mark.django_db(transaction=True)
DAY = datetime(2025, 6, 1, tzinfo=UTC)
CREATED_AT = datetime(2025, 6, 1, 12, tzinfo=UTC)
SPEC: dict[str, Any] = {
    "type": "index_kafka_share_group",
    "dataSchema": {"dataSource": "contract", "timestampSpec": {"column": "time"}},
    "ioConfig": {
        "topic": "t",
        "groupId": "g",
        "consumerProperties": {"bootstrap.servers": "nowhere:1"},
        "inputFormat": {"type": "json"},
    },
}


def make_task(kind: Any = SHARE_GROUP.kind, document: dict[str, Any] = SPEC, **more: Any) -> Task:
    team, _ = Team.objects.get_or_create(name="contract")
    datasource, _ = Datasource.objects.get_or_create(name="contract", defaults={"team": team})
    return Task.objects.create(
        id=f"task-{uuid.uuid4().hex[:8]}",
        kind=kind,
        datasource=datasource,
        spec=parse_task_spec(document).canonical(),
        indexers_wanted=2,
        created_at=CREATED_AT,
        **more,
    )


KAFKA_SPEC = {
    **SPEC,
    "type": "index_kafka",
    "ioConfig": {k: v for k, v in SPEC["ioConfig"].items() if k != "groupId"} | {"type": "kafka"},
}


@pytest.fixture(params=["memory", "http"])
def plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """One control plane of each kind, at the beginning of a task with two indexers."""
    yield from plane_for(request, SHARE_GROUP.kind, SPEC)


@pytest.fixture(params=["memory", "http"])
def kafka_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The control plane of a task with stored offsets."""
    make_receipt_partitions()
    yield from plane_for(request, OFFSET_RANGE.kind, KAFKA_SPEC)


def plane_for(request: pytest.FixtureRequest, kind: Any, document: dict[str, Any]) -> Iterator[ControlPlane]:
    if request.param == "memory":
        spec = parse_task_spec(document).spec
        yield MemoryControlPlane(
            Assignment(
                task_id="task",
                kind=kind,
                spec=spec,
                consumer_properties={n: str(v) for n, v in spec.ioConfig.consumerProperties.items()},
                indexers=2,
                deep_storage="/nowhere",
                version="v1",
                created_at=CREATED_AT,
            )
        )
        return
    url = request.getfixturevalue("live_server").url
    task = make_task(kind, document)
    client = HttpControlPlane(url, task.pk, new_token(task))
    yield client
    client.close()


def begin(plane: ControlPlane, number: int = 0) -> int:
    request = StartRequest(cluster_id="cluster", topic_id="topic-id", host="here", pid=1)
    return plane.start(number, request).epoch


def batch(epoch: int, *ranges: tuple[int, int], **outcomes: list[tuple[int, int]]) -> PublishRequest:
    rows = sum(end - start for start, end in ranges)
    file = SegmentFile(
        path=f"contract/{uuid.uuid4()}.parquet",
        interval_start=DAY,
        interval_end=DAY + timedelta(days=1),
        rows=max(rows, 1),
        size_bytes=1,
        sha256="0" * 64,
        min_time=DAY,
        max_time=DAY,
        columns=[Column(name="n", type="long")],
        offsets={0: list(ranges)},
    )
    stored = Path(settings.DEEP_STORAGE) / file.path
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(b"x")
    duplicates = sum(end - start for start, end in outcomes.get("duplicate", []))
    return PublishRequest(
        publish_id=uuid.uuid4(),
        epoch=epoch,
        topic_id="topic-id",
        segments=[file] if rows else [],
        outcomes={0: Outcomes(**outcomes)} if outcomes else {},
        counters=Counters(polled=rows + duplicates, published=rows, duplicates=duplicates),
    )


def test_the_assignment(plane: ControlPlane) -> None:
    given = plane.assignment()
    assert (given.kind, given.indexers, given.spec.ioConfig.topic) == ("share_group", 2, "t")
    assert given.consumer_properties == {"bootstrap.servers": "nowhere:1"}
    assert (given.created_at, given.reads_until) == (CREATED_AT, None)


@pytest.mark.parametrize(
    ("kind", "supervisor", "replicas", "hours"),
    [
        (OFFSET_RANGE.kind, "s", "", 2),
        (OFFSET_RANGE.kind, "s", "g", 1),
        (OFFSET_RANGE.kind, "", "", None),
        (Task.Kind.REPLAY, "s", "", None),
    ],
)
def test_a_task_reads_for_its_duration(
    live_server: Any, kind: Any, supervisor: str, replicas: str, hours: int | None
) -> None:
    """Which replicas have in common, and tasks without a supervisor have not."""
    document = {**KAFKA_SPEC, "ioConfig": {**KAFKA_SPEC["ioConfig"], "taskDuration": "PT2H"}}
    task = make_task(kind, document, supervisor_id=supervisor, replica_group=replicas)
    first = CREATED_AT if hours != 1 else CREATED_AT - timedelta(hours=1)
    if replicas:
        other = make_task(kind, document, supervisor_id=supervisor, replica_group=replicas)
        Task.objects.filter(pk=other.pk).update(created_at=first)
    given = HttpControlPlane(live_server.url, task.pk, new_token(task)).assignment()
    until = None if hours is None else CREATED_AT + timedelta(hours=hours)
    assert (given.created_at, given.reads_until) == (first, until)


def test_every_start_takes_a_new_epoch(plane: ControlPlane) -> None:
    assert [begin(plane), begin(plane), begin(plane, 1)] == [1, 2, 1]


def test_a_publish_settles_its_offsets(plane: ControlPlane) -> None:
    epoch = begin(plane)
    plane.publish(0, batch(epoch, (0, 5), (10, 12)))
    asked = SettledRequest(epoch=epoch, topic_id="topic-id", offsets={0: [(3, 11)], 1: [(0, 5)]})
    assert plane.settled(0, asked).settled == {0: [(3, 5), (10, 11)]}


def test_the_same_publish_again_answers_the_same(plane: ControlPlane) -> None:
    request = batch(begin(plane), (0, 5))
    assert plane.publish(0, request) == plane.publish(0, request)


def faulty_batch(epoch: int, start: int, faults: int, kept: int) -> PublishRequest:
    """Ten rows, some of them with a faulty field."""
    plain = batch(epoch, (start, start + 10))
    records = [FaultyRecord(partition=0, offset=start + n, delivery_count=1, error="bad") for n in range(kept)]
    counters = plain.counters.model_copy(update={"processed_with_error": faults})
    return plain.model_copy(update={"counters": counters, "faulty": records})


def test_parse_exceptions_are_summed_up_for_the_task(plane: ControlPlane) -> None:
    first, second = begin(plane), begin(plane, 1)
    assert plane.publish(0, batch(first, (0, 5))).parse_exceptions is None
    answer = plane.publish(0, faulty_batch(first, 10, 4, 2))
    assert answer.parse_exceptions == ParseExceptionTotals(seen=4, saved=2)
    answer = plane.publish(1, faulty_batch(second, 20, 3, 0))
    assert answer.parse_exceptions == ParseExceptionTotals(seen=7, saved=2)
    request = StartRequest(cluster_id="cluster", topic_id="topic-id", host="here", pid=2)
    assert plane.start(0, request).parse_exceptions == ParseExceptionTotals(seen=7, saved=2)


def columns(*told: tuple[str, Any]) -> list[Column]:
    return [Column(name=name, type=kind) for name, kind in told]


def ids(plane: ControlPlane, *asked: Column) -> list[tuple[int, int | None]]:
    return [(one.id, one.element) for one in plane.columns(ColumnsRequest(columns=list(asked))).ids]


def test_a_column_keeps_its_id(plane: ControlPlane) -> None:
    """By name and type, a list's values too; that of the time is 1."""
    n, text, tags, name = columns(("n", "long"), ("n", "string"), ("tags", "strings"), ("n" * 5000, "double"))
    assert ids(plane, n, TIME) == [(2, None), (1, None)]
    assert ids(plane, tags, text) == [(3, 4), (5, None)]
    assert ids(plane, name, text, TIME, tags, n) == [(6, None), (5, None), (1, None), (3, 4), (2, None)]
    assert ids(plane) == []


def test_who_asks_at_once_hears_the_same(plane: ControlPlane) -> None:
    """Six ask for overlapping columns, most of them new; no id is two columns'."""
    wanted = columns(*((f"c{n}", "strings" if n % 3 == 0 else "long") for n in range(60)))
    with ThreadPoolExecutor(6) as pool:
        asked = [wanted[n : n + 40] if n % 2 else wanted[n : n + 40][::-1] for n in (0, 4, 8, 12, 16, 20)]
        answers = list(pool.map(lambda some: plane.columns(ColumnsRequest(columns=some)).ids, asked))
    found: dict[str, set[tuple[int, int | None]]] = {}
    for some, answer in zip(asked, answers, strict=True):
        for column, one in zip(some, answer, strict=True):
            found.setdefault(column.name, set()).add((one.id, one.element))
    assert {len(said) for said in found.values()} == {1}
    numbers = [number for [pair] in found.values() for number in pair if number is not None]
    assert sorted(numbers) == list(range(2, 2 + 60 + 20))


def test_duplicates_are_refused_by_name(plane: ControlPlane) -> None:
    epoch = begin(plane)
    plane.publish(0, batch(epoch, (0, 5)))
    with pytest.raises(PublishRefused) as refused:
        plane.publish(0, batch(epoch, (3, 8)))
    assert refused.value.refusal.code == "duplicates"
    assert refused.value.refusal.duplicates == {0: [(3, 5)]}
    plane.publish(0, batch(epoch, (5, 8), duplicate=[(3, 5)]))


def test_an_old_epoch_is_fenced(plane: ControlPlane) -> None:
    """Row 11 of the security checklist: a token does not revive an indexer that another has followed."""
    old = begin(plane)
    begin(plane)
    with pytest.raises(PublishRefused) as refused:
        plane.publish(0, batch(old, (0, 5)))
    assert refused.value.refusal.code == "fenced"
    with pytest.raises(PublishRefused):
        plane.abandon(0, AbandonRequest(epoch=old, publish_id=uuid.uuid4()))


def test_stored_offsets_move_from_where_they_are(kafka_plane: ControlPlane) -> None:
    plane, epoch = kafka_plane, begin(kafka_plane)
    asked = ClaimRequest(epoch=epoch, topic_id="topic-id", partitions=[0], new_generation=True, new_process=True)
    claimed = plane.claim(0, asked)
    assert claimed.first_run
    assert claimed.partitions == {0: Claimed(next_offset=None, generation=1, attempts=1)}
    begins = ClaimRequest(epoch=epoch, topic_id="topic-id", partitions=[0], first_run=True, starts={0: 3})
    assert plane.claim(0, begins).partitions[0].next_offset == 3
    plane.publish(0, moving(batch(epoch, (3, 8)), generation=1))
    after = plane.claim(0, ClaimRequest(epoch=epoch, topic_id="topic-id", partitions=[0]))
    assert after.partitions == {0: Claimed(next_offset=8, generation=1, attempts=0)}
    assert not after.first_run


@pytest.mark.parametrize(("generation", "code"), [(1, "offsets"), (0, "generation")])
def test_a_publish_of_what_is_stored_already(kafka_plane: ControlPlane, generation: int, code: str) -> None:
    plane, epoch = kafka_plane, begin(kafka_plane)
    asked: dict[str, Any] = {"epoch": epoch, "topic_id": "topic-id", "partitions": [0]}
    plane.claim(0, ClaimRequest(**asked, new_generation=True, first_run=True, starts={0: 0}))
    plane.publish(0, moving(batch(epoch, (0, 5)), generation=1))
    with pytest.raises(PublishRefused) as refused:
        plane.publish(0, moving(batch(epoch, (0, 5)), generation=generation))
    assert (refused.value.refusal.code, refused.value.refusal.stored) == (code, {0: 5})


def moving(request: PublishRequest, generation: int) -> PublishRequest:
    """The publish with the stored offset moved over what it holds."""
    ((start, end),) = request.segments[0].offsets[0]
    return request.model_copy(update={"progress": {0: Advance(start=start, end=end, generation=generation)}})


def test_a_conflict_is_no_refusal(live_server: Any) -> None:
    """A source that is another datasource's: the message arrives whole."""
    Datasource.objects.create(name="another", team=Team.objects.create(name="others"))
    task = make_task()
    other = Task.objects.get(pk=make_task().pk)
    other.datasource = Datasource.objects.get(name="another")
    other.save()
    planes = [HttpControlPlane(live_server.url, t.pk, new_token(t)) for t in (task, other)]
    begin(planes[0])
    with pytest.raises(Invalid, match="already writes to another datasource"):
        begin(planes[1])


def test_abandoning(plane: ControlPlane) -> None:
    epoch = begin(plane)
    committed, not_committed = batch(epoch, (0, 5)), batch(epoch, (5, 9))
    plane.publish(0, committed)
    assert plane.abandon(0, AbandonRequest(epoch=epoch, publish_id=committed.publish_id)).committed is True
    for _ in range(2):
        ask = AbandonRequest(epoch=epoch, publish_id=not_committed.publish_id)
        assert plane.abandon(0, ask).committed is False
    with pytest.raises(PublishRefused) as refused:
        plane.publish(0, not_committed)
    assert refused.value.refusal.code == "abandoned"


def test_a_heartbeat_is_answered_with_the_directive(plane: ControlPlane) -> None:
    epoch = begin(plane)
    status = IndexerStatus(number=0, epoch=epoch, state="reading")
    answer = plane.heartbeat(HeartbeatRequest(indexers=[status], slots=2))
    assert (answer.directive, answer.indexers, answer.store_commits) == ("continue", 2, True)


@pytest.mark.parametrize("counts", [True, False])
def test_a_start_says_how_many_publishes_are_stored_to_those_that_count_them(plane: ControlPlane, counts: bool) -> None:
    """Of all epochs, and of this indexer alone."""
    plane.publish(0, batch(begin(plane), (0, 5)))
    plane.publish(0, batch(begin(plane), (5, 9)))
    begin(plane, 1)
    for number, stored in ((0, 2), (1, 0)):
        ask = StartRequest(cluster_id="cluster", topic_id="topic-id", host="here", pid=1, counts_publishes=counts)
        assert plane.start(number, ask).publishes == (stored if counts else None)


def test_an_epoch_is_newer_than_the_last_one_of_its_process(plane: ControlPlane) -> None:
    """Of which a store that has lost commits may know nothing."""
    ask = StartRequest(cluster_id="cluster", topic_id="topic-id", host="here", pid=1, previous_epoch=7)
    assert plane.start(0, ask).epoch == 8
    assert begin(plane) == 9


def test_who_is_ahead_of_the_store_is_to_start_again(kafka_plane: ControlPlane) -> None:
    epoch = begin(kafka_plane)
    for answered, start_again in ((None, None), (0, None), (1, {0: epoch})):
        status = IndexerStatus(number=0, epoch=epoch, state="reading", answered=answered)
        assert kafka_plane.heartbeat(HeartbeatRequest(indexers=[status], slots=2)).start_again == start_again


def test_a_share_group_is_not_to_start_again(plane: ControlPlane) -> None:
    """Kafka would not deliver what it has acknowledged."""
    status = IndexerStatus(number=0, epoch=begin(plane), state="reading", answered=1)
    assert plane.heartbeat(HeartbeatRequest(indexers=[status], slots=2)).start_again is None


def test_the_end_is_heard(plane: ControlPlane) -> None:
    plane.end(EndRequest())


def test_a_token_is_for_its_task_and_ends_with_it(live_server: Any) -> None:
    """Row 11 of the security checklist: the client of the product meets the same."""
    task, other = make_task(), make_task()
    token = new_token(task)
    with pytest.raises(TaskOver):
        HttpControlPlane(live_server.url, other.pk, token).assignment()
    with pytest.raises(TaskOver):
        HttpControlPlane(live_server.url, task.pk, "wrong").assignment()
    newer = new_token(task)
    with pytest.raises(TaskOver):
        HttpControlPlane(live_server.url, task.pk, token).assignment()
    HttpControlPlane(live_server.url, task.pk, newer).assignment()
    end_task(task)
    with pytest.raises(TaskOver):
        HttpControlPlane(live_server.url, task.pk, newer).assignment()
