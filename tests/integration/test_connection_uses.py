"""Supervisors and tasks use named connections: the API lists them, keeps what they use, and restarts them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from controlplane.connections.models import Connection
from controlplane.supervisors.connections import use_counts
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from tests.support.django_cast import spec_for
from tests.support.named_connections import REGISTRY, SUPERVISORS, TASKS, faults, made, naming, send

pytestmark = pytest.mark.usefixtures("checked_here")


def test_who_uses_it_keeps_it_from_being_deleted(owner: Client) -> None:
    address = made(owner).headers["Location"]
    supervisor = send(owner, "POST", SUPERVISORS, naming()).json()["id"]
    task = send(owner, "POST", TASKS, naming(groupId="another")).json()["id"]
    uses = owner.get(f"{address}uses/").json()["uses"]
    assert [(u["kind"], u["id"], u["datasource"], u["topic"]) for u in uses] == [
        ("supervisor", supervisor, "flights", "flights-topic"),
        ("task", task, "flights", "flights-topic"),
    ]
    refused = owner.delete(address)
    assert refused.status_code == 409
    assert f"supervisor {supervisor}, task {task}" in refused.json()["detail"]
    send(owner, "POST", f"{SUPERVISORS}{supervisor}/terminate/")
    Task.objects.filter(pk=task).update(status="SUCCESS")
    assert owner.get(f"{address}uses/").json()["uses"] == []
    assert owner.delete(address).status_code == 204
    back = send(owner, "POST", SUPERVISORS, naming())
    assert "/ioConfig/connection" in faults(back)


def test_a_version_that_may_be_started_again_uses_it(owner: Client) -> None:
    """The next one names none, and has not begun: the version before is still in force."""
    address = made(owner).headers["Location"]
    connection = Connection.objects.get(name="secured")
    supervisor = Supervisor.objects.filter(pk="flights")

    def submitted(spec: dict[str, Any]) -> int:
        send(owner, "POST", SUPERVISORS, spec)
        return supervisor.get().version

    supervisor.update(in_force=submitted(naming()))
    submitted(spec_for("flights"))
    assert [u["id"] for u in owner.get(f"{address}uses/").json()["uses"]] == ["flights"]
    assert use_counts([connection]) == {connection.pk: 1}
    assert owner.delete(address).status_code == 409
    submitted(naming(pollTimeout=100))
    assert use_counts([connection]) == {connection.pk: 1}, "by two of its versions, and counted once"
    supervisor.update(in_force=submitted(spec_for("flights")))
    assert owner.delete(address).status_code == 204


def test_a_registry_is_used_wherever_a_format_names_it(owner: Client) -> None:
    address = made(owner, "schemas", "schema_registry", REGISTRY).headers["Location"]
    avro = {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_registry", "connection": "schemas"}}
    proto = {"type": "protobuf", "protoBytesDecoder": {"connection": "schemas"}}
    for number, form in enumerate(
        (
            avro,
            proto,
            {"type": "kafka", "valueFormat": avro},
            {"type": "kafka", "valueFormat": {"type": "json"}, "keyFormat": proto},
        )
    ):
        answer = send(owner, "POST", SUPERVISORS, spec_for(f"d{number}", inputFormat=form))
        assert answer.status_code == 201, answer.content
        assert [u["id"] for u in owner.get(f"{address}uses/").json()["uses"]] == [f"d{n}" for n in range(number + 1)]


def test_supervisors_hand_over_when_they_are_told_to(owner: Client, clients: dict[str, Client]) -> None:
    address = made(owner).headers["Location"]
    for name in ("one", "two", "resting"):
        assert send(owner, "POST", SUPERVISORS, naming(name)).status_code == 201
    send(owner, "POST", f"{SUPERVISORS}resting/suspend/")
    assert clients["viewer"].post(f"{address}restart/").status_code == 403
    assert owner.post(f"{address}restart/").json() == {"supervisors": ["one", "two"]}
    asked = Supervisor.objects.exclude(handoff_asked_at=None).order_by("id").values_list("id", flat=True)
    assert list(asked) == ["one", "two"]
