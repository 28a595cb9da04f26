"""The iterations of the run loop: Kafka is asked, or is not there; what comes of it is a state, an error, an event."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from controlplane.config.celery import app
from controlplane.publishing.models import IndexerFence
from controlplane.sources.models import Source, SourceEvent
from controlplane.supervisors import services, topic_checks
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.offset_reset import hand_off
from controlplane.supervisors.run import iterate, run, run_all
from controlplane.tasks import launcher
from controlplane.tasks.lifecycle import end_task, new_token
from controlplane.tasks.models import Goal, Status, Task
from ingestion.sources.topic import TopicIdentity, TopicWatch
from ingestion.specs.messages.protocol import EndRequest
from tests.support.broker import Broker
from tests.support.django_cast import Cast, reasons_of
from tests.support.formats import HERE
from tests.support.forwarder import Forwarder
from tests.support.waiting import wait_for

DRUID = "/druid/indexer/v1/supervisor"
KINDS = ["kafka", "share_group"]


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def submit(cast: Cast, broker: Broker, bootstrap: str, name: str, kind: str = "kafka", **io_config: Any) -> Supervisor:
    """A supervisor that is due for an iteration whenever it is asked."""
    spec_of = broker.kafka_spec if kind == "kafka" else broker.spec
    spec = spec_of(name, **{"startDelay": "PT0S", "period": "PT0.000001S", **io_config})
    spec["ioConfig"]["consumerProperties"] = {"bootstrap.servers": bootstrap}
    return services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")


def states(supervisor: Supervisor) -> tuple[str, str]:
    supervisor.refresh_from_db()
    return supervisor.state, supervisor.detailed_state


def tasks_of(supervisor: Supervisor) -> list[Task]:
    return list(Task.objects.filter(supervisor_id=supervisor.pk))


def reads(task: Task) -> None:
    """What its heartbeats would say."""
    Task.objects.filter(pk=task.pk).update(status=Status.RUNNING, launched_at=timezone.now())
    task.indexers.create(number=0, state="reading")


def began_to_read(task: Task, at: datetime) -> IndexerFence:
    """What its first indexer's start would say."""
    return IndexerFence.objects.create(task_id=task.pk, datasource=task.datasource, number=0, epoch=1, started_at=at)


def test_nothing_starts_before_kafka_has_answered(cast: Cast, broker: Broker) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, broker.topic(partitions=2))
    run_all()
    assert (states(supervisor), tasks_of(supervisor)) == (("PENDING", "PENDING"), [])
    [question] = topic_checks.claim_questions(topic_checks.due_supervisors().filter(pk=supervisor.pk))
    assert states(supervisor) == ("RUNNING", "CONNECTING_TO_STREAM")
    assert reasons_of(supervisor)[0].code == "starting"
    run(supervisor.pk, *topic_checks.answers([question]))
    assert states(supervisor) == ("RUNNING", "CREATING_TASKS")
    [task] = tasks_of(supervisor)
    assert supervisor.partitions == 2
    reads(task)
    run_all()
    assert states(supervisor) == ("RUNNING", "RUNNING")


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_task_waits_for_the_start_delay(cast: Cast, broker: Broker, kind: str) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, broker.topic(partitions=3), kind, startDelay="PT1H")
    iterate()
    run_all()
    assert (states(supervisor), tasks_of(supervisor)) == (("PENDING", "PENDING"), [])
    assert supervisor.next_start_at == supervisor.created_at + timedelta(hours=1)
    assert supervisor.partitions == 3, "Kafka is asked meanwhile"
    Supervisor.objects.filter(pk=supervisor.pk).update(created_at=supervisor.created_at - timedelta(hours=1))
    run_all()
    assert len(tasks_of(supervisor)) == 1


@pytest.mark.parametrize("assignment", ["offset_range", "consumer_group"])
def test_reading_from_latest_begins_where_kafka_was_first_reached(
    cast: Cast, clients: dict[str, Client], broker: Broker, assignment: str
) -> None:
    """Not where the first indexer finds the end, a start delay and an application's start later."""
    topic = broker.topic(partitions=2)
    broker.produce(topic, [b"{}"] * 5, partition=0)
    latest: dict[str, Any] = {"useEarliestOffset": False, "startDelay": "PT1H", "assignment": assignment}
    supervisor = submit(cast, broker, broker.bootstrap, topic, **latest)
    iterate()
    broker.produce(topic, [b"{}"] * 4, partition=0)
    broker.produce(topic, [b"{}"] * 3, partition=1)
    iterate()
    supervisor.begin()  # as a new spec or a resume does
    supervisor.save()
    iterate()
    source = Source.objects.get(group=supervisor.pk, topic=topic)
    assert dict(source.keys.values_list("partition", "next_offset")) == {0: 5, 1: 0}
    identity = TopicWatch({"bootstrap.servers": broker.bootstrap}, topic, HERE).identity()
    assert identity == TopicIdentity(source.cluster_id, source.topic_id), "its indexers find the same source"

    def explained(offset: int) -> str:
        asked = {"topic": topic, "partition": "0", "offset": str(offset)}
        return str(clients["viewer"].get("/api/v1/records", asked).json()["fates"][0]["explanation"])

    assert "Before its reader's start: reading of this partition began at offset 5." in explained(4)
    assert "Not settled yet" in explained(5)


