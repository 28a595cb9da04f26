"""Tasks over REST, ours and Druid's: submit, look, stop."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from controlplane.config.celery import app
from controlplane.datasources.models import Datasource
from controlplane.quarantine.models import FaultyRecord
from controlplane.supervisors.models import SpecVersion
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.selectors import task_log_tail
from controlplane.teams.models import Membership
from controlplane.teams.roles import Role
from tests.support.django_cast import SEED, STARTED, Cast, make_cast, speaking_as, spec_for

TASKS = "/api/v1/tasks/"
DRUID = "/druid/indexer/v1"


def post(client: Client, path: str, document: object = None, **headers: str) -> Any:
    return client.post(path, document, content_type="application/json", headers=headers)


def test_the_seeds_spec_is_taken_unchanged(owner: Client, cast: Cast) -> None:
    answer = post(owner, TASKS, SEED)
    assert answer.status_code == 201
    task = answer.json()
    assert answer.headers["Location"] == f"{TASKS}{task['id']}/"
    assert (task["datasource"], task["team"], task["status"]) == ("my_datasource", "alpha", "PENDING")
    assert task["spec"]["spec"]["ioConfig"]["topic"] == "my_topic"
    assert Datasource.objects.get(name="my_datasource").team == cast.alpha


def test_the_team_header_chooses_among_several(owner: Client, cast: Cast) -> None:
    Membership.objects.create(user=cast.users["owner"], team=cast.beta, role=Role.ADMIN)
    assert post(owner, TASKS, SEED).status_code == 400
    assert not Datasource.objects.filter(name="my_datasource").exists()
    assert post(owner, TASKS, SEED, **{"X-Headgate-Team": "gamma"}).status_code == 400
    assert post(owner, TASKS, SEED, **{"X-Headgate-Team": "beta"}).json()["team"] == "beta"


def test_every_fault_of_a_spec_is_named_by_its_path(owner: Client) -> None:
    broken = spec_for("flights", topic="no such/name", taskCount=0)
    broken["dataSchema"]["granularity"] = {}
    answer = post(owner, TASKS, broken)
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/problem+json")
    faults = {e["path"]: e for e in answer.json()["errors"]}
    assert set(faults) == {"ioConfig.topic", "ioConfig.taskCount", "dataSchema.granularity"}
    assert faults["ioConfig.topic"]["pointer"] == "/ioConfig/topic"
    assert Task.objects.count() == 1


def test_a_secret_property_is_never_shown(owner: Client) -> None:
    properties = {"bootstrap.servers": "k:9092", "sasl.username": "me", "sasl.password": "canary-4711"}
    made = post(owner, TASKS, spec_for("flights", consumerProperties=properties)).json()
    for path in (f"{TASKS}{made['id']}/", TASKS, f"{TASKS}{made['id']}/report/", f"{DRUID}/task/{made['id']}"):
        assert b"canary-4711" not in owner.get(path).content
    checked = post(owner, "/api/v1/validate/", {"kind": "task", "spec": spec_for("x", consumerProperties=properties)})
    assert checked.json()["canonical"]["spec"]["ioConfig"]["consumerProperties"]["sasl.password"] == "******"


def test_filters(viewer: Client, cast: Cast) -> None:
    Task.objects.create(
        id="repair_1", kind=Task.Kind.REPAIR, datasource=cast.datasource, spec={}, status="FAILED", created_at=STARTED
    )
    ids = {"share": cast.task.pk, "repair": "repair_1"}
    wanted = {
        "": ["repair", "share"],
        "status=RUNNING": ["share"],
        "status=FAILED": ["repair"],
        "kind=repair": ["repair"],
        "datasource=flights": ["repair", "share"],
        "datasource=other": [],
        "supervisor=flights": ["share"],
        "search=abcdef": ["share"],
        "status=FAILED&kind=share_group": [],
        "team=alpha": ["repair", "share"],
        "team=beta": [],
    }
    found = {query: [t["id"] for t in viewer.get(f"{TASKS}?{query}").json()["results"]] for query in wanted}
    assert found == {query: [ids[name] for name in names] for query, names in wanted.items()}


def test_pages_of_tasks_made_at_the_same_time(viewer: Client, cast: Cast) -> None:
    for n in range(7):
        Task.objects.create(id=f"t{n}", kind="share_group", datasource=cast.datasource, spec={}, created_at=STARTED)
    seen, address = [], f"{TASKS}?limit=2"
    while address:
        page = viewer.get(address).json()
        seen += [t["id"] for t in page["results"]]
        address = page["next"]
    assert seen == [*(f"t{n}" for n in reversed(range(7))), cast.task.pk]


def test_the_list_of_tasks_costs_no_query_a_row(
    viewer: Client, cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for n in range(20):
        Task.objects.create(id=f"t{n}", kind="share_group", datasource=cast.datasource, spec={}, created_at=STARTED)
    with django_assert_num_queries(3):  # the token, masks, the page
        tasks = viewer.get(TASKS).json()["results"]
    assert [t["published"] for t in tasks] == [0] * 20 + [1500]


def test_the_report_adds_up_by_indexer(viewer: Client, cast: Cast) -> None:
    report = viewer.get(f"{TASKS}{cast.task.pk}/report/").json()
    assert report["totals"]["adds_up"] is True
    assert [i["totals"]["published"] for i in report["indexers"]] == [1000, 500]
    assert [i["totals"]["polled"] for i in report["indexers"]] == [1008 + 504, 540]
    assert sum(i["totals"]["polled"] for i in report["indexers"]) == report["totals"]["polled"]
    assert [i["state"] for i in report["indexers"]] == ["reading", "reading"]
    assert report["parse_exceptions"][0]["error"] == "Malformed JSON at byte 12"
    assert [e["kind"] for e in report["events"]] == ["gap"]
    assert report["why_nothing"] == []


def test_the_report_keeps_as_many_parse_exceptions_as_the_spec_says(viewer: Client, cast: Cast) -> None:
    cast.task.spec["spec"]["tuningConfig"]["maxSavedParseExceptions"] = 0
    cast.task.save()
    assert viewer.get(f"{TASKS}{cast.task.pk}/report/").json()["parse_exceptions"] == []


def test_a_report_has_records_with_a_faulty_field_too(viewer: Client, cast: Cast) -> None:
    FaultyRecord.objects.create(
        source=cast.source,
        datasource=cast.datasource,
        task_id=cast.task.pk,
        partition=2,
        offset=5,
        delivery_count=1,
        error="field 'n' is not a number",
        payload=b'{"n": "x"}',
        payload_size=10,
        created_at=STARTED + timedelta(days=9000),
    )
    found = viewer.get(f"{TASKS}{cast.task.pk}/report/").json()["parse_exceptions"]
    assert [(r["reason"], r["offset"], r["id"] is None) for r in found] == [
        ("processed_with_error", 5, True),
        ("unparseable", 7, False),
    ]
    druid = viewer.get(f"{DRUID}/task/{cast.task.pk}/reports").json()["ingestionStatsAndErrors"]["payload"]
    events = druid["unparseableEvents"]["buildSegments"]
    assert [e["errorType"] for e in events] == ["processedWithError", "unparseable"]
    assert (events[0]["input"], events[0]["details"]) == ('{"n": "x"}', ["field 'n' is not a number"])


def test_a_report_names_options_without_effect(viewer: Client, cast: Cast) -> None:
    io_config = cast.task.spec["spec"]["ioConfig"]
    io_config["consumerProperties"]["session.timeout.ms"] = "10000"
    io_config |= {"useEarliestOffset": False, "idleConfig": {"enabled": True}}
    cast.task.spec["context"] = {"priority": 1}
    cast.task.save()
    named = viewer.get(f"{TASKS}{cast.task.pk}/report/").json()["options_without_effect"]
    paths = [text.partition(":")[0] for text in named]
    assert paths == ["ioConfig.consumerProperties['session.timeout.ms']", "ioConfig.idleConfig", "context"]


def test_stop_and_finish(clients: dict[str, Client], cast: Cast) -> None:
    path = f"{TASKS}{cast.task.pk}/stop/"
    assert post(clients["operator"], path, {"finish": True}).json()["goal"] == Goal.FINISH
    assert post(clients["operator"], path).json()["goal"] == Goal.STOP
    Task.objects.update(status=Status.SUCCESS)
    assert post(clients["operator"], path).status_code == 409


def write_log(task: Task, content: bytes) -> Path:
    log = Path(settings.TASK_DIR) / task.pk / "spark.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(content)
    return log


def test_the_log_is_plain_text_from_the_first_whole_line(viewer: Client, cast: Cast) -> None:
    lines = b"".join(b"line %06d <script>\n" % n for n in range(10_000))
    log = write_log(cast.task, lines + b"\xff\x00 end")
    answer = viewer.get(f"{TASKS}{cast.task.pk}/log/", headers={"Accept": "text/html"})
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    text = answer.content.decode()
    assert text.startswith("line 00")
    assert text.endswith("line 009999 <script>\n\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} end")
    assert len(answer.content) <= 65536 + 8
    assert viewer.get(f"{DRUID}/task/{cast.task.pk}/log").content == answer.content
    log.unlink()
    assert viewer.get(f"{TASKS}{cast.task.pk}/log/").content == b""


@pytest.mark.parametrize("task_id", ["../outside", "a/../../outside", "/etc", "..", ".", "", "x" * 300])
def test_a_log_is_never_read_outside_the_tasks_folder(db: None, tmp_path: Path, task_id: str) -> None:
    outside = Path(settings.TASK_DIR).parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "spark.log").write_text("secret")
    (Path(settings.TASK_DIR) / "spark.log").write_text("secret")
    assert task_log_tail(Task(id=task_id)) == ""


def test_a_log_that_is_a_link_is_not_followed(db: None, tmp_path: Path) -> None:
    (tmp_path / "spark.log").write_text("secret")
    tasks = Path(settings.TASK_DIR)
    (tasks / "linked-folder").symlink_to(tmp_path)
    (tasks / "linked-file").mkdir()
    (tasks / "linked-file" / "spark.log").symlink_to(tmp_path / "spark.log")
    assert task_log_tail(Task(id="linked-folder")) == ""
    assert task_log_tail(Task(id="linked-file")) == ""


def test_druid_submit_status_and_payload(owner: Client) -> None:
    made = post(owner, f"{DRUID}/task", SEED)
    assert made.status_code == 200
    assert set(made.json()) == {"task"}
    task_id = made.json()["task"]
    status = owner.get(f"{DRUID}/task/{task_id}/status").json()
    assert status["task"] == task_id
    expected = {
        "id": task_id,
        "groupId": task_id,
        "type": "index_kafka_share_group",
        "statusCode": "RUNNING",
        "status": "RUNNING",
        "runnerStatusCode": "WAITING",
        "duration": -1,
        "dataSource": "my_datasource",
        "errorMsg": None,
    }
    assert {k: status["status"][k] for k in expected} == expected
    payload = owner.get(f"{DRUID}/task/{task_id}").json()
    assert payload["payload"]["spec"]["dataSchema"]["dataSource"] == "my_datasource"


def test_druid_task_that_ended(viewer: Client, cast: Cast) -> None:
    Task.objects.update(status="FAILED", error="lost", ended_at=STARTED + timedelta(seconds=12.5))
    status = viewer.get(f"{DRUID}/task/{cast.task.pk}/status").json()["status"]
    assert (status["status"], status["runnerStatusCode"], status["duration"], status["errorMsg"]) == (
        "FAILED",
        "NONE",
        12500,
        "lost",
    )


def test_druid_reports(viewer: Client, cast: Cast) -> None:
    reports = viewer.get(f"{DRUID}/task/{cast.task.pk}/reports").json()
    payload = reports["ingestionStatsAndErrors"]["payload"]
    assert payload["rowStats"]["totals"]["buildSegments"] == {
        "processed": 1480,
        "processedBytes": 150_000,
        "processedWithError": 20,
        "thrownAway": 42,
        "unparseable": 1,
    }
    assert payload["unparseableEvents"]["buildSegments"][0]["offset"] == 7
    assert reports["headgate"]["payload"]["released"] == 504
    assert reports["headgate"]["payload"]["adds_up"] is True


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 1),
        ("state=running", 1),
        ("state=pending", 0),
        ("state=complete", 0),
        ("state=waiting", 0),
        ("datasource=flights&max=5", 1),
        ("datasource=none", 0),
        ("max=0", 0),
        ("type=repair", 0),
        ("createdTimeInterval=2025-06-01_2025-06-02", 1),
        ("createdTimeInterval=2025-06-02_2025-06-03", 0),
    ],
)
def test_druid_tasks_filters(viewer: Client, query: str, count: int) -> None:
    assert len(viewer.get(f"{DRUID}/tasks?{query}").json()) == count


def test_druid_shutdown(clients: dict[str, Client], cast: Cast) -> None:
    answer = clients["operator"].post(f"{DRUID}/task/{cast.task.pk}/shutdown")
    assert (answer.status_code, answer.json()) == (200, {"task": cast.task.pk})
    cast.task.refresh_from_db()
    assert cast.task.goal == Goal.STOP


def test_druid_errors_have_druids_form_with_the_faults_by_path(owner: Client) -> None:
    answer = post(owner, f"{DRUID}/task", spec_for("flights", pollTimeout="soon"))
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/json")
    error = answer.json()
    assert {k: error[k] for k in ("error", "errorCode", "persona", "category")} == {
        "error": "druidException",
        "errorCode": "invalidInput",
        "persona": "USER",
        "category": "INVALID_INPUT",
    }
    assert [e["path"] for e in error["context"]["errors"]] == ["ioConfig.pollTimeout"]
    assert "ioConfig.pollTimeout" in error["errorMessage"]
    missing = owner.get(f"{DRUID}/task/none/status")
    assert (missing.status_code, missing.json()["category"]) == (404, "NOT_FOUND")


def test_a_spec_that_is_refused_makes_nothing(owner: Client) -> None:
    counts = (Datasource.objects.count(), Task.objects.count(), SpecVersion.objects.count())
    assert post(owner, TASKS, spec_for("new", taskCount=500)).status_code == 400  # more than the slots there are
    assert (Datasource.objects.count(), Task.objects.count(), SpecVersion.objects.count()) == counts


@pytest.mark.django_db(transaction=True)
def test_a_spec_is_taken_while_the_broker_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are committed by then: an error would say that nothing was done."""
    monkeypatch.setattr(app.conf, "broker_url", "redis://127.0.0.1:1/0")
    client = speaking_as(make_cast(), "owner")
    assert post(client, TASKS, SEED).status_code == 201
    assert post(client, "/api/v1/supervisors/", SEED).status_code == 201
    assert Task.objects.filter(datasource__name="my_datasource", status=Status.PENDING, launched_at=None).exists()
