"""A supervisor of the type kafka reads with stored offsets: a test makes it over REST, and plays its task."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.utils import timezone

from controlplane.publishing import claims, fence
from controlplane.publishing.models import ProgressKey
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.sources.models import Source
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.run import run
from controlplane.tasks.models import Indexer, Status, Task
from ingestion.specs.messages.protocol import Advance, ClaimAnswer, ClaimRequest
from ingestion.specs.source_traits import STORED_OFFSETS
from tests.support.django_cast import spec_for
from tests.support.publishes import request, send

DRUID = "/druid/indexer/v1/supervisor"
TOPIC_ID = "topic-id-1"
PAGE = "/supervisors/metrics/"


def post(client: Client, path: str, document: object = None) -> Any:
    return client.post(path, document, content_type="application/json")


def kafka_spec(name: str, **io_config: Any) -> dict[str, Any]:
    spec = spec_for(name, **io_config)
    spec["type"] = "kafka"
    del spec["ioConfig"]["groupId"]
    return {**spec, "ioConfig": {"startDelay": "PT0S", **spec["ioConfig"]}}


def begin_reading(owner: Client) -> Supervisor:
    """A supervisor whose task has published offsets 0 to 9 of partition 0, and reads on."""
    make_receipt_partitions()
    assert post(owner, DRUID, kafka_spec("metrics")).status_code == 200
    supervisor = Supervisor.objects.get(pk="metrics")
    run(supervisor.pk)
    task = task_of(supervisor)
    Task.objects.filter(pk=task.pk).update(status=Status.RUNNING, launched_at=timezone.now(), started_at=timezone.now())
    Indexer.objects.create(task=task, number=0, epoch=1, state="reading")
    epoch = begin(task)
    claim(task, epoch, first_run=True, starts={0: 0, 1: 0})
    send(request(epoch, {0: [(0, 10)]}, progress={0: Advance(start=0, end=10)}), task=task.pk)
    return supervisor


def task_of(supervisor: Supervisor) -> Task:
    found = Task.objects.active().filter(supervisor_id=supervisor.pk).first()
    assert found is not None
    return found


def source_of(supervisor: Supervisor) -> Source:
    return Source.objects.get(group=supervisor.pk, kind=STORED_OFFSETS.kind)


def begin(task: Task) -> int:
    source = fence.adopt_source(
        datasource=task.datasource,
        kind=STORED_OFFSETS.kind,
        group=task.supervisor_id,
        topic="metrics-topic",
        cluster_id="cluster",
        topic_id=TOPIC_ID,
    )
    return fence.take_epoch(task_id=task.pk, number=0, datasource=task.datasource, source=source).epoch


def claim(task: Task, epoch: int, **asked: Any) -> ClaimAnswer:
    message = ClaimRequest(epoch=epoch, topic_id=TOPIC_ID, partitions=[0, 1], **asked)
    return claims.claim(task_id=task.pk, number=0, request=message, may_reset=False)


def stored(supervisor: Supervisor) -> dict[int, int | None]:
    keys = ProgressKey.objects.filter(source=source_of(supervisor))
    return dict(keys.values_list("partition", "next_offset"))
