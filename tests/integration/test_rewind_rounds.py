"""Rewinds asked for over REST, with a real broker: what is planned and refused, and how their parts are read."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from django.test import Client
from django.utils import timezone

from controlplane.connections.kafka import topic_offsets
from controlplane.publishing import fence
from controlplane.publishing.models import Rewind, RewindPart
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.replace import ReplaceTarget, replace
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import HeldFile, Segment
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.rewind_rounds import run_rewinds
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Task
from controlplane.teams.models import AuditEntry
from ingestion.specs.messages.compaction import ReplaceRequest
from ingestion.specs.messages.protocol import Advance, Outcomes
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord
from tests.integration.test_supervisor_iterations import submit
from tests.integration.test_supervisor_services import side_by_side
from tests.support.broker import Broker
from tests.support.django_cast import Cast
from tests.support.publishes import DAY, request, segment, send
from tests.support.records import numbered
from tests.support.stored_offsets import post

pytestmark = pytest.mark.usefixtures("checked_here")


@pytest.fixture
def topic(broker: Broker) -> str:
    topic = broker.topic(partitions=1)
    broker.produce(topic, numbered(0, 40), partition=0)
    return topic


@pytest.fixture
def supervisor(cast: Cast, broker: Broker, topic: str) -> Supervisor:
    """Its first version has stored the offsets 0 to 19, and its second one 20 to 29; 30 and 31 are in quarantine."""
    make_receipt_partitions()
    supervisor = submit(cast, broker, broker.bootstrap, topic)
    stores(supervisor, "first", 1, (0, 10))
    stores(supervisor, "first", 1, (10, 20))
    stores(supervisor, "second", 2, (20, 30), bad=(30, 32))
    return supervisor


def source_of(supervisor: Supervisor) -> Source:
    found = topic_offsets(supervisor.io_config.consumerProperties, supervisor.io_config.topic)
    assert found is not None
    return fence.adopt_source(
        datasource=supervisor.datasource,
        **source_key(supervisor.io_config, supervisor.owner),
        topic=supervisor.io_config.topic,
        cluster_id=found.cluster_id,
        topic_id=found.topic_id,
    )


def stores(
    supervisor: Supervisor, name: str, version: int, rows: tuple[int, int], bad: tuple[int, int] | None = None
) -> None:
    """A task of this spec version publishes these offsets."""
    source = source_of(supervisor)
    task, _ = Task.objects.get_or_create(
        pk=f"{supervisor.pk}-{name}",
        defaults={
            "kind": "kafka",
            "datasource": supervisor.datasource,
            "supervisor_id": supervisor.pk,
            "spec_version": version,
            "spec": supervisor.current.spec,
            "created_at": timezone.now(),
            "status": "SUCCESS",
        },
    )
    epoch = fence.take_epoch(task_id=task.pk, datasource=source.datasource, source=source).epoch
    source.keys.filter(partition=0).update(next_offset=rows[0])
    low, high = rows
    records = [
        WireRecord(partition=0, offset=n, delivery_count=1, reason="unparseable", error="no", payload=b"e30=")
        for n in range(*(bad or (0, 0)))
    ]
    outcomes = {0: Outcomes(unparseable=[bad])} if bad else {}
    progress = {0: Advance(start=low, end=bad[1] if bad else high)}
    if not source.keys.exists():
        source.keys.create(partition=0, next_offset=low)
    what = request(epoch, {0: [rows]}, outcomes, quarantined=records, progress=progress, topic_id=source.topic_id)
    send(what, task=task.pk)


def asks(client: Client, supervisor: Supervisor, where: str = "", **body: Any) -> Any:
    return post(client, f"/api/v1/supervisors/{supervisor.pk}/rewinds/{where}", body)


def reads_part(task_id: str, outcomes: dict[int, Outcomes] | None = None) -> None:
    """Its task publishes all of the part: rows, but for ``outcomes``."""
    task = Task.objects.get(pk=task_id)
    part = RewindPart.objects.get(task_id=task_id)
    source = part.rewind.source
    epoch = fence.take_epoch(task_id=task.pk, datasource=source.datasource, source=source, rewinds=True).epoch
    send(request(epoch, None if outcomes else dict(part.wanted), outcomes, topic_id=source.topic_id), task=task.pk)
    end_task(task)


def rows_in_use(supervisor: Supervisor) -> int:
    return sum(Segment.objects.filter(datasource=supervisor.datasource, used=True).values_list("rows", flat=True))


def test_a_preview_changes_nothing(supervisor: Supervisor, owner: Client) -> None:
    plan = asks(owner, supervisor, spec_version=1, preview=True).json()
    assert (plan["rewind"], plan["records"], plan["refused"], plan["read_with"]) == (None, 20, [], 1)
    assert [(p["segments"], p["rows"], p["records"]) for p in plan["parts"]] == [(2, 20, 20)]
    assert not Rewind.objects.exists()


def test_a_version_is_read_again_part_by_part_and_undone(supervisor: Supervisor, owner: Client) -> None:
    answer = asks(owner, supervisor, spec_version=2)
    assert answer.status_code == 200, answer.json()
    assert [(p["rows"], p["records"]) for p in answer.json()["parts"]] == [(10, 10), (0, 2)]
    [first] = run_rewinds()
    assert run_rewinds() == []  # it is at work
    task = Task.objects.get(pk=first)
    assert (task.kind, task.supervisor_id, [(r["start"], r["end"]) for r in task.ranges]) == (
        "rewind",
        supervisor.pk,
        [(20, 30)],
    )
    reads_part(first, {0: Outcomes(thrown_away=[(20, 30)])})
    assert rows_in_use(supervisor) == 20
    [second] = run_rewinds()
    assert set(
        QuarantinedRecord.objects.filter(datasource=supervisor.datasource).values_list("replay_id", flat=True)
    ) == {second}
    reads_part(second)
    assert (rows_in_use(supervisor), run_rewinds()) == (22, [])
    [shown] = owner.get(f"/api/v1/supervisors/{supervisor.pk}/rewinds/").json()["rewinds"]
    assert [p["state"] for p in shown["parts"]] == ["done", "done"]
    assert shown["choice"] == {"spec_version": 2}
    assert asks(owner, supervisor, "undo/", rewind=shown["rewind"]).status_code == 200
    assert rows_in_use(supervisor) == 30
    assert QuarantinedRecord.objects.filter(datasource=supervisor.datasource, state="kept").count() == 2
    actions = AuditEntry.objects.filter(target_id=supervisor.pk).values_list("action", flat=True)
    assert {"rewind", "undo_rewind"} <= set(actions)


def test_one_rewind_of_a_source_at_a_time(supervisor: Supervisor, owner: Client) -> None:
    begun = asks(owner, supervisor, spec_version=1).json()["rewind"]
    assert asks(owner, supervisor, spec_version=2).status_code == 409
    [task] = run_rewinds()
    assert asks(owner, supervisor, "cancel/", rewind=begun).status_code == 200
    assert Task.objects.get(pk=task).ended
    assert asks(owner, supervisor, "cancel/", rewind=begun).status_code == 409
    assert asks(owner, supervisor, "undo/", rewind=begun).status_code == 409
    assert asks(owner, supervisor, spec_version=2).status_code == 200


def test_a_task_that_fails_is_followed_by_others_and_then_given_up(supervisor: Supervisor, owner: Client) -> None:
    asks(owner, supervisor, spec_version=1)
    for _ in range(3):
        [task] = run_rewinds()
        end_task(Task.objects.get(pk=task), error="The registry refuses.")
    assert run_rewinds() == []
    part = RewindPart.objects.get()
    assert (part.state, part.reason, rows_in_use(supervisor)) == ("failed", "The registry refuses.", 30)


def test_a_task_that_dies_between_pieces_is_followed_by_one_that_reads_the_rest(
    supervisor: Supervisor, owner: Client
) -> None:
    asks(owner, supervisor, spec_version=1)
    source = source_of(supervisor)
    for low in (0, 4, 8):
        [task] = run_rewinds()
        epoch = fence.take_epoch(task_id=task, datasource=source.datasource, source=source, rewinds=True).epoch
        send(request(epoch, {0: [(low, low + 4)]}, topic_id=source.topic_id), task=task)
        end_task(Task.objects.get(pk=task), error="Killed.")
        assert rows_in_use(supervisor) == 30
    assert RewindPart.objects.get().attempts == 1  # each has gone on
    [task] = run_rewinds()
    assert [(r["start"], r["end"]) for r in Task.objects.get(pk=task).ranges] == [(12, 20)]
    epoch = fence.take_epoch(task_id=task, datasource=source.datasource, source=source, rewinds=True).epoch
    send(request(epoch, {0: [(12, 20)]}, topic_id=source.topic_id), task=task)
    assert (RewindPart.objects.get().state, rows_in_use(supervisor)) == ("done", 30)
    assert RewindPart.objects.get().rows_after == 20


def next_task() -> str:
    """The only one that is started now."""
    [task] = run_rewinds()
    return task


def reads(task_id: str, source: Source, outcomes: dict[int, Outcomes] | None = None) -> Task:
    """The task publishes all that it is to read: rows, but for ``outcomes``."""
    task = Task.objects.get(pk=task_id)
    epoch = fence.take_epoch(task_id=task.pk, datasource=source.datasource, source=source, rewinds=True).epoch
    ranges: dict[int, list[tuple[int, int]]] = {}
    for r in task.ranges:
        ranges.setdefault(r["partition"], []).append((r["start"], r["end"]))
    send(request(epoch, None if outcomes else ranges, outcomes, topic_id=source.topic_id), task=task.pk)
    end_task(task)
    return task


def merged(supervisor: Supervisor) -> None:
    """All segments become one."""
    old = list(Segment.objects.filter(datasource=supervisor.datasource, used=True))
    file = segment({0: [(0, sum(s.rows for s in old))]})
    path = f"{supervisor.datasource.name}/{file.path.rpartition('/')[2]}"
    file = file.model_copy(update={"offsets": {}, "path": path})
    what = ReplaceRequest(replace_id=uuid.uuid4(), attempt=1, read={s.pk: s.rows for s in old}, segments=[file])
    replace(ReplaceTarget(supervisor.datasource, DAY, DAY + timedelta(days=1), "compact_1", False), what)


def test_others_are_read_with_the_version_that_had_stored_them(supervisor: Supervisor, owner: Client) -> None:
    current = supervisor.current
    for number in (2, 3):
        SpecVersion.objects.create(supervisor=supervisor, version=number, spec=current.spec, secrets=current.secrets)
    merged(supervisor)
    plan = asks(owner, supervisor, spec_version=2, read_with=3, others="own").json()
    assert [(p["segments"], p["records"], p["others"]) for p in plan["parts"]] == [(1, 30, 20), (0, 2, 0)]
    source = source_of(supervisor)
    [first] = run_rewinds()
    end_task(Task.objects.get(pk=first), error="Killed.")
    [first] = run_rewinds()
    chosen = reads(first, source, {0: Outcomes(thrown_away=[(20, 30)])})
    assert (chosen.spec_version, [(r["start"], r["end"]) for r in chosen.ranges]) == (3, [(20, 30)])
    assert rows_in_use(supervisor) == 30
    [second] = run_rewinds()
    others = reads(second, source)
    assert (others.spec_version, [(r["start"], r["end"]) for r in others.ranges]) == (1, [(0, 20)])
    assert rows_in_use(supervisor) == 20
    part = RewindPart.objects.get(number=0)
    assert (part.state, part.rows_before, part.rows_after, part.records) == ("done", 30, 20, 30)
    again = asks(owner, supervisor, spec_version=1, preview=True).json()
    assert [p["records"] for p in again["parts"]] == [20]
    reads_part(next_task())
    shown = owner.get(f"/api/v1/supervisors/{supervisor.pk}/rewinds/").json()["rewinds"][0]
    assert shown["choice"] == {"spec_version": 2, "others": "own"}
    assert asks(owner, supervisor, "undo/", rewind=shown["rewind"]).status_code == 200
    assert rows_in_use(supervisor) == 30


def test_others_whose_version_is_unknown_are_refused(supervisor: Supervisor, owner: Client) -> None:
    merged(supervisor)
    Task.objects.filter(spec_version=1).delete()
    answer = asks(owner, supervisor, spec_version=2, others="own")
    assert answer.status_code == 409 and "no longer known which spec version" in answer.json()["detail"]
    times = {"rows_from": "2025-06-01T00:00:00Z", "rows_until": "2025-06-02T00:00:00Z"}
    assert asks(owner, supervisor, **times, others="own").status_code == 400
    assert asks(owner, supervisor, spec_version=2, others="mine").status_code == 400


def test_a_merge_between_readings_is_planned_again_with_own_versions(supervisor: Supervisor, owner: Client) -> None:
    current = supervisor.current
    for number in (2, 3):
        SpecVersion.objects.create(supervisor=supervisor, version=number, spec=current.spec, secrets=current.secrets)
    asks(owner, supervisor, spec_version=2, read_with=3, others="own")
    source = source_of(supervisor)
    [first] = run_rewinds()
    end_task(Task.objects.get(pk=first), error="Killed.")
    merged(supervisor)
    reads(next_task(), source)
    assert [reading["version"] for reading in RewindPart.objects.get(number=0).readings] == [None, 1]
    others = reads(next_task(), source)
    assert (others.spec_version, [(r["start"], r["end"]) for r in others.ranges]) == (1, [(0, 20)])
    assert (RewindPart.objects.get(number=0).state, rows_in_use(supervisor)) == ("done", 30)


def test_records_of_an_earlier_topic_are_read_from_it(supervisor: Supervisor, owner: Client, broker: Broker) -> None:
    earlier = broker.topic(partitions=1)
    broker.produce(earlier, numbered(0, 10), partition=0)
    found = topic_offsets(supervisor.io_config.consumerProperties, earlier)
    assert found is not None
    key = source_key(supervisor.io_config, supervisor.owner)
    other = fence.adopt_source(
        datasource=supervisor.datasource, **key, topic=earlier, cluster_id=found.cluster_id, topic_id=found.topic_id
    )
    begins = fence.take_epoch(task_id="before", datasource=supervisor.datasource, source=other).epoch
    other.keys.create(partition=0, next_offset=0)
    progress = {0: Advance(start=0, end=8)}
    send(request(begins, {0: [(0, 8)]}, progress=progress, topic_id=other.topic_id), task="before")
    merged(supervisor)
    plan = asks(owner, supervisor, spec_version=1).json()
    assert [(p["records"], p["others"]) for p in plan["parts"]] == [(38, 8)]
    own = reads(next_task(), source_of(supervisor))
    assert (own.io_config.topic, rows_in_use(supervisor)) == (supervisor.io_config.topic, 38)
    of_other = reads(next_task(), other, {0: Outcomes(thrown_away=[(0, 8)])})
    assert (of_other.io_config.topic, of_other.ranges[0]["topic_id"]) == (earlier, other.topic_id)
    assert rows_in_use(supervisor) == 30
    assert asks(owner, supervisor, "undo/", rewind=plan["rewind"]).status_code == 200
    assert rows_in_use(supervisor) == 38
    Source.objects.filter(pk=other.pk).update(current=False)
    refused = asks(owner, supervisor, spec_version=1)
    assert refused.status_code == 409 and "deleted and created again" in refused.json()["detail"]


def test_pieces_of_a_part_that_has_failed_or_was_cancelled_go(supervisor: Supervisor, owner: Client) -> None:
    begun = asks(owner, supervisor, spec_version=1).json()["rewind"]
    source = source_of(supervisor)
    [task] = run_rewinds()
    epoch = fence.take_epoch(task_id=task, datasource=source.datasource, source=source, rewinds=True).epoch
    send(request(epoch, {0: [(0, 4)]}, topic_id=source.topic_id), task=task)
    run_rewinds()
    assert RewindPart.objects.get().pieces.count() == 1
    asks(owner, supervisor, "cancel/", rewind=begun)
    run_rewinds()
    assert not RewindPart.objects.get().pieces.exists()
    assert not HeldFile.objects.exists()
    assert rows_in_use(supervisor) == 30


def test_what_kafka_has_no_more_is_refused_before_it_begins(
    supervisor: Supervisor, owner: Client, broker: Broker, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 5)]).values():
        future.result(30)
    refused = asks(owner, supervisor, spec_version=1)
    assert refused.status_code == 409
    assert "Kafka no longer has offsets 0 to 4 of partition 0: the log begins at 5." in refused.json()["detail"]
    plan = asks(owner, supervisor, spec_version=1, only_possible=True).json()
    assert [(p["segments"], p["records"]) for p in plan["parts"]] == [(1, 10)]
    assert [(g["rows"], len(g["segments"])) for g in plan["refused"]] == [(10, 1)]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"spec_version": 1, "read_with": 9}, 400),
        ({"published_from": "2025-06-02T00:00:00Z"}, 400),
        ({"start_offsets": {"0": 5}, "end_offsets": {"0": 5}}, 400),
        ({"rows_from": "2025-06-01T00:00:00Z", "rows_until": "2025-06-02T00:00:00Z", "spec_version": 1}, 400),
        ({"spec_version": 7}, 409),
        ({"start_offsets": {"5": 0}, "end_offsets": {"5": 9}}, 409),
    ],
)
def test_odd_requests_are_refused(supervisor: Supervisor, owner: Client, body: dict[str, Any], status: int) -> None:
    answer = asks(owner, supervisor, **body)
    assert answer.status_code == status, answer.json()
    assert not Rewind.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_beats_start_one_part(supervisor: Supervisor, owner: Client) -> None:
    """The schedule of each beat starts a round: the second one must not take the next part of the same rewind."""
    assert len(asks(owner, supervisor, spec_version=2).json()["parts"]) == 2
    assert len([task for tasks in side_by_side(run_rewinds) for task in tasks]) == 1
