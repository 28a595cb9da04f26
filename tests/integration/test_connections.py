"""Named connections: who may write them, how their secrets are kept, and what specs that name them get."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.connections.models import Connection
from controlplane.connections.secrets import unseal
from controlplane.supervisors import topic_checks
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.lifecycle import new_token
from controlplane.tasks.models import Task
from controlplane.teams.models import AuditEntry
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.messages.protocol import Assignment
from tests.support.django_cast import Cast, spec_for
from tests.support.named_connections import (
    CANARY,
    CONNECTIONS,
    LOGIN,
    REGISTRY,
    SUPERVISORS,
    TASKS,
    faults,
    made,
    naming,
    send,
)

pytestmark = pytest.mark.usefixtures("checked_here")


def assigned(task_id: str) -> Assignment:
    """What the task's application is told."""
    token = new_token(Task.objects.get(pk=task_id))
    answer = Client(headers={"Authorization": f"Bearer {token}"}).get(f"/internal/tasks/{task_id}/assignment")
    assert answer.status_code == 200, answer.content
    return Assignment.model_validate_json(answer.content)


# What it is, and who may


def test_it_is_made_read_changed_and_deleted(owner: Client) -> None:
    answer = made(owner)
    address = answer.headers["Location"]
    assert answer.headers["ETag"] == '"1"'
    said = owner.get(address).json()
    assert (said["team"], said["name"], said["kind"]) == ("alpha", "secured", "kafka")
    assert said["properties"] == LOGIN and said["secret_names"] == ["sasl.password"]
    assert said["addresses"] == ["10.0.0.1:9092"] and said["created_by"] == "owner"
    changed = send(owner, "PUT", address, {"properties": {**LOGIN, "client.id": "hg"}, "description": "Orders"})
    assert (changed.status_code, changed.json()["version"], changed.json()["description"]) == (200, 2, "Orders")
    assert [c["name"] for c in owner.get(CONNECTIONS, {"search": "ECUR"}).json()["results"]] == ["secured"]
    assert owner.delete(address).status_code == 204
    assert owner.get(address).status_code == 404
    trail = AuditEntry.objects.filter(target="connection", target_id="secured").order_by("id")
    assert [(e.username, e.action) for e in trail] == [("owner", a) for a in ("create", "change", "delete")]


def test_names_are_a_teams_own(owner: Client, clients: dict[str, Client]) -> None:
    made(owner)
    again = send(owner, "POST", CONNECTIONS, {"name": "secured", "kind": "kafka", "properties": LOGIN})
    assert again.status_code in (400, 409)
    made(clients["outsider"])
    assert clients["outsider"].get(f"{CONNECTIONS}alpha/secured/").status_code == 404
    assert Connection.objects.filter(name="secured").count() == 2


@pytest.mark.parametrize("name", ["", "Orders", "a b", "-", "a" * 64, "a/b", "a\nb", "ä"])
def test_odd_names_are_refused(owner: Client, name: str) -> None:
    body = {"name": name, "kind": "kafka", "properties": {"bootstrap.servers": "10.0.0.1:9092"}}
    assert send(owner, "POST", CONNECTIONS, body).status_code == 400


def test_only_the_version_that_was_seen_is_changed(owner: Client) -> None:
    address, body = made(owner).headers["Location"], {"properties": LOGIN}
    assert send(owner, "PUT", address, body, **{"If-Match": '"1"'}).status_code == 200
    late = send(owner, "PUT", address, body, **{"If-Match": '"1"'})
    assert (late.status_code, late.json()["type"]) == (412, "urn:headgate:problem:changed-meanwhile")
    assert send(owner, "PUT", address, body, **{"If-Match": "three"}).status_code == 400
    assert Connection.objects.get(name="secured").version == 2


@pytest.mark.parametrize(
    ("kind", "properties", "pointer", "message"),
    [
        ("kafka", {}, "/properties", "'bootstrap.servers' is required"),
        ("kafka", [], "/properties", "must be a JSON object"),
        ("kafka", {**LOGIN, "plugin.library.paths": CANARY}, "/properties/plugin.library.paths", "load code"),
        ("kafka", {**LOGIN}, "/properties/sasl.password", "is missing"),
        ("kafka", {**LOGIN, "isolation.level": "read_committed"}, "/properties/isolation.level", "belongs to a spec"),
        ("kafka", {"bootstrap.servers": "169.254.169.254:80"}, "/properties/bootstrap.servers", "metadata service"),
        ("schema_registry", {}, "/properties", "give url"),
        ("schema_registry", {"url": "http://10.0.0.1", "type": "x"}, "/properties/type", "unknown field"),
        ("schema_registry", {"url": "http://127.0.0.1:8081"}, "/properties/url", "loopback"),
        ("schema_registry", {"connection": "secured"}, "/properties/connection", "unknown field"),
    ],
)
def test_what_a_spec_may_not_say_a_connection_may_not_either(
    owner: Client, settings: Any, kind: str, properties: Any, pointer: str, message: str
) -> None:
    settings.ADDRESS_POLICY = AddressPolicy()
    answer = send(owner, "POST", CONNECTIONS, {"name": "bad", "kind": kind, "properties": properties})
    found = faults(answer)
    assert message in found[pointer], found
    assert CANARY not in answer.content.decode()
    assert not Connection.objects.filter(name="bad").exists()


