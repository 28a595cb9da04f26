"""The pool of indexers on a real PostgreSQL: launches that may not overfill it, handovers, what is said of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.spark.cluster_state import Application, Cluster
from controlplane.supervisors import services as supervisors
from controlplane.supervisors.run import run
from controlplane.tasks import capacity, heartbeats, launcher, lifecycle, services, watching
from controlplane.tasks.heartbeats import heartbeat
from controlplane.tasks.models import Goal, Indexer, Status, Task
from ingestion.specs.messages.protocol import HeartbeatRequest, IndexerStatus
from tests.integration.test_supervisor_services import side_by_side, submit
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.html import parsed
from tests.support.stored_offsets import kafka_spec


@pytest.fixture(autouse=True)
def pool(cast: Cast, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six places, none of them taken."""
    settings.WORKER_CAPACITY = 6
    settings.SPARK_PYTHON = "installed"  # else a launch for a cluster first packs all libraries: 7 s
    Task.objects.all().delete()
    # What is launched does not matter here, but whether.
    monkeypatch.setattr(launcher, "_spark_command", lambda task: ["/bin/echo", "launched"])


def ask(cast: Cast, name: str, count: int) -> Task:
    document = spec_for(name, taskCount=count)
    return services.submit_task(user=cast.users["owner"], document=document, team_name="alpha")


def launched() -> set[str]:
    return set(Task.objects.exclude(launched_at=None).values_list("datasource__name", flat=True))


def test_what_fits_is_launched_and_what_does_not_waits_and_says_so(cast: Cast, clients: dict[str, Client]) -> None:
    first, second, third = ask(cast, "first", 4), ask(cast, "second", 3), ask(cast, "third", 1)
    assert [launcher.launch(t.pk) for t in (third, second, first)] == [False, False, True]
    assert launched() == {"first"}
    client = clients["owner"]
    [reason] = client.get(f"/api/v1/tasks/{third.pk}/").json()["why_nothing"]
    assert reason["code"] == "waiting_for_slot"
    assert "1 slot; 2 of 6 are free" in reason["text"]
    assert "2 of 6 are free, and 1 task comes first" in reason["text"]
    assert client.get("/api/v1/capacity/").json() == {
        "capacity": 6,
        "used": 4,
        "free": 2,
        "waiting_tasks": 2,
        "waiting_indexers": 4,
        "holders": [{"indexers": 4, "who": "", "task": first.pk, "supervisor": "", "team": "alpha"}],
        "waiting": [
            {"indexers": task.indexers_wanted, "task": task.pk, "supervisor": "", "team": "alpha", "why": "",
             "since": task.created_at.isoformat().replace("+00:00", "Z")}
            for task in (second, third)
        ],
    }  # fmt: skip
    assert client.get("/druid/indexer/v1/totalWorkerCapacity").json() == {
        "currentClusterCapacity": 6,
        "maximumCapacityWithAutoScale": 6,
        "usedClusterCapacity": 4,
    }
    lifecycle.end_task(first)
    assert {t.pk for t in capacity.launchable(timezone.now() - timedelta(seconds=30))} == {second.pk, third.pk}


def test_another_team_s_tasks_are_counted_and_not_named(cast: Cast, clients: dict[str, Client]) -> None:
    first, second = ask(cast, "first", 4), ask(cast, "second", 3)
    launcher.launch(first.pk)
    found = clients["outsider"].get("/api/v1/capacity/").json()
    nobody = {"task": None, "supervisor": None, "team": None}
    assert found["holders"] == [{"indexers": 4, "who": "Tasks of other teams", **nobody}]
    [waiting] = found["waiting"]
    assert (waiting["indexers"], waiting["task"]) == (3, None)
    theirs = browsing_as(cast, "outsider").get("/tasks/-/capacity/").content.decode()
    assert theirs.count("Tasks of other teams") == 2
    assert first.pk not in theirs and second.pk not in theirs
    page = parsed(browsing_as(cast, "viewer").get("/tasks/-/capacity/"))
    named = [[link.attributes["href"] for link in page.one("table", **{f"data-{part}": ""}).all("a")]
             for part in ("holders", "waiting")]  # fmt: skip
    assert named == [[f"/tasks/{first.pk}/"], [f"/tasks/{second.pk}/"]]
    figures = {f.attributes["data-figure"]: f.one("div", class_="figure-value").text for f in page.all(class_="figure")}
    assert figures == {"used": "4", "total": "6", "free": "2", "asked": "3"}
    home = parsed(browsing_as(cast, "viewer").get("/"))
    assert home.one(**{"data-figure": "indexers"}).one("a").attributes["href"] == "/tasks/-/capacity/"


