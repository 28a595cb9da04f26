"""The tables of ``sys`` in SQL, each beside what REST says of the same thing."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from controlplane.datasources.masking import set_masks
from controlplane.datasources.models import Datasource
from controlplane.publishing.models import Publish
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.query import limits, sys_rows
from controlplane.query.sys_tables import sys_columns
from controlplane.segments.models import Removal, Replacement, Segment
from controlplane.tasks.models import Task
from controlplane.teams.models import Team
from controlplane.teams.roles import Scope
from tests.support.django_cast import PAYLOAD, STARTED, Cast, serving
from tests.support.sql import problem, result, rows


@pytest.fixture(autouse=True)
def deep(tmp_path: Path, settings: Any) -> None:
    settings.DEEP_STORAGE = str(tmp_path / "deep")


def dicts(client: Client, query: str) -> list[dict[str, Any]]:
    answer = result(client, query)
    return [dict(zip([c["name"] for c in answer["columns"]], row, strict=True)) for row in answer["rows"]]


def listed(client: Client, address: str) -> list[dict[str, Any]]:
    response = client.get(f"/api/v1/{address}")
    assert response.status_code == 200, response.content
    found: list[dict[str, Any]] = response.json()["results"]
    return found


def assert_same(found: dict[str, Any], rest: dict[str, Any], *, besides: set[str]) -> None:
    """Each column is REST's field of its name, but for those that the caller compares."""
    for name in found.keys() - besides:
        assert _plain(found[name]) == _plain(rest[name]), name


def _plain(value: Any) -> Any:
    """Times with and without zeros at their end are the same."""
    return value.replace(".000000Z", "Z") if isinstance(value, str) else value


def test_segments_are_those_of_rest(clients: dict[str, Client], cast: Cast) -> None:
    found = dicts(clients["viewer"], "SELECT * FROM sys.segments WHERE datasource = 'flights' AND used")
    by_id = {row["id"]: row for row in found}
    rest = listed(clients["viewer"], "datasources/flights/segments/?limit=100")
    assert by_id.keys() == {row["id"] for row in rest} == {str(s.pk) for s in cast.segments}
    of_state = {"unused_at", "replaced_by", "removed_by", "removal"}
    for row in rest:
        row |= {"team": "alpha", "datasource": "flights", "used": True}
        assert_same(by_id[row["id"]], row, besides=of_state)
        assert all(by_id[row["id"]][name] is None for name in of_state)
    total = f"SELECT sum(rows), sum(size_bytes) FROM sys.segments WHERE task = '{cast.task.pk}'"
    assert rows(clients["viewer"], total) == [[1500, 15_000]]


def test_unused_segments_say_why(clients: dict[str, Client], cast: Cast) -> None:
    replaced, removed = cast.segments[:2]
    made = Replacement.objects.create(
        id=cast.segments[2].pk,
        datasource=cast.datasource,
        interval_start=replaced.interval_start,
        interval_end=replaced.interval_end,
        task_id="compact",
        taken=[replaced.pk],
        made=[cast.segments[3].pk],
        rows_before=1,
        rows_after=1,
        bytes_before=1,
        bytes_after=1,
        created_at=STARTED,
    )
    removal = Removal.objects.create(
        datasource=cast.datasource, by="owner", what='all, "quoted"\nlines', created_at=STARTED
    )
    Segment.objects.filter(pk=replaced.pk).update(used=False, unused_at=STARTED, replaced_by=made.pk)
    Segment.objects.filter(pk=removed.pk).update(used=False, unused_at=STARTED, removal=removal)
    columns = "id, unused_at, replaced_by, removed_by, removal"
    query = f"SELECT {columns} FROM sys.segments WHERE NOT used ORDER BY removal NULLS FIRST"
    first, second = rows(clients["viewer"], query)
    assert first == [str(replaced.pk), "2025-06-01T12:00:00Z", [str(cast.segments[3].pk)], None, None]
    assert second == [str(removed.pk), "2025-06-01T12:00:00Z", None, "owner", 'all, "quoted"\nlines']
    story = clients["viewer"].get(f"/api/v1/datasources/flights/segments/{replaced.pk}/").json()
    assert story["gone_to"]["segments"] == first[2]


def test_supervisors_are_those_of_rest(clients: dict[str, Client], cast: Cast) -> None:
    [found] = dicts(clients["viewer"], "SELECT * FROM sys.supervisors")
    [rest] = listed(clients["viewer"], "supervisors/")
    health = {"health", "health_text", "health_since", "lag"}
    assert_same(found, rest, besides=health)
    assert found["health"] == rest["health"]["code"]
    assert (found["health_text"], found["lag"]) == (rest["health"]["text"], rest["health"]["behind"])
    assert _plain(found["health_since"]) == rest["health"]["since"]
    cast.supervisor.terminated_at = STARTED
    cast.supervisor.save()
    assert rows(clients["viewer"], "SELECT id, terminated_at FROM sys.supervisors") == [
        ["flights", "2025-06-01T12:00:00Z"]
    ]