def test_from_earliest_and_of_a_share_group_nothing_is_stored_before_there_is_a_reader(
    cast: Cast, broker: Broker
) -> None:
    for kind, earliest in (("kafka", True), ("share_group", False)):
        submit(cast, broker, broker.bootstrap, broker.topic(), kind, useEarliestOffset=earliest)
    iterate()
    assert not Source.objects.filter(topic__startswith="topic-").exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("why", ["taskDuration", "handoff"])
def test_tasks_take_turns(cast: Cast, broker: Broker, kind: str, why: str) -> None:
    """The next one is up before the last one is told to finish."""
    duration = {"taskDuration": "PT1H"} if why == "taskDuration" else {}
    supervisor = submit(cast, broker, broker.bootstrap, broker.topic(), kind, **duration)
    iterate()
    [first] = tasks_of(supervisor)
    reads(first)
    began = began_to_read(first, timezone.now() - timedelta(minutes=59))
    run(supervisor.pk)
    assert tasks_of(supervisor) == [first]
    if why == "handoff":
        hand_off(user=cast.users["operator"], supervisor=supervisor)
    else:
        IndexerFence.objects.filter(pk=began.pk).update(started_at=timezone.now() - timedelta(minutes=61))
    run(supervisor.pk)
    second, first = tasks_of(supervisor)
    assert (second.goal, first.goal) == (Goal.RUN, Goal.RUN)
    reads(second)
    began_to_read(second, timezone.now())
    run(supervisor.pk)
    assert [t.goal for t in tasks_of(supervisor)] == [Goal.RUN, Goal.FINISH]


def test_a_share_groups_task_reads_on_unless_told_otherwise(cast: Cast, broker: Broker) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, broker.topic(), "share_group")
    iterate()
    [task] = tasks_of(supervisor)
    reads(task)
    began_to_read(task, timezone.now() - timedelta(days=1000))
    run(supervisor.pk)
    assert tasks_of(supervisor) == [task]


def test_a_question_is_asked_once(cast: Cast, broker: Broker) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, broker.topic(), period="PT1H")
    seen_by_two = [topic_checks.due_supervisors().filter(pk=supervisor.pk) for _ in range(2)]
    assert [len(found) for found in seen_by_two] == [1, 1]
    assert [len(topic_checks.claim_questions(found)) for found in seen_by_two] == [1, 0]
    assert not topic_checks.due_supervisors().filter(pk=supervisor.pk).exists(), "its period begins anew"


def test_replicas_start_together_and_are_replaced(cast: Cast, broker: Broker) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, broker.topic(), replicas=2)
    iterate()
    first, second = tasks_of(supervisor)
    assert first.replica_group == second.replica_group != ""
    reads(second)
    end_task(first, error="killed for the test")
    wait_for("another one", lambda: run(supervisor.pk) and len(tasks_of(supervisor)) == 3, 30)
    assert {t.replica_group for t in tasks_of(supervisor)} == {first.replica_group}
    assert states(supervisor) == ("RUNNING", "RUNNING")


def test_partitions_that_are_added_are_an_event_and_no_alarm(cast: Cast, broker: Broker) -> None:
    topic = broker.topic(partitions=2)
    supervisor = submit(cast, broker, broker.bootstrap, topic)
    iterate()
    broker.admin.create_partitions([NewPartitions(topic, 5)])[topic].result(30)

    def noticed() -> bool:
        iterate()
        supervisor.refresh_from_db()
        return supervisor.partitions == 5

    wait_for("it notices", noticed, 30)
    iterate()
    event = SourceEvent.objects.get(datasource=supervisor.datasource, kind="partitions_added")
    assert "has 5 partitions; it had 2" in event.detail
    assert not event.alarm


def test_a_topic_that_is_missing_makes_it_unhealthy_until_it_is_there(cast: Cast, broker: Broker) -> None:
    name = f"missing-{uuid.uuid4().hex[:8]}"
    supervisor = submit(cast, broker, broker.bootstrap, name)
    for _ in range(3):
        iterate()
    assert states(supervisor) == ("UNHEALTHY_SUPERVISOR", "LOST_CONTACT_WITH_STREAM")
    assert name in str(supervisor.recent_errors[0]["message"])
    Task.objects.update(status=Status.RUNNING, observation={"topic_exists": False})
    assert [reason.code for reason in reasons_of(supervisor)] == ["topic_missing"]
    broker.make_topic(name)

    def well() -> bool:
        iterate()
        return states(supervisor)[0] == "RUNNING"

    wait_for("it is well again", well, 30)


