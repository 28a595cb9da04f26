"""Readers with stored offsets that are to begin at the latest ones: at those of when they were asked for."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import pytest

from controlplane.publishing import claims, fence
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key
from controlplane.supervisors.run import iterate
from controlplane.tasks import launcher
from controlplane.tasks.models import Task
from controlplane.tasks.services import submit_task
from ingestion.sources.stored_offsets import StoredOffsets
from ingestion.sources.topic import TopicWatch
from ingestion.specs.messages.protocol import ClaimAnswer, ClaimRequest
from tests.integration.test_supervisor_iterations import submit, tasks_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast
from tests.support.formats import HERE


def stored(topic: str) -> dict[int, int | None]:
    """What the store has, by partition."""
    return dict(Source.objects.get(topic=topic).keys.values_list("partition", "next_offset"))


def claimed_by_an_indexer(task: Task, broker: Broker, topic: str, since_ms: int | None = None) -> None:
    """An indexer of the task finds the topic before the supervisor does."""
    watch = TopicWatch({"bootstrap.servers": broker.bootstrap}, topic, HERE)
    found = watch.identity()
    assert found is not None
    identity = found
    source = fence.adopt_source(
        datasource=task.datasource,
        **source_key(task.io_config, task.supervisor_id),
        topic=topic,
        cluster_id=found.cluster_id,
        topic_id=found.topic_id,
    )
    epoch = fence.take_epoch(task_id=task.pk, number=0, datasource=task.datasource, source=source).epoch

    class Claim:
        topic_id = identity.topic_id

        def __call__(self, partitions: Iterable[int], **asked: Any) -> ClaimAnswer:
            request = ClaimRequest(epoch=epoch, topic_id=self.topic_id, partitions=sorted(partitions), **asked)
            return claims.claim(
                task_id=task.pk, number=0, request=request, may_reset=False, topic_missed=task.topic_missed
            )

    stored = StoredOffsets(topic, watch, Claim(), use_earliest=False, may_reset=False, since_ms=since_ms)
    stored.starts([0, 1], new_process=True)


@pytest.mark.parametrize("its_task_comes_first", [True, False])
def test_a_topic_that_comes_later_is_read_whole(cast: Cast, broker: Broker, its_task_comes_first: bool) -> None:
    """Whatever is in it came after its reader."""
    topic = f"topic-{uuid.uuid4().hex[:8]}"
    supervisor = submit(cast, broker, broker.bootstrap, topic, useEarliestOffset=False)
    iterate()
    broker.make_topic(topic, partitions=2)
    broker.produce(topic, [b"{}"] * 5, partition=0)
    [task] = tasks_of(supervisor)
    if its_task_comes_first:
        claimed_by_an_indexer(task, broker, topic)
    iterate()
    assert stored(topic) == {0: 0, 1: 0}


@pytest.mark.parametrize("there", [True, False])
def test_a_task_by_hand_begins_where_it_was_submitted(
    cast: Cast, broker: Broker, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """Not where its application finds the end later; of a topic that comes later all is read."""
    monkeypatch.setattr(launcher, "_claimed", lambda task_id: None)  # there is no room for it yet
    topic = broker.topic(partitions=2) if there else f"topic-{uuid.uuid4().hex[:8]}"
    if there:
        broker.produce(topic, [b"{}"] * 5, partition=0)
    document = {**broker.kafka_spec(topic, useEarliestOffset=False), "type": "index_kafka"}
    task = submit_task(user=cast.users["owner"], document=document, team_name="alpha")
    launcher.launch(task.pk)
    if not there:
        broker.make_topic(topic, partitions=2)
    broker.produce(topic, [b"{}"] * 4, partition=0)
    broker.produce(topic, [b"{}"] * 3, partition=1)
    launcher.launch(task.pk)
    assert stored(topic) == ({0: 5, 1: 0} if there else {0: 0, 1: 0})
