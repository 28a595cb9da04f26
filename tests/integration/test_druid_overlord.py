"""Druid's read-only addresses, held against what a real Overlord answers; and what is at no address."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from controlplane.tasks.models import Status, Task
from tests.support.django_cast import STARTED, Cast
from tests.support.druid_overlord import GOLDEN, V1, fits, shape_of
from tests.support.waiting import await_a_long_day

RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))
ANSWERS: dict[str, Any] = RECORDED["answers"]
READS = [path for path, told in ANSWERS.items() if not path.startswith("POST ") and told["status"] == 200]


@pytest.fixture
def tasks(cast: Cast) -> dict[str, str]:
    """By Druid's word for its state, a task's id."""
    made = {"running": cast.task.pk}
    states: dict[str, dict[str, Any]] = {
        "waiting": {"status": Status.PENDING},
        "pending": {"status": Status.PENDING, "launched_at": STARTED},
        "complete": {"status": Status.SUCCESS, "started_at": STARTED, "ended_at": STARTED + timedelta(seconds=5)},
    }
    for state, values in states.items():
        usual: dict[str, Any] = {
            "kind": "share_group",
            "datasource": cast.datasource,
            "spec": cast.task.spec,
            "created_at": STARTED,
        }
        made[state] = Task.objects.create(id=f"a-{state}-one", **usual, **values).pk
    return made


def ask(client: Client, path: str, body: Any = None) -> Any:
    return client.get(path) if body is None else client.post(path, body, content_type="application/json")


def body_of(answer: Any) -> Any:
    try:
        return answer.json()
    except ValueError:
        return answer.content.decode()


@pytest.mark.parametrize("path", READS)
def test_what_is_read_has_the_form_of_a_real_druid(viewer: Client, tasks: dict[str, str], path: str) -> None:
    told = ANSWERS[path]
    answer = ask(viewer, path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, told["type"])
    theirs = shape_of(told["body"])
    assert fits(shape_of(body_of(answer)), theirs, path) == []


def test_a_reports_stats_are_where_a_real_druid_has_them(viewer: Client, tasks: dict[str, str]) -> None:
    """Of a live task of Druid 33: averages and totals; of one that has ended: the phases."""
    reports = {state: ask(viewer, f"{V1}/task/{task}/reports").json() for state, task in tasks.items()}
    stats = {state: r["ingestionStatsAndErrors"]["payload"]["rowStats"] for state, r in reports.items()}
    assert set(stats["running"]) == {"movingAverages", "totals"}
    assert set(stats["running"]["movingAverages"]["buildSegments"]) == {"1m", "5m", "15m"}
    names = {"processed", "processedBytes", "processedWithError", "thrownAway", "unparseable"}
    assert {*map(frozenset, stats["running"]["movingAverages"]["buildSegments"].values())} == {frozenset(names)}
    assert set(stats["running"]["totals"]["buildSegments"]) == names
    assert stats["complete"]["buildSegments"] == stats["complete"]["totals"]["buildSegments"]


def test_each_list_has_the_tasks_of_its_state(viewer: Client, tasks: dict[str, str]) -> None:
    found = {state: [t["id"] for t in ask(viewer, f"{V1}/{state}Tasks").json()] for state in tasks}
    assert found == {state: [task] for state, task in tasks.items()}
    assert len(ask(viewer, f"{V1}/completeTasks?n=0").json()) == 0
    assert ask(viewer, f"{V1}/completeTasks?n=x").status_code == 400
    kind = ask(viewer, f"{V1}/runningTasks").json()[0]["type"]
    assert [t["id"] for t in ask(viewer, f"{V1}/runningTasks?type={kind}").json()] == [tasks["running"]]


def test_statuses_are_told_by_id(viewer: Client, tasks: dict[str, str]) -> None:
    told = ask(viewer, f"{V1}/taskStatus", [*tasks.values(), "none"]).json()
    assert {task: status["status"] for task, status in told.items()} == {
        tasks["running"]: "RUNNING",
        tasks["waiting"]: "RUNNING",
        tasks["pending"]: "RUNNING",
        tasks["complete"]: "SUCCESS",
    }
    assert told[tasks["complete"]]["duration"] == 5000
    theirs = shape_of(ANSWERS[f"POST {V1}/taskStatus"]["body"])
    assert fits(shape_of(told), theirs, "taskStatus") == []


@pytest.mark.parametrize("body", [[], {}, "a", [1], [["a"]], ["a\x00b"], ["x"] * 1001])
def test_odd_lists_of_ids_are_refused(viewer: Client, body: Any) -> None:
    answer = ask(viewer, f"{V1}/taskStatus", body)
    assert answer.status_code == 400 == ANSWERS[f"POST {V1}/taskStatus []"]["status"]
    assert answer.json()["errorCode"] == "invalidInput"


def test_another_teams_tasks_are_in_none_of_them(clients: dict[str, Client], tasks: dict[str, str]) -> None:
    outsider = clients["outsider"]
    for state in tasks:
        assert ask(outsider, f"{V1}/{state}Tasks").json() == []
    assert ask(outsider, f"{V1}/taskStatus", list(tasks.values())).json() == {}
    [worker] = ask(outsider, f"{V1}/workers").json()
    assert (worker["runningTasks"], worker["availabilityGroups"], worker["currCapacityUsedByTaskType"]) == ([], [], {})
    assert worker["lastCompletedTaskTime"] == "1970-01-01T00:00:00.000Z"


def test_the_pool_is_one_worker(clients: dict[str, Client], tasks: dict[str, str], settings: Any) -> None:
    settings.WORKER_CAPACITY = 7
    [worker] = ask(clients["viewer"], f"{V1}/workers").json()
    total = ask(clients["viewer"], f"{V1}/totalWorkerCapacity").json()
    assert worker["worker"]["capacity"] == 7 == total["currentClusterCapacity"]
    assert worker["currCapacityUsed"] == total["usedClusterCapacity"]
    assert worker["runningTasks"] == [tasks["running"]]
    assert worker["lastCompletedTaskTime"] == "2025-06-01T12:00:05.000Z"


def test_nothing_is_locked(viewer: Client) -> None:
    for form in ("", "/v2"):
        assert ask(viewer, f"{V1}/lockedIntervals{form}", [{"datasource": "flights"}]).json() == {}


def test_no_setting_of_the_installation_is_told(viewer: Client) -> None:
    told = ask(viewer, "/status/properties").json()
    assert set(told) == {"druid.service", "druid.host", "druid.plaintextPort", "headgate.version"}


def test_who_must_set_up_a_second_factor_is_told_so(cast: Cast, settings: Any) -> None:
    settings.REQUIRE_SECOND_FACTOR = "all"
    browser = Client()
    browser.force_login(cast.users["viewer"])
    assert ask(browser, "/status").status_code == 403
    assert ask(browser, "/status/health").json() is True


@pytest.mark.parametrize(
    "path",
    [
        "/druid",
        "/druid/",
        "/druid/none",
        "/druid/indexer/v1/none",
        "/druid/indexer/v1/task/a/none",
        "/druid/v2/",
        "/druid/a%0Ab",
        "/druid/indexer/v1/none%0A",
        "/druid//indexer",
        "/druid/%FF",
        "/api",
        "/api/none",
        "/api/v1/none/",
        "/api/v1/a%0Ab/",
        "/status/none",
        "/status/health/none",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PATCH"])
def test_what_is_at_no_address_is_404_as_json(client: Client, db: None, path: str, method: str) -> None:
    answer = client.generic(method, path)
    assert answer.status_code == 404
    told = answer.json()
    if path.startswith("/api"):
        assert (answer.headers["Content-Type"], told["status"]) == ("application/problem+json", 404)
    else:
        assert (answer.headers["Content-Type"], told["errorCode"]) == ("application/json", "notFound")


@pytest.mark.parametrize("path", ["/druid/indexer/v1/workers", "/status", "/api/v1/supervisors/"])
def test_another_method_is_405_as_json(clients: dict[str, Client], path: str) -> None:
    answer = clients["owner"].delete(path)
    assert answer.status_code == 405
    assert answer.headers["Content-Type"] in ("application/json", "application/problem+json")


@pytest.mark.parametrize("path", ["/druid/indexer/v1/workers", "/druid/none", "/api/none", "/status/health"])
def test_a_host_that_is_not_the_sites_is_400_as_json(client: Client, db: None, settings: Any, path: str) -> None:
    settings.ALLOWED_HOSTS = ["headgate.example"]
    answer = client.get(path, headers={"Host": "elsewhere.example"})
    assert answer.status_code == 400
    assert answer.json()


def test_a_slash_at_the_end_makes_no_difference(viewer: Client, cast: Cast) -> None:
    for path in ("/status/", "/status/health/", f"{V1}/workers/"):
        assert ask(viewer, path).status_code == 200, path


def write_log(task: Task, content: bytes) -> None:
    log = Path(settings.TASK_DIR) / task.pk / "spark.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(content)


def test_a_logs_offset_means_what_it_means_in_druid(viewer: Client, cast: Cast) -> None:
    whole = b"".join(b"line %04d \xc3\xa9\n" % n for n in range(400))
    write_log(cast.task, whole)
    path, length = f"{V1}/task/{cast.task.pk}/log", RECORDED["log"]["length"]
    for name, start in RECORDED["log"].items():
        if name == "length":
            continue
        offset = {"longer": -len(whole) - 5, "all": len(whole)}.get(name) or int(name)
        expected = whole[len(whole) + start - length :] if start > 10 else whole[start:]
        answer = viewer.get(f"{path}?offset={offset}")
        assert answer.content == expected, name
        assert answer.headers["Content-Type"].startswith("text/plain")
    assert viewer.get(f"{path}?offset={len(whole) + 5}").content == b""
    for odd in ("x", "1.5", "", "9" * 30, "+1", "\u0661"):
        assert viewer.get(path, {"offset": odd}).status_code == 400, odd


def test_a_long_log_is_read_on_by_its_offset(viewer: Client, cast: Cast) -> None:
    whole = bytes(range(1, 128)) * 20_000
    write_log(cast.task, whole)
    found = b""
    while part := viewer.get(f"{V1}/task/{cast.task.pk}/log?offset={len(found)}").content:
        assert len(part) <= 1 << 20
        found += part
    assert found == whole


def test_the_history_tells_suspensions_as_druids_does(clients: dict[str, Client], cast: Cast) -> None:
    await_a_long_day()
    owner, path = clients["owner"], f"{V1}/supervisor/flights"
    before = owner.get(f"{path}/history").json()
    assert owner.post(f"{path}/suspend").status_code == 200
    for action in ("resume", "suspend", "resume", "terminate"):
        assert owner.post(f"{path}/{action}").status_code == 200, action
    history = owner.get(f"{path}/history").json()
    added = history[: len(history) - len(before)][::-1]
    kinds = {"noop": "NoopSupervisorSpec", "kafka": added[0]["spec"]["type"]}
    recorded = [[{"NoopSupervisorSpec": "noop"}.get(kind, kind), suspended] for kind, suspended in RECORDED["history"]]
    assert [[e["spec"]["type"], e["spec"]["suspended"]] for e in added] == [
        [kinds[kind], suspended] for kind, suspended in recorded
    ]
    assert {e["version"] for e in added} <= {e["version"] for e in history}
    assert all(e["spec"]["ioConfig"]["topic"] == "flights-topic" for e in added[:-1])
    assert added[0]["version"][:10] == timezone.now().date().isoformat()
    everything = owner.get(f"{V1}/supervisor/history").json()
    assert everything["flights"] == history