def test_what_a_running_task_sees_of_partitions_needs_no_iteration(cast: Cast, broker: Broker) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, broker.topic(partitions=2))
    iterate()
    assert len(tasks_of(supervisor)) == 1
    for partitions in (3, 2):  # the second is what was seen before
        Task.objects.update(status=Status.RUNNING, observation={"topic_exists": True, "partitions": partitions})
        run(supervisor.pk)
    assert Supervisor.objects.get(pk=supervisor.pk).partitions == 3
    assert SourceEvent.objects.filter(kind="partitions_added").count() == 1


def test_kafka_is_not_there_and_never_was(
    cast: Cast, broker: Broker, nowhere: str, settings: Settings, client: Client
) -> None:
    """No task is started for it; the errors are shown as Druid shows them; and another supervisor does not wait."""
    settings.SUPERVISOR_UNHEALTHINESS_THRESHOLD = settings.SUPERVISOR_MAX_STORED_EXCEPTION_EVENTS = 2
    lost, well = (submit(cast, broker, where, broker.topic()) for where in (nowhere, broker.bootstrap))
    due = topic_checks.due_supervisors().filter(pk__in=[lost.pk, well.pk])
    looks = list(topic_checks.answers(topic_checks.claim_questions(due)))
    assert [look.supervisor_id for look in looks] == [well.pk, lost.pk]
    for look in looks:
        run(look.supervisor_id, look)
    assert states(lost) == ("RUNNING", "CONNECTING_TO_STREAM")
    assert states(well)[0] == "RUNNING" and tasks_of(well)
    iterate()
    assert states(lost) == ("UNHEALTHY_SUPERVISOR", "UNABLE_TO_CONNECT_TO_STREAM")
    assert tasks_of(lost) == []
    assert reasons_of(lost)[0].code == "kafka_unreachable"
    run(lost.pk, looks[1])  # once more
    lost.refresh_from_db()
    assert (lost.failed_runs, len(lost.run_errors), len(lost.recent_errors)) == (3, 2, 2)
    client.force_login(cast.users["viewer"])
    payload = client.get(f"{DRUID}/{lost.pk}/status").json()["payload"]
    assert (payload["healthy"], payload["detailedState"]) == (False, "UNABLE_TO_CONNECT_TO_STREAM")
    assert len(payload["recentErrors"]) == 2
    for event in payload["recentErrors"]:
        assert event.keys() == {"timestamp", "exceptionClass", "message", "streamException"}
        assert (event["exceptionClass"], event["streamException"]) == ("KafkaProblem", True)
    assert client.get(f"{DRUID}/{lost.pk}/health").status_code == 503
    assert b"Kafka has not answered yet" in client.get(f"/supervisors/{lost.pk}/", secure=True).content


def test_kafka_is_lost_and_comes_back(cast: Cast, broker: Broker, settings: Settings) -> None:
    settings.SUPERVISOR_UNHEALTHINESS_THRESHOLD = 1
    settings.SUPERVISOR_HEALTHINESS_THRESHOLD = 2
    settings.SUPERVISOR_STORE_STACK_TRACE = True
    forwarder = Forwarder(broker.bootstrap)
    supervisor = submit(cast, broker, forwarder.address, broker.topic())
    iterate()
    [task] = tasks_of(supervisor)
    reads(task)
    forwarder.close()
    iterate()
    assert states(supervisor) == ("UNHEALTHY_SUPERVISOR", "LOST_CONTACT_WITH_STREAM")
    assert reasons_of(supervisor)[0].code == "kafka_unreachable"
    assert "KafkaProblem" in supervisor.recent_errors[0]["stack"]
    task.refresh_from_db()
    assert (task.status, task.goal) == ("RUNNING", "continue"), "it goes on by itself"
    answered = topic_checks.TopicAnswer(supervisor.pk, supervisor.version, partitions=4)
    run(supervisor.pk, answered)
    assert states(supervisor) == ("UNHEALTHY_SUPERVISOR", "LOST_CONTACT_WITH_STREAM")
    assert "after 1 more successful run." in reasons_of(supervisor)[0].text
    run(supervisor.pk, answered)
    assert states(supervisor) == ("RUNNING", "RUNNING")


