"""Whose a group of Kafka's is, and what a name tells that is another team's."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.teams.models import AuditEntry, Membership
from controlplane.teams.roles import Role
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.support.django_cast import Cast, spec_for

SUPERVISORS, TASKS = "/api/v1/supervisors/", "/api/v1/tasks/"


def post(client: Client, path: str, document: object = None) -> Any:
    return client.post(path, document, content_type="application/json")


def in_consumer_group(datasource: str, group: str | None) -> dict[str, Any]:
    """A spec of type kafka whose partitions Kafka deals out; without a group's name it is called as the supervisor."""
    spec = spec_for(datasource)
    named = {} if group is None else {"groupId": group}
    io_config = {k: v for k, v in spec["ioConfig"].items() if k not in ("groupId", "type")}
    return {**spec, "type": "kafka", "ioConfig": {**io_config, "assignment": "consumer_group", **named}}


@pytest.mark.parametrize("path", [SUPERVISORS, TASKS, "/druid/indexer/v1/supervisor", "/druid/indexer/v1/task"])
@pytest.mark.parametrize("suspended", [False, True])
def test_another_teams_share_group_can_not_be_named(
    clients: dict[str, Client], cast: Cast, path: str, suspended: bool
) -> None:
    """Row 23 of the security checklist: refused when it is submitted, suspended or not, on whatever topic."""
    spec = spec_for("mine", groupId="flights-group", topic="flights-topic")
    if suspended and path.endswith("supervisor"):
        spec["suspended"] = True
    if path.endswith("task"):
        spec["type"] = "index_kafka_share_group"
    answer = post(clients["outsider"], path, spec)
    assert answer.status_code == 409
    assert "'flights-group' is taken" in answer.content.decode()
    assert not Datasource.objects.filter(name="mine").exists()


@pytest.mark.parametrize("spec", [in_consumer_group("mine", "flights-group"), in_consumer_group("flights-group", None)])
def test_nor_joined_as_a_consumer_group(clients: dict[str, Client], cast: Cast, spec: dict[str, Any]) -> None:
    """Row 23 of the security checklist: groups of all kinds share their names, given or not."""
    assert post(clients["outsider"], SUPERVISORS, spec).status_code == 409


@pytest.mark.parametrize("group", ["their-group", None])
def test_a_consumer_group_is_its_teams_too(clients: dict[str, Client], cast: Cast, group: str | None) -> None:
    """Row 23 of the security checklist: a consumer group's name belongs to its team."""
    assert post(clients["owner"], SUPERVISORS, in_consumer_group("theirs", group)).status_code == 201
    spec = spec_for("mine", groupId=group or "theirs")
    assert post(clients["outsider"], SUPERVISORS, spec).status_code == 409
    assert post(clients["owner"], SUPERVISORS, spec_for("more", groupId=group or "theirs")).status_code == 201


def test_a_task_by_hand_holds_its_group_while_it_runs(clients: dict[str, Client], cast: Cast) -> None:
    """Row 23 of the security checklist: so do tasks without a supervisor."""
    assert post(clients["operator"], TASKS, spec_for("flights", groupId="by-hand")).status_code == 201
    assert post(clients["outsider"], TASKS, spec_for("mine", groupId="by-hand")).status_code == 409


def test_a_group_is_free_again_when_nothing_of_it_is_left(clients: dict[str, Client], cast: Cast) -> None:
    assert post(clients["owner"], f"{SUPERVISORS}flights/terminate/").status_code == 200
    spec = spec_for("mine", groupId="flights-group")
    assert post(clients["outsider"], SUPERVISORS, spec).status_code == 409  # its progress is kept
    Source.objects.filter(group="flights-group").update(current=False)
    assert post(clients["outsider"], SUPERVISORS, spec).status_code == 201


@pytest.fixture
def intruder(cast: Cast) -> Supervisor:
    """Team beta's suspended supervisor with alpha's group, as if it were from before that was refused."""
    datasource = Datasource.objects.create(name="mine", team=cast.beta)
    supervisor = Supervisor.objects.create(id="mine", datasource=datasource, suspended=True)
    spec = spec_for("mine", groupId="flights-group", topic="flights-topic")
    SpecVersion.objects.create(supervisor=supervisor, version=1, spec=parse_supervisor_spec(spec).canonical())
    return supervisor


def test_it_is_not_applied_nor_resumed(clients: dict[str, Client], intruder: Supervisor) -> None:
    """Row 23 of the security checklist: neither sets the group's configuration on the broker."""
    for action in ("share-group/config/", "resume/"):
        answer = post(clients["outsider"], f"{SUPERVISORS}mine/{action}")
        assert (answer.status_code, "is taken" in answer.content.decode()) == (409, True)
    intruder.refresh_from_db()
    assert intruder.suspended
    assert not AuditEntry.objects.exists()


def test_who_had_it_first_goes_on(clients: dict[str, Client], cast: Cast, intruder: Supervisor) -> None:
    Supervisor.objects.filter(pk="flights").update(suspended=True)
    assert post(clients["owner"], f"{SUPERVISORS}flights/resume/").status_code == 200


def test_a_terminated_intruder_is_none(clients: dict[str, Client], cast: Cast, intruder: Supervisor) -> None:
    Supervisor.objects.filter(pk=intruder.pk).update(terminated_at=timezone.now())
    assert post(clients["owner"], SUPERVISORS, spec_for("flights", pollTimeout=100)).status_code == 200


# What the names of datasources tell


@pytest.mark.parametrize("path", [SUPERVISORS, TASKS, "/api/v1/sampler/"])
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_who_may_not_make_a_datasource_is_not_told_which_there_are(
    clients: dict[str, Client], cast: Cast, path: str, role: Role
) -> None:
    """Row 24 of the security checklist: a name that is taken and one that is free are answered alike."""
    Membership.objects.filter(user=cast.users["outsider"]).update(role=role)
    pasted = {"inputSource": {"type": "inline", "data": '{"a": 1}'}} if path.endswith("sampler/") else {}
    answers = [post(clients["outsider"], path, spec_for(name, **pasted)) for name in ("flights", "nowhere-to-be")]
    assert answers[0].status_code == answers[1].status_code
    first, second = (a.content.decode().replace("nowhere-to-be", "flights") for a in answers)
    assert first == second