def test_tasks_are_those_of_rest(clients: dict[str, Client], cast: Cast) -> None:
    Task.objects.filter(pk=cast.task.pk).update(error="a, \"b\"\n'c'", submitted_by=cast.users["owner"])
    [found] = dicts(clients["viewer"], "SELECT * FROM sys.tasks")
    [rest] = listed(clients["viewer"], "tasks/")
    assert_same(found, rest, besides={"unparseable", "segments"})
    assert (found["published"], found["unparseable"], found["segments"]) == (1500, 1, 4)
    assert found["error"] == "a, \"b\"\n'c'"


def test_quarantine_is_that_of_rest(clients: dict[str, Client], cast: Cast) -> None:
    [found] = dicts(clients["viewer"], "SELECT * FROM sys.quarantine")
    [rest] = listed(clients["viewer"], "datasources/flights/quarantine/")
    of_source = {"topic", "topic_id", "group"}
    coded = {"key", "payload"}
    assert_same(found, rest, besides={"team", "datasource", "publish_id", "ended_at", *of_source, *coded})
    assert {name: found[name] for name in of_source} == {name: rest["source"][name] for name in of_source}
    assert {name: found[name] for name in coded} == {name: rest[f"{name}_base64"] for name in coded}
    assert base64.b64decode(found["payload"]) == PAYLOAD
    assert (found["publish_id"], found["team"]) == (str(cast.quarantined.publish_id), "alpha")
    QuarantinedRecord.objects.update(timestamp_ms=2**62, payload=b"\xff" * 9000, key=None)
    query = "SELECT timestamp, octet_length(payload), payload_size, key FROM sys.quarantine"
    assert rows(clients["viewer"], query) == [[None, 4096, 9000, None]]


def test_publishes_are_those_of_rest(clients: dict[str, Client], cast: Cast) -> None:
    publish = Publish.objects.create(
        id=cast.quarantined.publish_id,
        fence=cast.fences[0],
        epoch=1,
        segment_ids=[str(s.pk) for s in cast.segments[:2]],
        counters={"published": 900, "unparseable": 1},
        created_at=STARTED,
    )
    Publish.objects.create(id=cast.segments[0].pk, fence=cast.fences[0], epoch=1, abandoned=True, created_at=STARTED)
    [rest] = listed(clients["viewer"], "datasources/flights/publishes/")
    [found] = dicts(clients["viewer"], "SELECT * FROM sys.publishes")
    assert (found["publish_id"], found["number"]) == (rest["publish_id"], rest["number"]) == (str(publish.pk), 1)
    assert _plain(found["published_at"]) == rest["published_at"]
    assert (found["rows"], found["task"], found["indexer"], found["epoch"]) == (900, cast.task.pk, 0, 1)
    assert sorted(found["segment_ids"]) == sorted(file["id"] for file in rest["files"])
    assert rows(clients["viewer"], "SELECT counters ->> 'unparseable' FROM sys.publishes") == [["1"]]


def test_offsets_say_what_became_of_each_record(clients: dict[str, Client], cast: Cast) -> None:
    query = "SELECT * FROM sys.offsets WHERE topic = 'flights-topic' AND partition = 0 ORDER BY start_offset, at"
    found = dicts(clients["viewer"], query)
    assert [(r["start_offset"], r["end_offset"], r["outcome"]) for r in found] == [
        (0, 7, "stored"),
        (3, 4, "duplicate"),
        (7, 8, "unparseable"),
        (8, 10, "stored"),
        (10, 12, "thrown_away"),
        (12, 500, "stored"),
        (500, 700, "settled"),
        (710, 1000, "settled"),
    ]
    for offset in (0, 7, 9, 11, 12, 499, 500, 999):
        rest = clients["viewer"].get(f"/api/v1/records/?topic=flights-topic&partition=0&offset={offset}").json()
        fates = {(f["outcome"], f["publish_id"], f["task"] or None, f["indexer"]) for f in rest["fates"]}
        here = [r for r in found if r["start_offset"] <= offset < r["end_offset"]]
        assert {(r["outcome"], r["publish_id"], r["task"], r["indexer"]) for r in here} == fates, offset
        segments = {s["id"] for f in rest["fates"] for s in f["segments"]}
        assert {r["segment_id"] for r in here if r["segment_id"]} == segments
    assert rows(
        clients["viewer"], "SELECT DISTINCT partition, start_offset, end_offset FROM sys.offsets WHERE partition = 1"
    ) == [[1, 0, 600]]
    later = "SELECT outcome FROM sys.offsets WHERE at > '2025-06-01 12:00:00'"
    assert rows(clients["viewer"], later) == [["duplicate"]]
    assert rows(clients["viewer"], "SELECT count(*) FROM sys.offsets WHERE outcome = 'stored'") == [[3]]


