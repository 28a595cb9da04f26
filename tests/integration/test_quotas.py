"""Quotas of teams on a real PostgreSQL: who waits, who is told to finish, what is said, and that nothing is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.publishing.models import IndexerFence
from controlplane.quotas import services as quotas
from controlplane.quotas.models import Quota
from controlplane.sources.models import SourceEvent
from controlplane.supervisors import services as supervisors
from controlplane.supervisors.health_queries import health_of_supervisor
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.run import run
from controlplane.tasks import capacity, launcher, lifecycle, quota_use, services
from controlplane.tasks.models import Goal, Indexer, Status, Task
from controlplane.teams.models import AuditEntry
from tests.integration.test_supervisor_services import submit
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.publishes import make_source, request, send, start
from tests.support.waiting import await_a_long_day

ADDRESS = "/api/v1/teams/alpha/quotas/"
PAGE = "/teams/alpha/limits/"


@pytest.fixture(autouse=True)
def nothing_runs(cast: Cast, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pool, no task, no row of today."""
    await_a_long_day()
    settings.WORKER_CAPACITY = 0
    Task.objects.all().delete()
    IndexerFence.objects.all().delete()
    # What is launched does not matter here, but whether.
    monkeypatch.setattr(launcher, "_spark_command", lambda task: ["/bin/echo", "launched"])


def limit(cast: Cast, **limits: int | None) -> None:
    quotas.set_quota(user=cast.users["superuser"], team=cast.alpha, limits=limits)


def ask(cast: Cast, name: str, count: int, role: str = "owner", team: str = "alpha") -> Task:
    document = spec_for(name, taskCount=count)
    return services.submit_task(user=cast.users[role], document=document, team_name=team)


def reading(cast: Cast, name: str, count: int = 1) -> tuple[Supervisor, Task]:
    """A supervisor and its task, at work."""
    supervisor = submit(cast, spec_for(name, taskCount=count))
    run(supervisor.pk)
    task = Task.objects.get(supervisor_id=supervisor.pk)
    assert launcher.launch(task.pk)
    Task.objects.filter(pk=task.pk).update(status=Status.RUNNING, started_at=timezone.now())
    Indexer.objects.create(task=task, number=0, state="reading")
    return supervisor, task


def publish_rows(name: str, rows: int) -> None:
    """A publish of so many rows, of ten bytes each."""
    source = make_source(name, topic_id=f"topic of {name}", group=name)
    body = request(start(source, task=f"task of {name}"), {0: [(0, rows)]}, topic_id=f"topic of {name}")
    send(body, task=f"task of {name}")


def test_a_task_waits_for_its_team_and_says_so_everywhere(cast: Cast, clients: dict[str, Client]) -> None:
    limit(cast, indexers=4)
    supervisor, _ = reading(cast, "first", 4)
    waiting = submit(cast, spec_for("second", taskCount=1))
    run(waiting.pk)
    task = Task.objects.get(supervisor_id=waiting.pk)
    other = ask(cast, "others", 30, "outsider", "beta")
    assert [launcher.launch(t.pk) for t in (task, other)] == [False, True]
    said = "team alpha uses 4 of 4"
    assert said in str(capacity.wait_health(task))
    Task.objects.filter(pk=task.pk).update(created_at=timezone.now() - capacity.NOTICE_AFTER)
    assert said in health_of_supervisor(cast.users["viewer"], waiting).text
    assert said in browsing_as(cast, "viewer").get(f"/tasks/{task.pk}/").content.decode()
    assert said in browsing_as(cast, "viewer").get(f"/supervisors/{waiting.pk}/").content.decode()
    problems = clients["viewer"].get("/api/v1/overview/").json()["problems"]
    assert any(said in problem["text"] for problem in problems), problems
    run(waiting.pk)
    waiting.refresh_from_db()
    assert waiting.detailed_state == "WAITING_FOR_CAPACITY"
    limit(cast, indexers=5)
    assert launcher.launch(task.pk)
    assert supervisor.pk != waiting.pk


def test_who_waits_holds_up_its_own_team_only(cast: Cast, settings: LazySettings) -> None:
    settings.WORKER_CAPACITY = 10
    limit(cast, indexers=4)
    first, second, third = ask(cast, "one", 3), ask(cast, "two", 2), ask(cast, "three", 1)
    other = ask(cast, "others", 6, "outsider", "beta")
    assert [launcher.launch(t.pk) for t in (first, third, second, other)] == [True, False, False, True]
    lifecycle.end_task(first)
    assert [launcher.launch(t.pk) for t in (second, third)] == [True, True]


