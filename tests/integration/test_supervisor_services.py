"""Supervisors' specs: versions, secrets that stay, rounds of the run loop on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar

import pytest
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from controlplane.common.errors import Conflict, InvalidInput, NotAllowed
from controlplane.connections.secrets import unseal
from controlplane.supervisors import services
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.run import run, run_all
from controlplane.tasks import launcher
from controlplane.tasks.lifecycle import end_task, set_goal
from controlplane.tasks.models import Goal, Status, Task
from tests.support.django_cast import Cast, spec_for

CANARY = "canary-password-7431"
T = TypeVar("T")


def with_password(spec: dict[str, Any], password: str | None) -> dict[str, Any]:
    properties = {"bootstrap.servers": "b:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    properties["sasl.username"] = "u"
    if password is not None:
        properties["sasl.password"] = password
    spec["ioConfig"]["consumerProperties"] = properties
    return spec


def submit(cast: Cast, spec: dict[str, Any], role: str = "owner") -> Supervisor:
    return services.submit_supervisor(user=cast.users[role], document=spec, team_name="alpha")


def test_a_password_is_sealed_and_kept_when_a_new_version_leaves_it_out(cast: Cast) -> None:
    supervisor = submit(cast, with_password(spec_for("secretive"), CANARY))
    submit(cast, with_password(spec_for("secretive", taskCount=3), None))
    versions = list(SpecVersion.objects.filter(supervisor=supervisor).order_by("version"))
    assert [unseal(v.secrets) for v in versions] == [{"sasl.password": CANARY}] * 2
    assert not any(CANARY in str(v.spec) or CANARY in v.secrets for v in versions)
    submit(cast, spec_for("secretive"))
    assert unseal(supervisor.versions.get(version=3).secrets) == {}


def test_a_spec_version_can_not_be_changed(cast: Cast) -> None:
    supervisor = submit(cast, spec_for("constant"))
    version = supervisor.versions.get()
    version.spec = {}
    with pytest.raises(TypeError, match="immutable"):
        version.save()


def test_a_wrong_spec_changes_nothing(cast: Cast) -> None:
    before = (Supervisor.objects.count(), SpecVersion.objects.count())
    wrong = spec_for("wrong", taskCount=0)
    wrong["ioConfig"]["topik"] = wrong["ioConfig"].pop("topic")
    with pytest.raises(InvalidInput) as refused:
        submit(cast, wrong)
    assert {e.path for e in refused.value.errors} == {"ioConfig.taskCount", "ioConfig.topic", "ioConfig.topik"}
    assert (Supervisor.objects.count(), SpecVersion.objects.count()) == before


def test_an_operator_may_not_change_a_spec_and_an_outsider_finds_the_name_taken(cast: Cast) -> None:
    submit(cast, spec_for("guarded"))
    with pytest.raises(NotAllowed):
        submit(cast, spec_for("guarded", taskCount=2), role="operator")
    with pytest.raises(Conflict):
        services.submit_supervisor(user=cast.users["outsider"], document=spec_for("guarded"), team_name="beta")


def test_rounds_start_one_task_and_follow_the_spec(cast: Cast) -> None:
    supervisor = submit(cast, spec_for("round"))
    for _ in range(3):
        run(supervisor.pk)
    task = Task.objects.get(supervisor_id=supervisor.pk)
    services.scale(user=cast.users["owner"], supervisor=supervisor, task_count=5)
    run(supervisor.pk)
    task.refresh_from_db()
    assert (task.indexers_wanted, task.goal) == (5, Goal.RUN)
    submit(cast, spec_for("round", pollTimeout=100))
    run(supervisor.pk)
    task.refresh_from_db()
    assert Task.objects.filter(supervisor_id=supervisor.pk).count() == 2
    assert task.goal == Goal.FINISH or task.ended


def test_a_failed_task_is_followed_by_another_after_a_back_off(cast: Cast) -> None:
    supervisor = submit(cast, spec_for("failing"))
    run(supervisor.pk)
    end_task(Task.objects.get(supervisor_id=supervisor.pk), error="for the test")
    decision = run(supervisor.pk)
    assert decision is not None
    assert (decision.detailed_state, decision.failures) == ("BACKING_OFF", 1)
    supervisor.refresh_from_db()
    assert supervisor.recent_errors[0]["message"] == "for the test"


def test_a_task_that_was_stopped_before_its_launch_is_no_error(cast: Cast) -> None:
    supervisor = submit(cast, spec_for("early"))
    run(supervisor.pk)
    task = Task.objects.get(supervisor_id=supervisor.pk)
    set_goal(task, Goal.FINISH)
    decision = run(supervisor.pk)
    task.refresh_from_db()
    supervisor.refresh_from_db()
    assert (task.status, task.error) == (Status.FAILED, "Stopped before it was launched.")
    assert decision is not None
    assert (decision.failures, supervisor.recent_errors) == (0, [])


def test_suspend_resume_terminate(cast: Cast) -> None:
    supervisor = submit(cast, spec_for("resting"))
    run(supervisor.pk)
    services.suspend(user=cast.users["operator"], supervisor=supervisor)
    run(supervisor.pk)
    run(supervisor.pk)
    supervisor.refresh_from_db()
    assert supervisor.state == "SUSPENDED"
    with pytest.raises(services.AlreadyInState, match="already suspended"):
        services.suspend(user=cast.users["operator"], supervisor=supervisor)
    services.resume(user=cast.users["operator"], supervisor=supervisor)
    with pytest.raises(NotAllowed):
        services.terminate(user=cast.users["operator"], supervisor=supervisor)
    services.terminate(user=cast.users["owner"], supervisor=supervisor)
    with pytest.raises(Conflict):
        services.resume(user=cast.users["owner"], supervisor=supervisor)


def test_who_runs_already_is_not_resumed(cast: Cast) -> None:
    """What its iterations came to stays."""
    supervisor = submit(cast, spec_for("busy"))
    Supervisor.objects.filter(pk="busy").update(failed_runs=3, detailed_state="UNHEALTHY_SUPERVISOR")
    with pytest.raises(services.AlreadyInState, match="already running"):
        services.resume(user=cast.users["operator"], supervisor=supervisor)
    supervisor.refresh_from_db()
    assert (supervisor.failed_runs, supervisor.state) == (3, "UNHEALTHY_SUPERVISOR")


def test_the_same_spec_mends_secrets_that_are_lost(cast: Cast, settings: Settings) -> None:
    spec = with_password(spec_for("secretive"), CANARY)
    owner = cast.users["owner"]
    supervisor = submit(cast, spec)
    settings.SECRET_KEY = "another key, and the old one is not kept; long enough to be taken for one"
    for _ in range(2):  # the second time there is nothing to mend
        services.submit_supervisor(user=owner, document=spec, team_name="alpha", skip_unmodified=True)
    supervisor.refresh_from_db()
    assert supervisor.version == 2
    assert unseal(supervisor.current.secrets) == {"sasl.password": CANARY}


def side_by_side(do: Callable[[], T], times: int = 6) -> list[T]:
    """What each of some threads got, that all began at once."""
    barrier = Barrier(times)

    def one(_: int) -> T:
        try:
            barrier.wait(30)
            return do()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(one, range(times)))


@pytest.mark.django_db(transaction=True)
def test_messages_that_come_twice_start_one_task_and_launch_it_once(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 7 of the failure matrix: rounds and launches side by side, and again afterwards; one task, one process."""
    supervisor = submit(cast, spec_for("twice"))
    side_by_side(lambda: run(supervisor.pk))
    side_by_side(lambda: run(supervisor.pk))
    task = Task.objects.get(supervisor_id=supervisor.pk)
    # What is launched does not matter here, but how often.
    monkeypatch.setattr(launcher, "_spark_command", lambda task: ["/bin/echo", "launched"])
    assert sorted(side_by_side(lambda: launcher.launch(task.pk))) == [False] * 5 + [True]
    assert launcher.launch(task.pk) is False
    # What Spark writes into it is not encrypted: nobody else on this machine may read it.
    assert launcher.scratch_of(task.pk).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("said", "after"), [({}, True), ({"suspended": True}, True), ({"suspended": False}, False)])