def test_conditions_that_narrow_do_not_change_the_rows(clients: dict[str, Client], cast: Cast) -> None:
    """Each condition beside one that means the same and narrows nothing."""
    for table, narrowing, plain in (
        ("segments", "interval_start >= '2013-01-02'", "interval_start + INTERVAL 0 DAY >= '2013-01-02'"),
        ("segments", "min_time BETWEEN '2013-01-01' AND '2013-01-02'", "min_time::DATE = DATE '2013-01-01'"),
        ("segments", "partition_num IN (1, 5)", "partition_num + 0 = 1"),
        ("segments", "partition_num = '1'", "partition_num + 0 = 1"),
        ("segments", "NOT used", "used::INT = 0"),
        ("segments", "used = true AND version <> ''", "used::INT = 1"),
        ("segments", "datasource = 'no''thing'", "false"),
        ("segments", "datasource IN ('flights', 'x')", "true"),
        ("segments", "partition_num = 99999999999999999", "false"),
        ("tasks", "status = 'RUNNING' AND created_at < now()", "true"),
        ("tasks", "supervisor = 'flights'", "true"),
        ("tasks", "datasource || '' = 'flights' OR status = 'x'", "true"),
        ("quarantine", "partition = 0 AND \"offset\" = 7 AND topic = 'flights-topic'", "true"),
        ("supervisors", "id = 'nothing'", "false"),
        ("supervisors", "state = 'RUNNING'", "state || '' = 'RUNNING'"),
    ):
        counts = [rows(clients["viewer"], f"SELECT count(*) FROM sys.{table} WHERE {w}") for w in (narrowing, plain)]
        assert counts[0] == counts[1], narrowing
    joined = "SELECT count(*) FROM sys.tasks t LEFT JOIN sys.segments s ON s.task = t.id WHERE t.status = 'RUNNING'"
    assert rows(clients["viewer"], joined) == [[4]]
    assert result(clients["viewer"], "EXPLAIN FROM sys.segments WHERE partition_num = 1")["tables"][0]["rows"] == 1