def test_at_the_edge_of_a_quota_the_predecessor_hands_off_first(cast: Cast, settings: LazySettings) -> None:
    limit(cast, indexers=4)
    supervisor, first = reading(cast, "handover", 4)
    submit(cast, spec_for("handover", taskCount=4, pollTimeout=100))
    run(supervisor.pk)
    second = Task.objects.filter(supervisor_id=supervisor.pk).latest("created_at")
    assert (second.pk != first.pk, launcher.launch(second.pk)) == (True, False)
    Task.objects.filter(pk=second.pk).update(created_at=timezone.now() - settings.HANDOVER_PATIENCE)
    run(supervisor.pk)
    first.refresh_from_db()
    assert first.goal == Goal.FINISH
    lifecycle.end_task(first)
    assert launcher.launch(second.pk)


def test_a_running_task_grows_as_far_as_its_team_may(cast: Cast) -> None:
    limit(cast, indexers=5)
    task = ask(cast, "growing", 2)
    launcher.launch(task.pk)
    assert capacity.scale(task.pk, 9) == 5
    assert capacity.scale(task.pk, 1) == 1


def test_a_spec_that_alone_asks_for_more_is_refused(cast: Cast, clients: dict[str, Client]) -> None:
    limit(cast, indexers=4)
    said = "team alpha may run at most 4"
    with pytest.raises(InvalidInput, match=said):
        ask(cast, "huge", 5)
    with pytest.raises(InvalidInput, match=said):
        submit(cast, spec_for("huge", taskCount=5))
    assert not Datasource.objects.filter(name="huge").exists()
    body = {"kind": "supervisor", "spec": spec_for("flights", taskCount=5)}
    assert clients["owner"].post("/api/v1/validate/", body, content_type="application/json").status_code == 400
    supervisor = submit(cast, spec_for("fine", taskCount=4))
    with pytest.raises(InvalidInput, match=said):
        supervisors.scale(user=cast.users["owner"], supervisor=supervisor, task_count=5)
    run(supervisor.pk)
    limit(cast, indexers=3)
    task = Task.objects.get(supervisor_id=supervisor.pk)
    assert not launcher.launch(task.pk)
    assert "but team alpha may use at most 3" in str(capacity.wait_health(task))
    assert health_of_supervisor(cast.users["owner"], supervisor).label == "never enough slots"


@pytest.mark.parametrize("used_up", ["rows_a_day", "stored_bytes"])
def test_what_is_used_up_stops_reading_in_order_and_begins_again(
    cast: Cast, clients: dict[str, Client], used_up: str
) -> None:
    limits = {"rows_a_day": 100} if used_up == "rows_a_day" else {"stored_bytes": 10**12}
    limit(cast, **limits)
    supervisor, task = reading(cast, "stopped")
    by_hand = ask(cast, "by-hand", 1)
    launcher.launch(by_hand.pk)
    Task.objects.filter(pk=by_hand.pk).update(status=Status.RUNNING)
    publish_rows("stopped", 99)
    quota_use.mark_used_up()
    run(supervisor.pk)
    task.refresh_from_db()
    assert task.goal == Goal.RUN
    publish_rows("stopped-2", 7)
    if used_up == "stored_bytes":
        limit(cast, stored_bytes=quota_use.use_of(cast.alpha).stored_bytes)
    quota_use.mark_used_up()
    run(supervisor.pk)
    for one in (task, by_hand):
        one.refresh_from_db()
        assert one.goal == Goal.FINISH
    quota_use.mark_used_up()
    [event] = SourceEvent.objects.filter(kind="quota")
    assert (event.task_id, event.alarm) == (by_hand.pk, True), "its supervisor says it of the other one"
    page = browsing_as(cast, "viewer").get(f"/tasks/{by_hand.pk}/").content.decode()
    assert "Team alpha has used up its quota" in page and "Submit it again" in page
    publish_rows("stopped-3", 5)  # what a task held is published all the same
    assert IndexerFence.objects.get(task_id="task of stopped-3").published == 5
    lifecycle.end_task(task)
    waiting = ask(cast, "late", 1)
    assert not launcher.launch(waiting.pk)
    run(supervisor.pk)
    supervisor.refresh_from_db()
    assert not Task.objects.active().filter(supervisor_id=supervisor.pk).exists()
    assert supervisor.detailed_state == "QUOTA_USED_UP"
    stands = health_of_supervisor(cast.users["viewer"], supervisor)
    assert (stands.code, stands.calls) == ("quota_used_up", True)
    assert "Team alpha has used up its quota" in stands.text
    assert ("It continues at" in stands.cause) == (used_up == "rows_a_day")
    assert "Ask a site administrator" in stands.action
    answer = clients["owner"].get(ADDRESS).json()
    assert (answer["used_up"], answer["until"] is None) == (used_up, used_up == "stored_bytes")
    assert answer["text"] in browsing_as(cast, "owner").get(PAGE).content.decode()
    limit(cast)
    run(supervisor.pk)
    assert Task.objects.active().filter(supervisor_id=supervisor.pk).count() == 1
    assert launcher.launch(waiting.pk)


