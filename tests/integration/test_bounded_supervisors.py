"""Supervisors with a boundedStreamConfig on a real broker: tasks until nothing is left, then none, ever."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.publishing import fence
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key
from controlplane.supervisors import services, topic_checks
from controlplane.supervisors.health_queries import health_of_supervisor
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.offset_reset import reset
from controlplane.supervisors.run import iterate, run, run_all
from controlplane.supervisors.selectors import is_healthy
from controlplane.tasks.heartbeats import end
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Task
from controlplane.teams.models import AuditEntry
from ingestion.specs.messages.protocol import EndRequest
from tests.integration.test_supervisor_iterations import reads, states, submit, tasks_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as, reasons_of, settle
from tests.support.records import numbered

pytestmark = pytest.mark.usefixtures("checked_here")
BOUNDS = {"startSequenceNumbers": {"0": 5}, "endSequenceNumbers": {"0": 25}}
KINDS = ["kafka", "share_group"]


@pytest.fixture
def topic(broker: Broker) -> str:
    topic = broker.topic(partitions=2)
    broker.produce(topic, numbered(0, 40), partition=0)
    return topic


@pytest.fixture(params=KINDS)
def supervisor(cast: Cast, broker: Broker, topic: str, request: pytest.FixtureRequest) -> Supervisor:
    return submit(cast, broker, broker.bootstrap, topic, request.param, boundedStreamConfig=BOUNDS)


def source_of(supervisor: Supervisor, task: Task) -> Source:
    """The source that its indexer would make."""
    return fence.adopt_source(
        datasource=supervisor.datasource,
        **source_key(supervisor.io_config, supervisor.owner),
        topic=supervisor.io_config.topic,
        cluster_id="cluster",
        topic_id=task.ranges[0]["topic_id"],
    )


def ends(task: Task) -> Task:
    end(task, EndRequest())
    task.refresh_from_db()
    return task


def test_it_reads_its_offsets_and_is_completed(supervisor: Supervisor, cast: Cast) -> None:
    iterate()
    [task] = tasks_of(supervisor)
    assert (task.kind, [(r["partition"], r["start"], r["end"]) for r in task.ranges]) == ("bounded", [(0, 5, 25)])
    reads(task)
    key = source_of(supervisor, task).keys.create(partition=0)
    settle(key, (5, 15))
    run_all()
    assert states(supervisor) == ("RUNNING", "RUNNING")
    settle(key, (15, 25))
    assert ends(task).status == "SUCCESS"
    run(supervisor.pk)
    assert states(supervisor) == ("COMPLETED", "COMPLETED")
    assert is_healthy(supervisor)
    assert reasons_of(supervisor) == []
    for _ in range(2):
        iterate()
        run_all()
        run(supervisor.pk)
    assert [t.pk for t in tasks_of(supervisor)] == [task.pk]
    assert states(supervisor) == ("COMPLETED", "COMPLETED")
    assert not topic_checks.due_supervisors().filter(pk=supervisor.pk).exists()


def test_after_a_failure_the_next_task_continues(supervisor: Supervisor, settings: Any) -> None:
    iterate()
    [first] = tasks_of(supervisor)
    reads(first)
    settle(source_of(supervisor, first).keys.create(partition=0), (5, 15))
    end_task(first, error="the application was lost")
    run(supervisor.pk)
    Task.objects.filter(pk=first.pk).update(ended_at=timezone.now() - timedelta(minutes=2))
    run(supervisor.pk)
    second, _ = tasks_of(supervisor)
    assert (second.ranges, second.pk == first.pk) == (first.ranges, False)


def test_a_suspension_ends_its_task_without_a_failure(supervisor: Supervisor, cast: Cast) -> None:
    """And it continues when it is resumed."""
    iterate()
    [task] = tasks_of(supervisor)
    reads(task)
    settle(source_of(supervisor, task).keys.create(partition=0), (5, 15))
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    run(supervisor.pk)
    task.refresh_from_db()
    assert ends(task).status == "SUCCESS"
    run(supervisor.pk)
    assert states(supervisor) == ("SUSPENDED", "SUSPENDED")
    services.resume(user=cast.users["owner"], supervisor=supervisor)
    iterate()
    assert len(tasks_of(supervisor)) == 2


def test_a_completed_one_that_is_resumed_or_submitted_again_stays_so(supervisor: Supervisor, cast: Cast) -> None:
    iterate()
    [task] = tasks_of(supervisor)
    settle(source_of(supervisor, task).keys.create(partition=0), (5, 25))
    ends(task)
    run(supervisor.pk)
    document = supervisor.current.spec
    services.submit_supervisor(user=cast.users["owner"], document=document, team_name="alpha")
    iterate()
    assert states(supervisor) == ("COMPLETED", "COMPLETED")
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    services.resume(user=cast.users["owner"], supervisor=supervisor)
    iterate()
    assert states(supervisor) == ("COMPLETED", "COMPLETED")
    assert len(tasks_of(supervisor)) == 1


def test_its_health_says_how_far_it_is(supervisor: Supervisor, cast: Cast) -> None:
    iterate()
    [task] = tasks_of(supervisor)
    reads(task)
    key = source_of(supervisor, task).keys.create(partition=0)
    settle(key, (5, 10))
    run(supervisor.pk)
    assert _health(supervisor, cast) == ("behind", "5 of its 20 offsets are settled, 25 %.")
    Task.objects.filter(pk=task.pk).update(observation={"lag": 15, "held_back": {"0": [12, 40]}})
    assert _health(supervisor, cast) == (
        "behind",
        "A transaction is open at offset 12 of partition 0. The read continues when it ends.",
    )
    settle(key, (10, 25))
    ends(task)
    run(supervisor.pk)
    assert _health(supervisor, cast) == ("completed", "All of its 20 offsets are settled.")


def _health(supervisor: Supervisor, cast: Cast) -> tuple[str, str]:
    supervisor.refresh_from_db()
    found = health_of_supervisor(cast.users["owner"], supervisor)
    return found.code, found.cause


def test_its_pages_and_addresses_work(supervisor: Supervisor, owner: Client, cast: Cast) -> None:
    iterate()
    for page in ("", "lag/", "spec/"):
        assert browsing_as(cast, "owner").get(f"/supervisors/{supervisor.pk}/{page}").status_code == 200
    status = owner.get(f"/druid/indexer/v1/supervisor/{supervisor.pk}/status").json()["payload"]
    assert (status["state"], status["healthy"]) == ("RUNNING", True)
    spec = owner.get(f"/druid/indexer/v1/supervisor/{supervisor.pk}").json()
    assert spec["ioConfig"]["boundedStreamConfig"]["endSequenceNumbers"] == {"0": 25}
    entry = AuditEntry.objects.filter(target="supervisor", target_id=supervisor.pk, action="create").get()
    assert [r["end"] for r in entry.detail["ranges"]] == [25]


@pytest.mark.parametrize(
    "more",
    [{"replicas": 2}, {"autoScalerConfig": {"enableTaskAutoScaler": True, "taskCountMin": 1, "taskCountMax": 2}}],
)
def test_what_makes_no_sense_beside_bounds_is_refused(cast: Cast, broker: Broker, topic: str, more: Any) -> None:
    with pytest.raises(InvalidInput):
        submit(cast, broker, broker.bootstrap, topic, boundedStreamConfig=BOUNDS, **more)


def test_it_stores_no_start_though_it_reads_from_latest(cast: Cast, broker: Broker, topic: str) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, topic, useEarliestOffset=False, boundedStreamConfig=BOUNDS)
    iterate()
    assert not Source.objects.filter(group=supervisor.owner, keys__next_offset__isnull=False).exists()


@pytest.mark.parametrize("kind", KINDS)
def test_more_indexers_than_partitions_are_not_waited_for(cast: Cast, broker: Broker, topic: str, kind: str) -> None:
    """Its task has as many as there are partitions to read, and goes on."""
    supervisor = submit(cast, broker, broker.bootstrap, topic, kind, boundedStreamConfig=BOUNDS, taskCount=3)
    iterate()
    [task] = tasks_of(supervisor)
    reads(task)
    run(supervisor.pk)
    task.refresh_from_db()
    assert (len(tasks_of(supervisor)), task.goal, task.indexers_wanted) == (1, "continue", 1)


def test_a_reset_makes_a_completed_one_read_again(cast: Cast, broker: Broker, topic: str) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, topic, boundedStreamConfig=BOUNDS)
    iterate()
    [task] = tasks_of(supervisor)
    settle(source_of(supervisor, task).keys.create(partition=0), (5, 25))
    ends(task)
    run(supervisor.pk)
    assert states(supervisor) == ("COMPLETED", "COMPLETED")
    reset(user=cast.users["owner"], supervisor=supervisor)
    run_all()
    assert len(tasks_of(supervisor)) == 2