# Secrets


def test_row_6_a_connections_secrets_are_sealed_and_shown_to_nobody(owner: Client, clients: dict[str, Client]) -> None:
    """Row 6 of the security checklist: a connection's secrets are sealed and shown to nobody."""
    addresses = [
        made(owner).headers["Location"],
        made(owner, "schemas", "schema_registry", REGISTRY).headers["Location"],
    ]
    for client in (owner, clients["viewer"], clients["superuser"]):
        assert all(CANARY not in client.get(a).content.decode() for a in [*addresses, CONNECTIONS])
    with database.cursor() as cursor:
        cursor.execute("SELECT connections_connection::text FROM connections_connection")
        assert CANARY not in str(cursor.fetchall())
    assert owner.get(addresses[1]).json()["secret_names"] == ["/config/basic.auth.user.info", "/headers/X-Key"]
    assert unseal(Connection.objects.get(name="secured").secrets) == {"sasl.password": CANARY}


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"client.id": "another"}, True),
        ({"bootstrap.servers": "10.6.6.6:9092"}, False),
        ({"security.protocol": "SASL_PLAINTEXT"}, False),
        ({"sasl.username": "you"}, False),
    ],
)
def test_row_6_a_connections_secrets_are_kept_for_the_same_cluster_only(
    owner: Client, change: dict[str, str], kept: bool
) -> None:
    """Row 6 of the security checklist: a connection's secrets are kept for the same cluster only."""
    answer = send(owner, "PUT", made(owner).headers["Location"], {"properties": {**LOGIN, **change}})
    if kept:
        assert answer.status_code == 200
    else:
        assert list(faults(answer)) == ["/properties/sasl.password"]
    assert unseal(Connection.objects.get(name="secured").secrets) == {"sasl.password": CANARY}


def test_row_6_keys_of_connections_are_rotated(owner: Client, settings: Any) -> None:
    """Row 6 of the security checklist: keys of connections are rotated."""
    made(owner)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key, and long enough to be taken for one of them"
    call_command("rotate_secrets")
    settings.SECRET_KEY_FALLBACKS = []
    assert unseal(Connection.objects.get(name="secured").secrets) == {"sasl.password": CANARY}


# Specs that name one


def test_an_application_gets_the_connections_properties_and_its_own(owner: Client) -> None:
    made(owner)
    made(owner, "schemas", "schema_registry", REGISTRY)
    decoder = {"type": "schema_registry", "connection": "schemas", "capacity": 7}
    form = {"type": "kafka", "valueFormat": {"type": "avro_stream", "avroBytesDecoder": decoder}}
    spec = naming(inputFormat=form, consumerProperties={"fetch.min.bytes": 7})
    answer = send(owner, "POST", TASKS, spec)
    assert answer.status_code == 201, answer.content
    assert CANARY not in answer.content.decode()
    task = Task.objects.get(pk=answer.json()["id"])
    assert CANARY not in json.dumps(task.spec) and task.secrets == ""
    told = assigned(task.pk)
    assert told.consumer_properties["sasl.password"] == CANARY
    assert told.consumer_properties["bootstrap.servers"] == "10.0.0.1:9092"
    assert told.consumer_properties["fetch.min.bytes"] == "7"
    assert told.spec.ioConfig.connection == "secured"
    registry = told.spec.ioConfig.inputFormat.valueFormat.avroBytesDecoder  # type: ignore[union-attr]
    assert (registry.url, registry.capacity) == (REGISTRY["url"], 7)  # type: ignore[union-attr]
    assert registry.config == REGISTRY["config"] and registry.headers == REGISTRY["headers"]  # type: ignore[union-attr]


def test_a_new_password_reaches_who_asks_next(owner: Client) -> None:
    address = made(owner).headers["Location"]
    task = send(owner, "POST", TASKS, naming()).json()["id"]
    supervisor = send(owner, "POST", SUPERVISORS, naming()).json()["id"]
    send(owner, "PUT", address, {"properties": {**LOGIN, "sasl.password": "new one"}})
    assert assigned(task).consumer_properties["sasl.password"] == "new one"
    asked = topic_checks.question_for(Supervisor.objects.get(pk=supervisor))
    assert (asked.problem, asked.properties["sasl.password"]) == (None, "new one")
    assert SpecVersion.objects.filter(supervisor_id=supervisor).latest("version").secrets == ""