def test_a_suspended_supervisor_stays_so_with_a_new_spec_unless_it_says_otherwise(
    cast: Cast, said: dict[str, bool], after: bool
) -> None:
    supervisor = submit(cast, {**spec_for("resting"), "suspended": True})
    changed = submit(cast, {**spec_for("resting", taskCount=3), **said})
    assert (changed.version, changed.suspended) == (2, after)
    assert supervisor.versions.get(version=2).spec["suspended"] == after
    services.submit_supervisor(
        user=cast.users["owner"], document=spec_for("resting", taskCount=3), skip_unmodified=True
    )
    assert Supervisor.objects.get(pk="resting").version == 2, "it says nothing of that, so it is unmodified"


def test_a_terminated_supervisor_runs_when_it_is_brought_back(cast: Cast) -> None:
    supervisor = submit(cast, {**spec_for("resting"), "suspended": True})
    services.terminate(user=cast.users["owner"], supervisor=supervisor)
    assert not submit(cast, spec_for("resting")).suspended


def has_a_round(supervisor: Supervisor) -> bool:
    """Whether a round over all supervisors is one for this one too."""
    before = Supervisor.objects.get(pk=supervisor.pk).ran_at
    run_all()
    supervisor.refresh_from_db()
    return supervisor.ran_at != before