def test_secrets_that_are_lost_make_the_supervisor_itself_unhealthy(
    cast: Cast, broker: Broker, settings: Settings
) -> None:
    topic = broker.topic()
    spec = broker.kafka_spec(topic, period="PT0.000001S")
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    spec["ioConfig"]["consumerProperties"] |= login
    supervisor = services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    settings.SECRET_KEY = "another key, and the old one is not kept; long enough to be taken for one"
    for _ in range(settings.SUPERVISOR_UNHEALTHINESS_THRESHOLD):
        iterate()
    assert states(supervisor) == ("UNHEALTHY_SUPERVISOR", "UNHEALTHY_SUPERVISOR")
    [reason] = reasons_of(supervisor)[:1]
    assert (reason.code, "HEADGATE_OLD_SECRET_KEYS" in reason.text) == ("unhealthy", True)


def test_a_round_that_fails_is_counted_and_stops_no_other(cast: Cast, broker: Broker) -> None:
    broken, well = (submit(cast, broker, broker.bootstrap, broker.topic()) for _ in range(2))
    # What no submitted spec can be, and no task can be made of.
    broken.versions.all()._raw_delete(broken.versions.db)
    broken.versions.model.objects.bulk_create(
        [broken.versions.model(supervisor=broken, version=1, spec=_without_timestamp(well))]
    )
    for _ in range(3):
        iterate()
    assert states(broken) == ("UNHEALTHY_SUPERVISOR", "UNHEALTHY_SUPERVISOR")
    assert broken.recent_errors[0]["class"] == "SpecError"
    assert tasks_of(well)


def _without_timestamp(like: Supervisor) -> dict[str, Any]:
    spec = like.versions.get().spec
    del spec["spec"]["dataSchema"]["timestampSpec"]
    found: dict[str, Any] = spec
    return found


def test_tasks_that_all_fail(cast: Cast, broker: Broker, settings: Settings) -> None:
    settings.RESTART_LONGEST_DELAY = timedelta(0)
    settings.SUPERVISOR_TASK_UNHEALTHINESS_THRESHOLD = settings.SUPERVISOR_TASK_HEALTHINESS_THRESHOLD = 2
    settings.SUPERVISOR_MAX_STORED_EXCEPTION_EVENTS = 2
    supervisor = submit(cast, broker, broker.bootstrap, broker.topic())
    iterate()
    for failures in (1, 2, 3):
        end_task(tasks_of(supervisor)[0], error=f"failure {failures}")
        wait_for("the next one", lambda n=failures: run(supervisor.pk) and len(tasks_of(supervisor)) == n + 1, 30)
        assert states(supervisor)[0] == ("RUNNING" if failures < 2 else "UNHEALTHY_TASKS")
    assert states(supervisor) == ("UNHEALTHY_TASKS", "UNHEALTHY_TASKS")
    assert [e["message"] for e in supervisor.recent_errors] == ["failure 3", "failure 2"]
    [reason] = reasons_of(supervisor)[:1]
    assert (reason.code, "failure 3" in reason.text) == ("failing", True)
    for expected in ("UNHEALTHY_TASKS", "RUNNING"):
        end_task(tasks_of(supervisor)[0])
        run(supervisor.pk)
        assert states(supervisor)[0] == expected


@contextmanager
def working_here() -> Iterator[None]:
    """The worker's part is done here, at once."""
    app.conf.task_always_eager = True
    try:
        yield
    finally:
        app.conf.task_always_eager = False


def test_when_a_task_ends_there_is_a_round_at_once(
    cast: Cast,
    broker: Broker,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    monkeypatch.setattr(launcher, "_spark_command", lambda task: ["/bin/echo", "launched"])
    supervisor = submit(cast, broker, broker.bootstrap, broker.topic())
    iterate()
    [task] = tasks_of(supervisor)
    Task.objects.filter(pk=task.pk).update(launched_at=timezone.now())
    headers = {"Authorization": f"Bearer {new_token(task)}"}
    with working_here(), django_capture_on_commit_callbacks(execute=True):
        answer = client.post(
            f"/internal/tasks/{task.pk}/end", EndRequest().model_dump(), "application/json", headers=headers
        )
    assert answer.status_code == 200
    assert [t.status for t in tasks_of(supervisor)][1:] == ["SUCCESS"]


def test_after_a_suspension_the_task_from_before_is_found(cast: Cast, broker: Broker) -> None:
    supervisor = submit(cast, broker, broker.bootstrap, broker.topic())
    iterate()
    reads(tasks_of(supervisor)[0])
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    run(supervisor.pk)
    assert states(supervisor) == ("STOPPING", "STOPPING")
    services.resume(user=cast.users["owner"], supervisor=supervisor)
    assert states(supervisor) == ("PENDING", "PENDING")
    iterate()
    assert states(supervisor) == ("RUNNING", "DISCOVERING_INITIAL_TASKS")
    assert len(tasks_of(supervisor)) == 2