@pytest.mark.parametrize(
    ("spec", "pointer", "message"),
    [
        (naming(connection="none"), "/ioConfig/connection", "team alpha has no connection 'none' to a Kafka cluster"),
        (naming(connection="foreign"), "/ioConfig/connection", "has no connection 'foreign'"),
        (naming(connection="schemas"), "/ioConfig/connection", "no connection 'schemas' to a Kafka cluster"),
        (naming(connection="No"), "/ioConfig/connection", "is not a connection's name"),
        (
            naming(consumerProperties={"bootstrap.servers": "10.0.0.2:9092"}),
            "/ioConfig/consumerProperties/bootstrap.servers",
            "belongs to the connection 'secured'",
        ),
        (
            naming(consumerProperties={"sasl.jaas.config": "x"}),
            "/ioConfig/consumerProperties/sasl.jaas.config",
            "belongs to the connection 'secured'",
        ),
        (
            naming(
                inputFormat={
                    "type": "protobuf",
                    "protoBytesDecoder": {"connection": "schemas", "url": "http://10.0.0.1"},
                }
            ),
            "/ioConfig/inputFormat/protoBytesDecoder",
            "belong to the connection 'schemas'",
        ),
        (
            naming(inputFormat={"type": "protobuf", "protoBytesDecoder": {"connection": "secured"}}),
            "/ioConfig/inputFormat/protoBytesDecoder/connection",
            "no connection 'secured' to a schema registry",
        ),
    ],
)
def test_contradictions_and_unknown_names_are_refused_where_they_stand(
    owner: Client, clients: dict[str, Client], spec: dict[str, Any], pointer: str, message: str
) -> None:
    made(owner)
    made(owner, "schemas", "schema_registry", REGISTRY)
    made(clients["outsider"], "foreign")
    before = Task.objects.count(), SpecVersion.objects.count()
    for path, document, prefix in (
        (TASKS, spec, ""),
        (SUPERVISORS, spec, ""),
        ("/api/v1/validate/", {"kind": "task", "spec": spec}, "/spec"),
        ("/api/v1/sampler/", spec, ""),
    ):
        found = faults(send(owner, "POST", path, document))
        assert message in found[prefix + pointer], (path, found)
    assert (Task.objects.count(), SpecVersion.objects.count()) == before


def test_row_3_a_connection_is_judged_again_by_the_policy_of_today(owner: Client, settings: Any) -> None:
    """Row 3 of the security checklist: a connection is judged again by the policy of today."""
    made(owner, properties={"bootstrap.servers": "127.0.0.1:9092"})
    settings.ADDRESS_POLICY = AddressPolicy()
    found = faults(send(owner, "POST", TASKS, naming()))
    assert list(found) == ["/ioConfig/connection"] and "is a loopback address" in found["/ioConfig/connection"]


def test_a_viewer_takes_no_sample_by_a_connection(cast: Cast, clients: dict[str, Client], owner: Client) -> None:
    """Nor does an operator of another team, who is a viewer of this one."""
    made(owner)
    cast.users["outsider"].memberships.create(team=cast.alpha, role="viewer")
    answer = send(clients["outsider"], "POST", "/api/v1/sampler/", naming("new"), **{"X-Headgate-Team": "alpha"})
    assert answer.status_code == 403


def test_a_team_may_want_names_only(owner: Client) -> None:
    made(owner)
    rule = "/api/v1/teams/alpha/connection-rule/"
    assert owner.get(rule).json() == {"own_properties": True}
    assert send(owner, "PUT", rule, {"own_properties": False}).json() == {"own_properties": False}
    for path in (TASKS, SUPERVISORS, "/api/v1/sampler/"):
        found = faults(send(owner, "POST", path, spec_for("flights")))
        assert found == {
            "/ioConfig/consumerProperties": "team alpha allows saved connections only: name one in connection"
        }
    assert send(owner, "POST", TASKS, naming()).status_code == 201


def test_a_supervisor_without_its_connection_says_so(owner: Client) -> None:
    """Which only somebody with the database in hand brings about."""
    made(owner)
    supervisor = send(owner, "POST", SUPERVISORS, naming()).json()["id"]
    Connection.objects.all().delete()
    [answer] = topic_checks.answers([topic_checks.question_for(Supervisor.objects.get(pk=supervisor))])
    assert "There is no connection 'secured'" in str(answer.problem)


def test_a_list_costs_the_same_however_many_there_are(owner: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            database,
        ) as caught:
            assert owner.get(CONNECTIONS).status_code == 200
        return len(caught)

    few = queries()
    for number in range(10):
        made(owner, f"c{number}", properties={"bootstrap.servers": "10.0.0.1:9092"})
    assert queries() == few