def test_a_suspended_supervisor_has_no_more_rounds_until_something_ends(cast: Cast) -> None:
    Supervisor.objects.update(detailed_state="TERMINATED")  # the cast's own
    supervisor = submit(cast, spec_for("resting"))
    run(supervisor.pk)
    [task] = Task.objects.filter(supervisor_id=supervisor.pk)
    Task.objects.filter(pk=task.pk).update(launched_at=timezone.now())
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    assert has_a_round(supervisor)
    assert supervisor.detailed_state == "STOPPING"
    end_task(task, error="It ended badly.")
    assert has_a_round(supervisor)
    assert supervisor.detailed_state == "SUSPENDED"
    assert [e["message"] for e in supervisor.recent_errors] == ["It ended badly."]
    assert not has_a_round(supervisor)
    Task.objects.filter(pk=task.pk).update(ended_at=timezone.now())
    assert has_a_round(supervisor)
    services.resume(user=cast.users["owner"], supervisor=supervisor)
    run_all()
    assert not Supervisor.objects.filter(pk=supervisor.pk, detailed_state="SUSPENDED").exists()


def reading(cast: Cast) -> tuple[Supervisor, Task]:
    """One that has reached Kafka and whose task reads; the only one that has rounds."""
    Supervisor.objects.update(detailed_state="TERMINATED")  # the cast's own
    supervisor = submit(cast, spec_for("calm"))
    run(supervisor.pk)
    Supervisor.objects.filter(pk=supervisor.pk).update(contacted_at=timezone.now())
    [task] = Task.objects.filter(supervisor_id=supervisor.pk)
    task.indexers.create(number=0, state="reading")
    Task.objects.filter(pk=task.pk).update(status="RUNNING", started_at=timezone.now())
    assert has_a_round(supervisor)
    assert supervisor.detailed_state == "RUNNING"
    return supervisor, task


def test_a_supervisor_whose_task_reads_is_left_alone_until_the_task_changes(cast: Cast) -> None:
    supervisor, task = reading(cast)
    assert not has_a_round(supervisor)
    Task.objects.filter(pk=task.pk).update(goal=Goal.FINISH)
    assert has_a_round(supervisor)
    Task.objects.exclude(pk=task.pk).delete()  # its successor
    Task.objects.filter(pk=task.pk).update(goal=Goal.RUN)
    assert has_a_round(supervisor)
    assert not has_a_round(supervisor)
    end_task(task, error="It ended badly.")
    assert has_a_round(supervisor)
    assert [e["message"] for e in supervisor.recent_errors] == ["It ended badly."]


def test_what_has_been_calm_for_long_has_a_round(cast: Cast) -> None:
    supervisor, _ = reading(cast)
    assert not has_a_round(supervisor)
    Supervisor.objects.filter(pk=supervisor.pk).update(calm_until=timezone.now())
    assert has_a_round(supervisor)
