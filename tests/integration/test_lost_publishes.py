"""A heartbeat that is ahead of the store: the store has lost publishes that it had answered, and the indexer learns it.

The loss is real: the publish has an answer, and its transaction is rolled back.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.publishing import claims
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.sources.models import Source, SourceEvent
from controlplane.tasks.heartbeats import heartbeat
from controlplane.tasks.lifecycle import new_token
from controlplane.tasks.models import Indexer, Task
from ingestion.specs.messages.protocol import Advance, ClaimRequest, HeartbeatRequest, IndexerStatus, PublishRequest
from ingestion.specs.source_traits import OFFSET_RANGE, STORED_OFFSETS
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.publishes import TASK, make_source, request, send, start

SPEC: dict[str, Any] = {
    "type": "index_kafka",
    "dataSchema": {"dataSource": "flights", "timestampSpec": {"column": "time"}},
    "ioConfig": {
        "type": "kafka",
        "topic": "topic",
        "consumerProperties": {"bootstrap.servers": "nowhere:1"},
        "inputFormat": {"type": "json"},
    },
}


class Lost(Exception):
    """The primary has gone, and the standby lacks this transaction."""


@pytest.fixture
def source(db: None) -> Source:
    make_receipt_partitions()
    return make_source("flights", group="supervisor", kind=STORED_OFFSETS.kind)


@pytest.fixture
def task(source: Source) -> Task:
    return make_task(source.datasource)


def make_task(datasource: Datasource, kind: str = OFFSET_RANGE.kind) -> Task:
    document = parse_task_spec(SPEC).canonical()
    now = timezone.now()
    return Task.objects.create(
        id=TASK, kind=kind, datasource=datasource, spec=document, indexers_wanted=2, created_at=now
    )


def begin(source: Source, number: int = 0) -> int:
    """A new epoch, which reads the partition of its number from offset 0."""
    epoch = start(source, number)
    ask = ClaimRequest(epoch=epoch, topic_id=source.topic_id, partitions=[number], first_run=True, starts={0: 0, 1: 0})
    claims.claim(task_id=TASK, number=number, request=ask, may_reset=False)
    return epoch


def ten(epoch: int, first: int, number: int = 0) -> PublishRequest:
    """Ten records from this offset on, of the partition of the indexer's number."""
    moved = {number: Advance(start=first, end=first + 10)}
    return request(epoch, {number: [(first, first + 10)]}, progress=moved)


def lose(what: PublishRequest) -> None:
    with suppress(Lost), transaction.atomic():
        assert send(what), "it is answered"
        raise Lost


def say(task: Task, *indexers: tuple[int, int, int | None]) -> dict[int, int] | None:
    """A heartbeat of indexers, each by number, epoch and how many publishes it had answered; who is to start again."""
    statuses = [IndexerStatus(number=n, epoch=e, state="reading", answered=answered) for n, e, answered in indexers]
    return heartbeat(task, HeartbeatRequest(indexers=statuses, slots=2)).start_again


def alarms() -> list[str]:
    return list(SourceEvent.objects.filter(kind="offset_reset", alarm=True).values_list("detail", flat=True))


def test_who_is_ahead_is_told_so_until_it_begins_again_and_one_alarm_names_it(source: Source, task: Task) -> None:
    epoch = begin(source)
    send(ten(epoch, 0))
    assert say(task, (0, epoch, 1)) is None
    lose(ten(epoch, 10))
    for _ in range(3):
        assert say(task, (0, epoch, 2)) == {0: epoch}
    [detail] = alarms()
    assert detail.startswith("PostgreSQL has lost publishes that it had answered")
    assert f"Indexer 0 of epoch {epoch} had 2 publishes answered, stored are 1." in detail
    again = begin(source)
    assert say(task, (0, again, 1)) is None
    assert len(alarms()) == 1
    event = SourceEvent.objects.get()
    assert (event.source, event.task_id) == (source, TASK)


def test_a_loss_is_not_hidden_by_publishes_after_it(source: Source, task: Task) -> None:
    """Another partition of the same indexer goes on before its next heartbeat."""
    epoch = begin(source)
    lose(ten(epoch, 0))
    send(request(epoch, {1: [(0, 10)]}, progress={1: Advance(start=0, end=10)}))
    assert say(task, (0, epoch, 2)) == {0: epoch}