def test_every_column_has_its_type(clients: dict[str, Client], cast: Cast) -> None:
    for name, columns in sys_columns().items():
        described = result(clients["viewer"], f"SELECT * FROM SYS.{name.upper()} WHERE false")["columns"]
        shown = [(c["name"], c["type"].replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ")) for c in described]
        assert shown == columns


def test_explain_names_them(clients: dict[str, Client], cast: Cast) -> None:
    [table] = result(clients["viewer"], "EXPLAIN SELECT id FROM sys.segments WHERE rows > 400")["tables"]
    assert (table["team"], table["datasource"], table["rows"], table["files"]) == ("sys", "segments", 4, 0)
    assert table["size_bytes"] > 0
    assert ".csv" not in str(result(clients["viewer"], "EXPLAIN ANALYZE SELECT * FROM sys.segments"))


def test_nobody_sees_another_teams_rows(clients: dict[str, Client], cast: Cast) -> None:
    """Row 32 of the security checklist."""
    for name in sys_columns():
        assert rows(clients["outsider"], f"SELECT count(*) FROM sys.{name} WHERE datasource = 'flights'") == [[0]]
        assert rows(clients["outsider"], f"SELECT count(*) FROM sys.{name}") == [[0]]
        if name != "publishes":
            assert rows(clients["superuser"], f"SELECT count(*) > 0 FROM sys.{name}") == [[True]]


def test_a_token_for_named_datasources_sees_these_alone(cast: Cast) -> None:
    """Row 32 of the security checklist."""
    other = Datasource.objects.create(name="other", team=cast.alpha)
    for row, name in ((cast.segments[0], "segments"), (cast.quarantined, "quarantine"), (cast.task, "tasks")):
        type(row).objects.filter(pk=row.pk).update(datasource=other)
        seen = f"SELECT DISTINCT datasource FROM sys.{name}"
        assert rows(serving(cast, Scope.READ, "other"), seen) == [["other"]]
    for name in ("supervisors", "offsets"):
        assert rows(serving(cast, Scope.READ, "other"), f"SELECT count(*) FROM sys.{name}") == [[0]]
        assert rows(serving(cast, Scope.READ, "flights"), f"SELECT count(*) > 0 FROM sys.{name}") == [[True]]


def test_masks_hide_what_records_hold(clients: dict[str, Client], cast: Cast) -> None:
    """Row 32 of the security checklist. As on pages and in REST: payloads, keys, errors, and where files are."""
    Task.objects.update(error="12 is no carrier", message="")
    set_masks(user=cast.users["owner"], datasource=cast.datasource, masks={"carrier": "admin"})
    note = "Hidden: its datasource has masked columns. You need the role admin."
    query = "SELECT error, key, payload, masked, payload_size FROM sys.quarantine"
    assert rows(clients["operator"], query) == [[note, None, None, "admin", len(PAYLOAD)]]
    assert rows(clients["operator"], "SELECT error, message FROM sys.tasks") == [[note, ""]]
    assert rows(clients["operator"], "SELECT DISTINCT path FROM sys.segments") == [[""]]
    found = "SELECT count(*) FROM sys.quarantine WHERE error LIKE '%JSON%' OR octet_length(payload) > 0"
    assert rows(clients["operator"], found) == [[0]]
    assert rows(clients["owner"], "SELECT error, masked FROM sys.quarantine") == [["Malformed JSON at byte 12", None]]
    masked = result(clients["operator"], "SELECT * FROM sys.quarantine")["masked"]
    assert masked == {f"sys.quarantine.{name}": "admin" for name in ("error", "key", "payload")}
    assert result(clients["owner"], "SELECT * FROM sys.quarantine")["masked"] == {}


def test_too_many_rows_are_refused_with_a_condition(
    clients: dict[str, Client], cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys_rows, "MAX_ROWS", 3)
    said = problem(clients["viewer"], "SELECT count(*) FROM sys.segments", 400)
    assert (
        "sys.segments is too large" in said and "used AND datasource = 'orders'" in said and "more than 3 rows" in said
    )
    assert rows(clients["viewer"], "SELECT count(*) FROM sys.segments WHERE partition_num = 0") == [[3]]
    monkeypatch.setattr(sys_rows, "MAX_ROWS", 0)
    assert "sys.supervisors is too large" in problem(clients["viewer"], "FROM sys.supervisors", 400)


def test_a_large_table_does_not_fill_the_disk(
    clients: dict[str, Client], cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends amid the copy, and the connection to the store is free again."""
    with monkeypatch.context() as patch:
        patch.setattr(limits, "TEMPORARY_PER_MEMORY", 100 / settings.SQL_MEMORY_BYTES)
        assert "sys.segments is too large" in problem(clients["viewer"], "SELECT 1 FROM sys.segments", 400)
    assert rows(clients["viewer"], "SELECT count(*) FROM sys.segments") == [[4]]


def test_no_team_gets_the_name_sys(clients: dict[str, Client], cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = clients["superuser"]
    for name in ("sys", "SYS"):
        made = admin.post("/api/v1/teams/", {"name": name}, content_type="application/json")
        assert made.status_code == 400 and "in SQL, sys has" in made.json()["detail"]
        renamed = admin.put("/api/v1/teams/beta/", {"name": name}, content_type="application/json")
        assert renamed.status_code == 400 and "in SQL, sys has" in renamed.json()["detail"]
    browser = Client()
    browser.force_login(cast.users["superuser"])
    page = browser.post(reverse("frontend:new-team"), {"name": "sys"})
    assert page.status_code == 400 and "in SQL, sys has" in page.content.decode()
    monkeypatch.setenv("HEADGATE_LOGIN_PASSWORD", "correct horse battery staple")
    with pytest.raises(CommandError, match="in SQL, sys has"):
        call_command("ensure_login", username="somebody", team="sys")
    assert not Team.objects.filter(name__iexact="sys").exists()


def test_sys_wins_over_a_team_of_that_name(clients: dict[str, Client], cast: Cast) -> None:
    """One that was made before the name was reserved."""
    Team.objects.filter(pk=cast.alpha.pk).update(name="sys")
    for name in ("tasks", "sys"):
        Datasource.objects.create(name=name, team=cast.alpha)
    assert rows(clients["viewer"], "SELECT id FROM sys.tasks") == [[cast.task.pk]]
    assert rows(clients["viewer"], "SELECT count(*) FROM sys.sys") == [[0]]
    assert rows(clients["viewer"], "SELECT count(*) FROM tasks") == [[0]]
    assert rows(clients["viewer"], "SELECT count(*) FROM sys") == [[0]]
    assert "The tables of sys are segments" in problem(clients["viewer"], "FROM sys.segmnts", 404)
