"""Supervisors of a Druid cluster taken over: what each would become is said, and done when that is wanted."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from django.test import Client

from controlplane.connections.models import Connection
from controlplane.loading import druid_import as importing
from controlplane.supervisors.models import Supervisor
from controlplane.teams.models import AuditEntry
from tests.support.django_cast import Cast
from tests.support.druid_specs import GOLDEN, LISTED

pytestmark = pytest.mark.usefixtures("checked_here")

IMPORT = "/api/v1/druid/import/"
OF_DRUID: list[dict[str, Any]] = json.loads(LISTED.read_text(encoding="utf-8"))["supervisors"]
SHOWN: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))["specs"]
IDS = [entry["id"] for entry in OF_DRUID]


def imported(client: Client, listed: Any, query: str = "") -> Any:
    answer = client.post(f"{IMPORT}?{query}", json.dumps(listed), content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()


def with_io_config(entry: dict[str, Any], **fields: Any) -> dict[str, Any]:
    changed = copy.deepcopy(entry)
    changed["spec"]["spec"]["ioConfig"].update(fields)
    return changed


def test_nothing_changes_until_it_is_wanted(owner: Client) -> None:
    before = list(Supervisor.objects.values_list("pk", "version")), AuditEntry.objects.count()
    verdicts = imported(owner, OF_DRUID)
    assert [(v["id"], v["verdict"], v["applied"], v["suspended"]) for v in verdicts] == [
        (i, "create", False, True) for i in IDS
    ]
    assert {(v["topic"], v["starts_at"], v["bootstrap_servers"]) for v in verdicts} == {
        ("a-topic", "latest", "localhost:1")
    }
    assert "tuningConfig.chatRetries: " in "\n".join(verdicts[0]["without_effect"])
    assert (list(Supervisor.objects.values_list("pk", "version")), AuditEntry.objects.count()) == before


def test_every_spec_that_druid_showed_is_taken_and_is_then_the_same(owner: Client) -> None:
    listed = [{"id": spec["spec"]["dataSchema"]["dataSource"], "spec": spec} for spec in SHOWN.values()]
    made = imported(owner, listed, "dry_run=false")
    assert [(v["verdict"], v["applied"], v["detail"]) for v in made] == [("create", True, "")] * len(listed)
    assert set(Supervisor.objects.filter(suspended=True).values_list("pk", flat=True)) >= {e["id"] for e in listed}
    again = imported(owner, listed, "dry_run=false")
    assert {(v["verdict"], v["applied"]) for v in again} == {("same", False)}
    assert AuditEntry.objects.filter(target="supervisor", action="create").count() == len(listed)


def test_a_change_is_shown_and_then_made_without_resuming(owner: Client) -> None:
    imported(owner, OF_DRUID, "dry_run=false")
    changed = with_io_config(OF_DRUID[1], taskCount=3)
    changed["spec"]["suspended"] = False
    for query, version in (("", 1), ("dry_run=false", 2)):
        [verdict] = imported(owner, [changed], f"{query}&suspended=false".strip("&"))
        assert (verdict["verdict"], verdict["suspended"], verdict["starts_at"]) == ("change", True, "")
        texts = [line["text"].strip(" ,") for line in verdict["diff"] if line["kind"] in ("added", "removed")]
        assert texts == ['-          "taskCount": 1', '+          "taskCount": 3'] or [
            "".join(t.split()) for t in texts
        ] == ['-"taskCount":1', '+"taskCount":3']
        assert Supervisor.objects.get(pk=IDS[1]).version == version
    assert Supervisor.objects.get(pk=IDS[1]).suspended


def test_what_druid_does_not_read_is_told_and_taken_out(owner: Client) -> None:
    entry = copy.deepcopy(OF_DRUID[0])
    parts = entry["spec"]["spec"]
    parts["tuningConfig"] |= {"awaitSegmentAvailabilityTimeoutMillis": 1000, "releaseLocksOnHandoff": True}
    parts["tuningConfig"]["taskCount"] = 3
    parts["context"] = {"priority": 75}
    [plain] = imported(owner, [OF_DRUID[0]])
    [verdict] = imported(owner, [entry], "dry_run=false")
    assert (verdict["verdict"], verdict["applied"]) == ("create", True)
    more = [line.partition(":")[0] for line in verdict["without_effect"] if line not in plain["without_effect"]]
    assert sorted(more) == [
        "spec.context",
        "tuningConfig.awaitSegmentAvailabilityTimeoutMillis",
        "tuningConfig.releaseLocksOnHandoff",
        "tuningConfig.taskCount",
    ]
    made = Supervisor.objects.get(pk=entry["id"])
    assert made.io_config.taskCount == parts["ioConfig"]["taskCount"]
    assert [v["verdict"] for v in imported(owner, [entry])] == ["same"]
    refused = owner.post("/druid/indexer/v1/supervisor", entry["spec"], content_type="application/json")
    assert refused.status_code == 400, "who writes a spec is told of a wrong place"
    assert "tuningConfig.taskCount" in refused.json()["errorMessage"]


def test_one_that_fails_holds_up_no_other(owner: Client) -> None:
    bad = with_io_config(OF_DRUID[0], topicPattern="a.*", taskCount=0)
    kinesis = {"id": "k", "spec": {**OF_DRUID[1]["spec"], "type": "kinesis"}}
    listed = [bad, kinesis, OF_DRUID[2], {**OF_DRUID[2]}, OF_DRUID[3]]
    verdicts = imported(owner, listed, "dry_run=false")
    assert [v["verdict"] for v in verdicts] == ["refused", "refused", "create", "refused", "create"]
    assert {e["pointer"] for e in verdicts[0]["errors"]} == {
        "/0/spec/spec/ioConfig/topic",
        "/0/spec/spec/ioConfig/taskCount",
    }
    assert [e["pointer"] for e in verdicts[1]["errors"]] == ["/1/spec/type"]
    assert verdicts[3]["errors"][0]["pointer"] == "/3/id"
    assert set(Supervisor.objects.filter(pk__in=[*IDS, "k"]).values_list("pk", flat=True)) == {IDS[2], IDS[3]}


def test_they_run_at_once_where_druid_runs_them_and_it_is_asked_for(owner: Client) -> None:
    running = copy.deepcopy(OF_DRUID[0])
    running["spec"]["suspended"] = False
    verdicts = imported(owner, [running, OF_DRUID[1]], "dry_run=false&suspended=false")
    assert [v["suspended"] for v in verdicts] == [False, True]
    assert dict(Supervisor.objects.filter(pk__in=IDS).values_list("pk", "suspended")) == {IDS[0]: False, IDS[1]: True}


def test_a_connection_takes_the_place_of_the_clusters_properties(owner: Client, cast: Cast) -> None:
    secured = with_io_config(
        OF_DRUID[0],
        consumerProperties={
            **{"bootstrap.servers": "localhost:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            **{"sasl.username": "me", "sasl.password": "hidden-word", "fetch.min.bytes": 5},
        },
    )
    Connection.objects.create(
        team=cast.alpha, name="the-cluster", kind="kafka", properties={"bootstrap.servers": "localhost:1"}
    )
    [own] = imported(owner, [secured])
    assert (own["security_protocol"], own["connections"], own["connection"]) == (
        "SASL_PLAINTEXT",
        ["the-cluster"],
        "",
    )
    assert "hidden-word" not in json.dumps(own)
    [named] = imported(owner, [secured], "connection=the-cluster&dry_run=false")
    assert (named["verdict"], named["connection"], named["bootstrap_servers"]) == ("create", "the-cluster", "")
    io_config = Supervisor.objects.get(pk=IDS[0]).io_config
    assert (io_config.connection, io_config.consumerProperties) == ("the-cluster", {"fetch.min.bytes": "5"})
    [unknown] = imported(owner, [OF_DRUID[1]], "connection=none")
    assert (unknown["verdict"], unknown["errors"][0]["pointer"]) == ("refused", "/0/spec/spec/ioConfig/connection")


def test_what_there_is_no_time_for_is_left(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "TIME_LIMIT_S", -1.0)
    verdicts = imported(owner, OF_DRUID, "dry_run=false")
    assert {(v["verdict"], v["applied"]) for v in verdicts} == {("left", False)}
    assert not Supervisor.objects.filter(pk__in=IDS).exists()


@pytest.mark.parametrize(
    ("listed", "pointer"),
    [
        ([], ""),
        ({"id": "a"}, ""),
        (IDS, "/0"),  # as Druid answers without ?full
        ([{"id": "a", "state": "RUNNING"}], "/0/spec"),  # with ?state=true
        ([{"id": 7, "spec": {}}], "/0/id"),
        ([{"spec": {}}], "/0/id"),
        ([{"id": "a", "spec": None}], "/0/spec"),
        ([{"id": "a", "spec": {}}] * (importing.MAX_SUPERVISORS + 1), ""),
    ],
)
def test_what_is_no_such_list_is_refused_as_a_whole(owner: Client, listed: Any, pointer: str) -> None:
    answer = owner.post(f"{IMPORT}?dry_run=false", json.dumps(listed), content_type="application/json")
    assert answer.status_code == 400
    assert [e["pointer"] for e in answer.json()["errors"]][:1] == ([pointer] if pointer else [])


@pytest.mark.parametrize("spec", [{}, {"type": "kafka"}, {"type": "kafka", "spec": None}, {"type": []}, {"spec": 7}])
def test_a_spec_that_is_none_is_refused_at_its_place(owner: Client, spec: Any) -> None:
    for query in ("", "connection=c"):
        [verdict] = imported(owner, [{"id": "odd", "spec": spec}], query)
        assert verdict["verdict"] == "refused"
        assert verdict["errors"] and all(e["pointer"].startswith("/0/spec") for e in verdict["errors"])


@pytest.mark.parametrize("query", ["apply=true", "dry_run=perhaps", "suspended=", "connection=", "dry_run=0&dry_run=1"])
def test_a_bad_query_changes_nothing(owner: Client, query: str) -> None:
    answer = owner.post(f"{IMPORT}?{query}", json.dumps(OF_DRUID), content_type="application/json")
    assert answer.status_code == 400
    assert not Supervisor.objects.filter(pk__in=IDS).exists()


def test_an_id_of_another_team_is_taken(clients: dict[str, Client]) -> None:
    imported(clients["owner"], OF_DRUID[:1], "dry_run=false")
    [verdict] = imported(clients["outsider"], OF_DRUID[:1], "dry_run=false")
    assert (verdict["verdict"], verdict["diff"]) == ("refused", [])
    assert "is taken" in verdict["detail"]