def test_a_replica_that_has_no_room_is_named_before_one_that_starts(
    cast: Cast, settings: LazySettings, clients: dict[str, Client]
) -> None:
    """Else the page said that the application runs, beside the health "waiting for a slot"."""
    settings.WORKER_CAPACITY = 0
    supervisor = submit(cast, kafka_spec("twice", replicas=2))
    run(supervisor.pk)
    newest, older = Task.objects.filter(supervisor_id=supervisor.pk).order_by("-created_at", "-id")
    assert launcher.launch(newest.pk) and launcher.launch(older.pk)
    heartbeat(newest, beat("starting"))
    heartbeat(older, beat("waiting_for_slot"))
    found = clients["viewer"].get("/api/v1/supervisors/twice/").json()
    assert found["health"]["label"] == "waiting for a slot"
    assert [reason["code"] for reason in found["why_nothing"]] == ["waiting_for_slot"]


def test_without_a_limit_all_start(cast: Cast, settings: LazySettings, clients: dict[str, Client]) -> None:
    settings.WORKER_CAPACITY = 0
    assert [launcher.launch(ask(cast, f"many-{n}", 30).pk) for n in range(3)] == [True] * 3
    answer = clients["viewer"].get("/api/v1/capacity/").json()
    assert (answer["capacity"], answer["free"], answer["used"]) == (None, None, 90)
    assert clients["viewer"].get("/druid/indexer/v1/totalWorkerCapacity").json()["currentClusterCapacity"] == -1


@pytest.mark.django_db(transaction=True)
def test_workers_side_by_side_do_not_overfill_it(cast: Cast) -> None:
    tasks = iter([ask(cast, f"crowd-{n}", 2).pk for n in range(6)])
    assert sum(side_by_side(lambda: launcher.launch(next(tasks)))) <= 3
    for task in capacity.launchable(timezone.now()):
        launcher.launch(task.pk)
    assert len(launched()) == 3


def test_an_indexer_that_is_still_ending_holds_its_place(cast: Cast) -> None:
    task = ask(cast, "shrinking", 5)
    launcher.launch(task.pk)
    for number in range(5):
        Indexer.objects.create(task=task, number=number, state="reading")
    assert capacity.scale(task.pk, 2) == 2
    assert capacity.pool().used == 5
    Indexer.objects.filter(number__gte=2).update(state="stopped")
    assert capacity.pool().used == 2


def test_a_running_task_grows_by_what_is_free_once_nobody_waits(cast: Cast) -> None:
    task = ask(cast, "growing", 3)
    launcher.launch(task.pk)
    waiting = ask(cast, "waiting", 4)
    assert capacity.scale(task.pk, 5) == 3
    lifecycle.set_goal(waiting, Goal.STOP)
    assert capacity.scale(task.pk, 20) == 6
    assert capacity.scale(task.pk, 1) == 1


def test_more_than_the_whole_pool_is_refused(cast: Cast, clients: dict[str, Client]) -> None:
    with pytest.raises(InvalidInput, match="HEADGATE_WORKER_CAPACITY"):
        ask(cast, "huge", 7)
    with pytest.raises(InvalidInput, match="runs at most 6 indexers"):
        submit(cast, spec_for("huge", taskCount=7))
    body = {"kind": "task", "spec": spec_for("huge", taskCount=7)}
    assert clients["owner"].post("/api/v1/validate/", body, content_type="application/json").status_code == 400
    supervisor = submit(cast, spec_for("fine", taskCount=6))
    with pytest.raises(InvalidInput):
        supervisors.scale(user=cast.users["owner"], supervisor=supervisor, task_count=7)