def test_a_lost_start_is_a_loss_too(source: Source, task: Task) -> None:
    """The store has an older epoch, which fences the indexer at its next publish: a quiet one would never know."""
    begin(source)
    with suppress(Lost), transaction.atomic():
        newest = begin(source)
        raise Lost
    assert say(task, (0, newest, 0)) == {0: newest}
    assert len(alarms()) == 1


def test_a_store_without_the_indexer_at_all_has_lost_it(source: Source, task: Task) -> None:
    assert say(task, (0, 1, 0)) == {0: 1}
    assert SourceEvent.objects.get().source is None


def test_only_the_indexer_that_is_ahead_begins_again(source: Source, task: Task) -> None:
    epochs = {number: begin(source, number) for number in (0, 1)}
    lose(ten(epochs[0], 0))
    send(ten(epochs[1], 0, number=1), number=1)
    assert say(task, (0, epochs[0], 1), (1, epochs[1], 1)) == {0: epochs[0]}


def test_a_heartbeat_while_a_publish_commits_or_that_comes_late_is_not_ahead(source: Source, task: Task) -> None:
    """The indexer counts after the answer, so the store has what a heartbeat says, and may have more."""
    epoch = begin(source)
    send(ten(epoch, 0))
    send(ten(epoch, 10))
    assert [say(task, (0, epoch, answered)) for answered in (0, 1, 2, 1)] == [None] * 4
    assert alarms() == []


def test_a_publish_that_is_sent_again_counts_once(source: Source, task: Task) -> None:
    """Its first answer got lost on the way."""
    epoch = begin(source)
    what = ten(epoch, 0)
    send(what)
    send(what)
    assert IndexerFence.objects.get().publishes == 1
    assert say(task, (0, epoch, 1)) is None


def test_a_new_process_counts_from_what_is_stored_and_the_old_one_is_not_listened_to(
    source: Source, task: Task
) -> None:
    """The last word of the old process may come late, and be ahead: it ends anyway, since it is fenced."""
    old = begin(source)
    send(ten(old, 0))
    new = begin(source)
    assert say(task, (0, new, 1)) is None
    assert say(task, (0, old, 9)) is None
    send(ten(new, 10))
    assert say(task, (0, new, 2)) is None


def test_offsets_that_a_person_resets_are_no_loss(source: Source, task: Task) -> None:
    epoch = begin(source)
    send(ten(epoch, 0))
    claims.reset_stored_offsets(source, [TASK], {0: 5}, "ann")
    assert say(task, (0, epoch, 1)) is None
    assert alarms() == []


@pytest.mark.parametrize("kind", [k for k in Task.Kind.values if k not in Task.OF_SEGMENTS])
def test_tasks_that_read_what_they_are_given_are_left_alone(source: Source, kind: str) -> None:
    """Backfills, repairs, replays, rewinds, batches: parts that are not visible yet are no publishes in the store."""
    task = make_task(source.datasource, kind)
    assert say(task, (0, 1, 3)) is None
    assert alarms() == []


def test_a_heartbeat_of_the_version_before_is_understood_and_so_is_its_answer(source: Source, task: Task) -> None:
    """It says no count, and refuses fields that it does not know."""
    token = new_token(task)
    client, at = Client(headers={"Authorization": f"Bearer {token}"}), f"/internal/tasks/{TASK}"
    asked = {"cluster_id": "cluster", "topic_id": source.topic_id, "host": "h", "pid": 1, "previous_epoch": 0}
    started = client.post(f"{at}/indexers/0/start", asked, content_type="application/json")
    assert started.json().keys() == {"epoch", "parse_exceptions"}
    status = {"number": 0, "epoch": 1, "state": "reading", "publishes": 4}
    body = json.dumps({"indexers": [status], "slots": 1})
    answer = client.post(f"{at}/heartbeat", body, content_type="application/json")
    assert answer.json().keys() == {"directive", "indexers", "store_commits"}
    assert Indexer.objects.get().state == "reading"
    assert alarms() == []
