"""A new version of a spec that does not start: the supervisor says so, and which version is in force."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from controlplane.publishing.models import IndexerFence
from controlplane.supervisors import services
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.run import iterate, run
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Goal, Indexer, Status, Task
from tests.integration.test_supervisor_iterations import began_to_read, reads, submit, tasks_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast, reasons_of, spec_for
from tests.support.waiting import wait_for


def second_version(cast: Cast) -> None:
    spec = cast.supervisor.versions.get(version=1).spec
    SpecVersion.objects.create(supervisor=cast.supervisor, version=2, spec=spec)
    Supervisor.objects.filter(pk="flights").update(version=2)


def failed_task(cast: Cast, number: int) -> Task:
    task = copy.copy(cast.task)
    task.pk, task.spec_version, task.status = f"second-{number}", 2, Status.FAILED
    task.created_at = timezone.now() + timedelta(seconds=number)
    task.ended_at, task.error = task.created_at, "The broker said no."
    task.save(force_insert=True)
    return task


def said(client: Client) -> str:
    reasons: list[Any] = client.get("/api/v1/supervisors/flights/").json()["why_nothing"]
    return next((r["text"] for r in reasons if r["code"] == "version_not_started"), "")


def test_the_task_of_the_version_before_reads_on(cast: Cast, clients: dict[str, Client]) -> None:
    second_version(cast)
    assert said(clients["viewer"]) == ""  # it has not failed
    failed_task(cast, 1)
    failed_task(cast, 2)
    text = said(clients["viewer"])
    assert "Version 2 of the spec does not start: 2 of its tasks failed" in text
    assert "The task of version 1 continues to read." in text


def test_without_one_that_reads_the_last_that_published_is_named(cast: Cast, clients: dict[str, Client]) -> None:
    second_version(cast)
    failed_task(cast, 1)
    Task.objects.filter(pk=cast.task.pk).update(status=Status.SUCCESS, ended_at=timezone.now())
    assert "Version 1 was the last that published" in said(clients["viewer"])


def test_a_version_that_has_published_did_start(cast: Cast, clients: dict[str, Client]) -> None:
    second_version(cast)
    failed = failed_task(cast, 1)
    fence = IndexerFence.objects.filter(task_id=cast.task.pk).first()
    assert fence is not None
    fence.pk, fence.task_id = None, failed.pk
    fence.save(force_insert=True)
    assert said(clients["viewer"]) == ""


def begun(task: Task) -> Task:
    """It runs and reads, as after its first heartbeats."""
    Task.objects.filter(pk=task.pk).update(status=Status.RUNNING, started_at=timezone.now())
    Indexer.objects.create(task=task, number=0, state="reading")
    now = timezone.now()
    IndexerFence.objects.create(task_id=task.pk, number=0, datasource=task.datasource, epoch=1, started_at=now)
    return Task.objects.get(pk=task.pk)


def submitted(cast: Cast, **io_config: Any) -> Supervisor:
    """One of version 2, whose version 1 reads."""
    user = cast.users["owner"]
    services.submit_supervisor(user=user, document=spec_for("good"), team_name="alpha")
    run("good")
    begun(Task.objects.get(supervisor_id="good"))
    run("good")
    services.submit_supervisor(user=user, document=spec_for("good", **io_config), team_name="alpha")
    run("good")
    return Supervisor.objects.get(pk="good")


def of_version(number: int) -> list[Task]:
    """Newest first."""
    return list(Task.objects.filter(supervisor_id="good", spec_version=number).order_by("-created_at"))


def died(task: Task, seconds_ago: float = 5) -> None:
    end_task(task, error="It was killed.")
    Task.objects.filter(pk=task.pk).update(ended_at=timezone.now() - timedelta(seconds=seconds_ago))


def test_the_last_good_version_is_started_again(cast: Cast, clients: dict[str, Client]) -> None:
    supervisor = submitted(cast, pollTimeout=100)
    assert supervisor.in_force == 1
    died(of_version(2)[0])
    died(of_version(1)[0])
    run("good")
    again, first = of_version(1)
    assert (again.status, first.status) == (Status.PENDING, Status.FAILED)
    assert again.spec == first.spec
    run("good")
    assert len(of_version(1)) == 2, "another one was started beside it"
    text = clients["viewer"].get("/api/v1/supervisors/good/").json()["why_nothing"][0]["text"]
    assert "Version 2 of the spec does not start: 1 of its tasks failed" in text
    assert "The task of version 1 restarts and continues to read." in text
    begun(again)
    begun(of_version(2)[0])
    run("good")
    again.refresh_from_db()
    assert (again.goal, Supervisor.objects.get(pk="good").in_force) == (Goal.FINISH, 2)


def test_a_version_that_began_since_the_last_round_is_the_last_good(cast: Cast) -> None:
    user = cast.users["owner"]
    services.submit_supervisor(user=user, document=spec_for("good"), team_name="alpha")
    run("good")
    begun(Task.objects.get(supervisor_id="good"))
    services.submit_supervisor(user=user, document=spec_for("good", pollTimeout=100), team_name="alpha")
    run("good")
    assert Supervisor.objects.get(pk="good").in_force == 1


def test_it_is_not_while_the_new_one_is_on_its_way(cast: Cast) -> None:
    submitted(cast, pollTimeout=100)
    died(of_version(1)[0])
    run("good")
    assert len(of_version(1)) == 1


def test_what_was_suspended_does_not_go_back(cast: Cast) -> None:
    supervisor = submitted(cast, pollTimeout=100)
    user = cast.users["owner"]
    services.suspend(user=user, supervisor=supervisor)
    services.resume(user=user, supervisor=supervisor)
    run("good")
    for task in [*of_version(1), *of_version(2)]:
        died(task)
    run("good")
    assert len(of_version(1)) == 1


def test_another_task_count_is_nothing_to_go_back_from(cast: Cast) -> None:
    submitted(cast, taskCount=2)
    died(of_version(1)[0])
    run("good")
    assert (len(of_version(1)), len(of_version(2))) == (1, 1)


# On a real broker


def test_a_version_whose_topic_is_missing_leaves_the_last_good_one_in_force(cast: Cast, broker: Broker) -> None:
    """Row 35 of the failure matrix, of stored offsets: the last good one's task dies, and is started again."""
    topic = broker.topic()
    supervisor = submit(cast, broker, broker.bootstrap, topic)
    iterate()
    [first] = tasks_of(supervisor)
    reads(first)
    began_to_read(first, timezone.now())
    iterate()
    submit(cast, broker, broker.bootstrap, f"missing-{topic}", datasource=topic)
    for _ in range(3):
        iterate()
    supervisor.refresh_from_db()
    assert (supervisor.version, supervisor.in_force) == (2, 1)
    assert "version_not_started" in [reason.code for reason in reasons_of(supervisor)]
    end_task(first, error="killed for the test")

    def started_again() -> Task | None:
        iterate()
        return next((task for task in tasks_of(supervisor) if task.pk != first.pk and task.spec_version == 1), None)

    again = wait_for("it is started again", started_again, 30)
    assert (again.status, again.spec["spec"]["ioConfig"]["topic"]) == (Status.PENDING, topic)