def test_a_task_from_before_the_pool_was_made_smaller_says_that_it_never_fits(
    cast: Cast, settings: LazySettings
) -> None:
    task, small = ask(cast, "large", 6), ask(cast, "small", 1)
    settings.WORKER_CAPACITY = 4
    assert [launcher.launch(t.pk) for t in (task, small)] == [False, True]
    assert "but this installation has" in str(capacity.wait_health(task))


def test_a_repair_waits_for_nobody(cast: Cast) -> None:
    task = ask(cast, "full", 6)
    launcher.launch(task.pk)
    repair = services.create_repair(like=task, holes=[], topic_id="topic-id-1")
    assert capacity.may_launch(repair)
    assert (capacity.pool().used, capacity.wait_health(repair)) == (6, None)


def test_in_a_full_pool_the_predecessor_hands_off_first(cast: Cast, settings: LazySettings) -> None:
    """The next task waits for places that its predecessor holds: neither waits for ever."""
    supervisor = submit(cast, spec_for("handover", taskCount=4))
    run(supervisor.pk)
    first = Task.objects.get(supervisor_id=supervisor.pk)
    launcher.launch(first.pk)
    Task.objects.filter(pk=first.pk).update(status=Status.RUNNING, started_at=timezone.now())
    Indexer.objects.create(task=first, number=0, state="reading")
    submit(cast, spec_for("handover", taskCount=4, pollTimeout=100))
    run(supervisor.pk)
    run(supervisor.pk)
    second = Task.objects.filter(supervisor_id=supervisor.pk).latest("created_at")
    first.refresh_from_db()
    assert (launcher.launch(second.pk), first.goal) == (False, Goal.RUN)
    other = ask(cast, "other", 1)
    Task.objects.filter(pk=second.pk).update(created_at=timezone.now() - settings.HANDOVER_PATIENCE)
    run(supervisor.pk)
    first.refresh_from_db()
    assert first.goal == Goal.FINISH
    assert launcher.launch(other.pk) is False
    lifecycle.end_task(first)
    assert [launcher.launch(t.pk) for t in (second, other)] == [True, True]


def test_a_task_that_has_no_slot_of_spark_says_so_and_its_predecessor_makes_room(
    cast: Cast, settings: LazySettings, clients: dict[str, Client]
) -> None:
    """It is launched, and on the cluster nothing is free for it."""
    settings.WORKER_CAPACITY = 0
    supervisor = submit(cast, spec_for("slots", taskCount=2))
    run(supervisor.pk)
    first = Task.objects.get(supervisor_id=supervisor.pk)
    launcher.launch(first.pk)
    heartbeat(first, beat("reading", "reading"))
    submit(cast, spec_for("slots", taskCount=2, pollTimeout=100))
    run(supervisor.pk)
    second = Task.objects.filter(supervisor_id=supervisor.pk).latest("created_at")
    launcher.launch(second.pk)
    heartbeat(second, beat("waiting_for_slot", "waiting_for_slot"))
    run(supervisor.pk)
    supervisor.refresh_from_db()
    first.refresh_from_db()
    assert (supervisor.detailed_state, first.goal) == ("RUNNING", Goal.RUN)
    waited = timezone.now() - settings.HANDOVER_PATIENCE
    Task.objects.filter(pk=second.pk).update(without_slot_since=waited)
    heartbeat(second, beat("waiting_for_slot", "waiting_for_slot"))
    second.refresh_from_db()
    assert second.without_slot_since == waited, "it has waited since then"
    run(supervisor.pk)
    first.refresh_from_db()
    shown = clients["owner"].get(f"/api/v1/supervisors/{supervisor.pk}/").json()
    assert (shown["detailed_state"], shown["healthy"], first.goal) == ("WAITING_FOR_SLOT", False, Goal.FINISH)
    assert [reason["code"] for reason in shown["why_nothing"]] == ["waiting_for_slot"]
    assert states_in_list(cast) == {second.pk: "RUNNING waiting for slot", first.pk: "RUNNING"}
    heartbeat(second, beat("reading", "waiting_for_slot"))
    run(supervisor.pk)
    supervisor.refresh_from_db()
    second.refresh_from_db()
    assert (supervisor.detailed_state, second.without_slot_since) == ("RUNNING", None)