def test_rows_of_a_day_count_anew_on_the_next(cast: Cast) -> None:
    limit(cast, rows_a_day=10)
    publish_rows("daily", 10)
    quota_use.mark_used_up()
    assert quotas.team_over_quota(cast.alpha.pk) is not None
    yesterday = timezone.now().date() - timedelta(days=1)
    IndexerFence.objects.update(published_on=yesterday)
    quota_use.mark_used_up()
    assert quotas.team_over_quota(cast.alpha.pk) is None
    publish_rows("daily-2", 3)
    assert quota_use.use_of(cast.alpha).rows_a_day == 3


def test_a_publish_on_the_next_day_begins_its_indexers_count_anew(cast: Cast) -> None:
    source = make_source("two-days")
    epoch = start(source)
    send(request(epoch, {0: [(0, 4)]}))
    send(request(epoch, {0: [(4, 9)]}))
    assert quota_use.use_of(cast.alpha).rows_a_day == 9
    IndexerFence.objects.update(published_on=timezone.now().date() - timedelta(days=1))
    send(request(epoch, {0: [(9, 11)]}))
    assert quota_use.use_of(cast.alpha).rows_a_day == 2


def test_the_numbers_are_the_same_everywhere(cast: Cast, clients: dict[str, Client]) -> None:
    limit(cast, indexers=8, rows_a_day=1000, stored_bytes=10**9)
    reading(cast, "counted", 3)
    before = quota_use.use_of(cast.alpha).stored_bytes
    publish_rows("counted", 12)
    answer = clients["owner"].get(ADDRESS).json()
    assert answer["indexers"] == {"limit": 8, "used": 3}
    assert answer["rows_a_day"] == {"limit": 1000, "used": 12}
    assert answer["stored_bytes"] == {"limit": 10**9, "used": before + 120}
    listed = clients["owner"].get("/api/v1/datasources/").json()["results"]
    assert sum(d["size_bytes"] for d in listed) == before + 120
    page = browsing_as(cast, "owner").get(PAGE).content.decode()
    assert "37 %" in page
    assert "Set the limits" not in page


def test_only_the_sites_administrators_set_them_and_the_trail_has_it(cast: Cast, clients: dict[str, Client]) -> None:
    body = {"indexers": 4, "rows_a_day": None}
    assert clients["owner"].put(ADDRESS, body, content_type="application/json").status_code == 403
    assert clients["viewer"].get(ADDRESS).status_code == 403
    assert not Quota.objects.exists()
    assert clients["superuser"].put(ADDRESS, body, content_type="application/json").status_code == 200
    assert clients["superuser"].put(ADDRESS, body, content_type="application/json").status_code == 200
    entry = AuditEntry.objects.get(action="quota")
    assert entry.detail["before"] == dict.fromkeys(quotas.LIMITS)
    assert entry.detail["after"] == {**dict.fromkeys(quotas.LIMITS), "indexers": 4}
    form = browsing_as(cast, "superuser").post(PAGE, {"indexers": "", "rows_a_day": "50", "stored_bytes": "x"})
    assert form.status_code == 400
    assert Quota.objects.get().indexers == 4
    browsing_as(cast, "superuser").post(PAGE, {"indexers": "", "rows_a_day": "50", "stored_bytes": ""})
    assert [(q.indexers, q.rows_a_day) for q in Quota.objects.all()] == [(None, 50)]


@pytest.mark.parametrize(
    "body",
    [{"indexers": -1}, {"indexers": "many"}, {"rows_a_day": 10**19}, {"disks": 1}, {"stored_bytes": 1.5}, []],
    ids=str,
)
def test_bad_quotas_change_nothing(cast: Cast, clients: dict[str, Client], body: Any) -> None:
    assert clients["superuser"].put(ADDRESS, body, content_type="application/json").status_code == 400
    assert not Quota.objects.exists()


def test_replays_take_no_place_and_wait_for_none(cast: Cast, settings: LazySettings) -> None:
    settings.WORKER_CAPACITY = 1
    replay = Task(id="replay", kind=Task.Kind.REPLAY, datasource=cast.datasource, spec={}, created_at=timezone.now())
    replay.save()
    assert capacity.may_launch(replay)