@pytest.mark.usefixtures("empty_cache")
def test_a_task_whose_executors_start_is_not_said_to_wait_for_room(
    cast: Cast, settings: LazySettings, owner: Client
) -> None:
    """Spark's master has given it cores: there the code is unpacked, before the first slot is seen."""
    settings.WORKER_CAPACITY, settings.SPARK_MASTER = 0, "spark://nowhere:7077"
    supervisor = submit(cast, spec_for("starts", taskCount=2))
    run(supervisor.pk)
    task = Task.objects.get(supervisor_id=supervisor.pk)
    launcher.launch(task.pk)
    for cores, waits in ((0, True), (2, False)):
        application = Application(task.pk, cores=cores, waiting=not cores, submitted_at_ms=0)
        cache.set("spark.cluster", (Cluster(cores=4, used=cores, applications=[application]),))
        heartbeat(task, beat("waiting_for_slot", "waiting_for_slot"))
        task.refresh_from_db()
        assert (task.without_slot_since is not None) == waits
    run(supervisor.pk)
    shown = owner.get(f"/api/v1/supervisors/{supervisor.pk}/").json()
    assert (shown["healthy"], [reason["code"] for reason in shown["why_nothing"]]) == (True, ["starting"])
    late = timezone.now() - heartbeats.STARTUP_TIME
    Task.objects.filter(pk=task.pk).update(started_at=late)
    task.refresh_from_db()
    heartbeat(task, beat("waiting_for_slot", "waiting_for_slot"))
    task.refresh_from_db()
    assert task.without_slot_since is not None, "by then executors do not only unpack the code"
    Task.objects.filter(pk=task.pk).update(started_at=timezone.now())
    task.refresh_from_db()
    heartbeat(task, beat("waiting_for_slot", "waiting_for_slot"))
    assert set(task.indexers.values_list("state", flat=True)) == {"starting"}
    [reason] = owner.get(f"/api/v1/tasks/{task.pk}/").json()["why_nothing"]
    assert "executors and indexers start" in reason["text"]


def states_in_list(cast: Cast) -> dict[str, str]:
    """By task, as the pages' list has it."""
    rows = parsed(browsing_as(cast, "owner").get("/tasks/")).one("tbody").all("tr")
    return {row.one("th").one("a").attributes["title"] or "": row.all("td")[0].text for row in rows}


@pytest.mark.usefixtures("empty_cache")
def test_the_list_says_what_tasks_wait_for(cast: Cast, settings: LazySettings) -> None:
    first, second = ask(cast, "first", 4), ask(cast, "second", 3)
    launcher.launch(first.pk)
    assert states_in_list(cast) == {second.pk: "PENDING waiting for slot", first.pk: "PENDING"}
    settings.WORKER_CAPACITY = 0
    settings.SPARK_MASTER = "spark://nowhere:7077"
    cache.set("spark.cluster", (Cluster(cores=4, used=4),))
    Task.objects.filter(pk=second.pk).update(
        status=Status.RUNNING, launched_at=timezone.now(), without_slot_since=timezone.now()
    )
    line = parsed(browsing_as(cast, "owner").get("/tasks/")).one("span", data_capacity="").text
    assert line == "4 of 4 indexers in use, of all teams. 1 task waits for 3 more: Spark has no free slot."
    assert states_in_list(cast) == {second.pk: "RUNNING waiting for slot", first.pk: "PENDING"}


def beat(*states: Any) -> HeartbeatRequest:
    return HeartbeatRequest(indexers=[IndexerStatus(number=n, epoch=1, state=s) for n, s in enumerate(states)], slots=2)


def test_the_watch_launches_what_has_room_again(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    handed_over: list[Any] = []
    monkeypatch.setattr(services, "launch_on_commit", handed_over.append)
    first, second = ask(cast, "early", 6), ask(cast, "late", 1)
    launcher.launch(first.pk)
    handed_over.clear()
    watching._relaunch_forgotten(handed_over.append)
    assert handed_over == []
    lifecycle.end_task(first)
    watching._relaunch_forgotten(handed_over.append)
    assert [t.pk for t in handed_over] == [second.pk]
