"""A datasource or a connection that goes to another team: who sees it then, what goes on, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from controlplane.alerts.evaluating import evaluate
from controlplane.alerts.models import Alert
from controlplane.common.errors import Conflict, NotAllowed, NotFound
from controlplane.connections.models import Connection, ConnectionRule
from controlplane.connections.secrets import seal, unseal
from controlplane.datasources.models import Datasource
from controlplane.loading.models import Draft
from controlplane.segments.models import Segment
from controlplane.supervisors import services
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.run import run
from controlplane.tasks.models import Goal, Task
from controlplane.teams.models import AuditEntry, Membership, Team
from controlplane.teams.roles import Role
from controlplane.transfers.services import transfer_connection, transfer_datasource
from tests.integration.test_supervisor_services import submit
from tests.support.alert_rounds import ill, rule_of
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.publishes import request, send, settled_offsets, start

DATASOURCE = "/api/v1/datasources/flights/transfer/"
PAGE = "/datasources/flights/transfer/"
PROPERTIES = {"bootstrap.servers": "kafka-broker:9092"}


@pytest.fixture
def both(cast: Cast) -> Cast:
    """The owner is admin of beta, too."""
    Membership.objects.create(user=cast.users["owner"], team=cast.beta, role=Role.ADMIN)
    return cast


def give(cast: Cast, name: str = "flights", role: str = "owner", along: bool = False) -> list[str]:
    datasource = Datasource.objects.get(name=name)
    return transfer_datasource(user=cast.users[role], datasource=datasource, team_name="beta", along=along)


def owner_of(name: str = "flights") -> str:
    return Datasource.objects.get(name=name).team.name


def cluster(team: Team, name: str = "orders-kafka", **properties: str) -> Connection:
    return Connection.objects.create(
        team=team,
        name=name,
        kind="kafka",
        properties={**PROPERTIES, **properties},
        secrets=seal({"sasl.password": "secret"}),
        secret_names=["sasl.password"],
    )


def naming(cast: Cast, name: str, connection: str = "orders-kafka") -> Supervisor:
    spec = spec_for(name, connection=connection)
    del spec["ioConfig"]["consumerProperties"]
    return submit(cast, spec)


def test_an_alert_rule_follows_what_comes_back(both: Cast) -> None:
    """Away it is another team's business; what fires then ends. Back, the same rule looks again."""
    rule = rule_of(both, datasource="flights")
    ill()

    def firing() -> list[str]:
        evaluate()
        return list(Alert.objects.filter(rule=rule, state="firing").values_list("subject", flat=True))

    assert firing() == ["flights"]
    give(both)
    assert (firing(), Alert.objects.filter(rule=rule).exists()) == ([], False)
    transfer_datasource(user=both.users["owner"], datasource=both.datasource, team_name="alpha")
    assert firing() == ["flights"]


def test_its_members_see_it_and_the_others_no_longer_do(both: Cast, clients: dict[str, Client]) -> None:
    seen = ["/api/v1/datasources/flights/", "/api/v1/supervisors/flights/", f"/api/v1/tasks/{both.task.pk}/"]
    seen += [f"/api/v1/datasources/flights/quarantine/{both.quarantined.pk}/"]
    assert {clients["viewer"].get(address).status_code for address in seen} == {200}
    answer = clients["owner"].post(DATASOURCE, {"team": "beta"}, content_type="application/json")
    assert answer.json() == {"name": "flights", "team": "beta", "connections": []}
    for role, status in (("viewer", 404), ("operator", 404), ("outsider", 200), ("owner", 200)):
        assert {clients[role].get(address).status_code for address in seen} == {status}, role
    entries = AuditEntry.objects.filter(action="transfer", target="datasource")
    assert {e.team.name for e in entries if e.team} == {"alpha", "beta"}
    assert [e.detail for e in entries] == [{"from": "alpha", "to": "beta", "connections": []}] * 2


def test_what_runs_goes_on_and_nothing_is_lost_or_doubled(both: Cast) -> None:
    epoch = start(both.source, number=7, task=both.task.pk)
    before = Segment.objects.filter(datasource=both.datasource).count()
    send(request(epoch, {0: [(700, 705)]}), number=7, task=both.task.pk)
    tasks = dict(Task.objects.values_list("pk", "goal"))
    give(both)
    send(request(epoch, {0: [(705, 710)]}), number=7, task=both.task.pk)
    assert Segment.objects.filter(datasource=both.datasource).count() == before + 2
    assert any(a <= 700 and b >= 710 for a, b in settled_offsets(both.source)[0])
    run("flights")
    assert dict(Task.objects.values_list("pk", "goal")) == tasks
    assert set(tasks.values()) == {Goal.RUN}
    supervisor = Supervisor.objects.get(pk="flights")
    again = services.submit_supervisor(user=both.users["outsider"], document=spec_for("flights", pollTimeout=100))
    assert again.version == supervisor.version + 1


@pytest.mark.parametrize(("role", "error"), [("operator", NotAllowed), ("viewer", NotAllowed), ("owner", NotFound)])
def test_it_takes_an_admin_of_both(cast: Cast, role: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        give(cast, role=role)
    assert (owner_of(), AuditEntry.objects.count()) == ("alpha", 0)


def test_an_operator_of_the_other_team_is_not_enough(cast: Cast) -> None:
    Membership.objects.create(user=cast.users["owner"], team=cast.beta, role=Role.OPERATOR)
    with pytest.raises(NotAllowed, match="admin in team beta"):
        give(cast)
    give(cast, role="superuser")
    assert owner_of() == "beta"


def test_connections_that_it_names_are_there_or_move_along(both: Cast) -> None:
    connection = cluster(both.alpha)
    supervisor = naming(both, "orders")
    with pytest.raises(Conflict, match="team beta does not have"):
        give(both, "orders")
    assert owner_of("orders") == "alpha"
    assert give(both, "orders", along=True) == ["orders-kafka"]
    connection.refresh_from_db()
    assert (connection.team.name, unseal(connection.secrets)) == ("beta", {"sasl.password": "secret"})
    run(supervisor.pk)
    assert Task.objects.filter(supervisor_id=supervisor.pk).count() <= 1


def test_a_connection_that_others_use_does_not_move_along(both: Cast) -> None:
    cluster(both.alpha)
    naming(both, "orders")
    naming(both, "clicks")
    with pytest.raises(Conflict, match="can't move along: it is used by supervisor clicks"):
        give(both, "orders", along=True)
    assert (owner_of("orders"), Connection.objects.get(name="orders-kafka").team.name) == ("alpha", "alpha")


@pytest.mark.parametrize("same", [True, False])
def test_a_connection_of_that_name_must_lead_to_the_same(both: Cast, same: bool) -> None:
    cluster(both.alpha)
    cluster(both.beta, **({} if same else {"bootstrap.servers": "elsewhere:9092"}))
    naming(both, "orders")
    if same:
        assert give(both, "orders") == []
        return
    with pytest.raises(Conflict, match="leads elsewhere"):
        give(both, "orders", along=True)
    assert owner_of("orders") == "alpha"


def test_a_group_is_not_shared_by_two_teams(both: Cast) -> None:
    submit(both, spec_for("orders", groupId="shared"))
    submit(both, spec_for("clicks", groupId="shared"))
    with pytest.raises(Conflict, match="another datasource of team alpha"):
        give(both, "orders")
    assert owner_of("orders") == "alpha"


def test_drafts_of_a_change_go(both: Cast) -> None:
    Draft.objects.create(owner=both.users["operator"], team=both.alpha, supervisor=both.supervisor, base_version=1)
    other = Draft.objects.create(owner=both.users["operator"], team=both.alpha)
    give(both)
    assert list(Draft.objects.all()) == [other]


def test_the_page_asks_and_says_what_changes(both: Cast) -> None:
    owner = browsing_as(both, "owner")
    asked = owner.get(PAGE).content.decode()
    assert "3 members no longer see it" in asked
    assert "Its supervisors come with it: flights" in asked
    answer = owner.post(PAGE, {"team": "beta"}, follow=True)
    assert "Team beta now owns the datasource flights" in answer.content.decode()
    assert owner_of() == "beta"
    assert browsing_as(both, "viewer").get(PAGE).status_code == 404


@pytest.mark.parametrize("body", [{}, {"team": ""}, {"team": "beta", "more": 1}, {"team": "a\0b"}, []], ids=str)
def test_bad_input_changes_nothing(both: Cast, clients: dict[str, Client], body: Any) -> None:
    for address in (DATASOURCE, "/api/v1/connections/alpha/orders-schemas/transfer/"):
        assert clients["owner"].post(address, body, content_type="application/json").status_code in (400, 404)
    assert (owner_of(), both.connection.team.name) == ("alpha", "alpha")


def test_to_its_own_team_it_does_not_go(both: Cast, clients: dict[str, Client]) -> None:
    for address in (DATASOURCE, "/api/v1/connections/alpha/orders-schemas/transfer/"):
        assert clients["owner"].post(address, {"team": "alpha"}, content_type="application/json").status_code == 409
    assert not AuditEntry.objects.filter(action="transfer").exists()


def test_a_connection_goes_with_its_secrets(both: Cast) -> None:
    connection = cluster(both.alpha)
    owner = both.users["owner"]
    moved = transfer_connection(user=owner, connection=connection, team_name="beta")
    assert (moved.team.name, unseal(moved.secrets)) == ("beta", {"sasl.password": "secret"})
    assert AuditEntry.objects.filter(action="transfer", target="connection").count() == 2
    cluster(both.alpha)
    with pytest.raises(Conflict, match="already has a connection 'orders-kafka'"):
        transfer_connection(user=owner, connection=moved, team_name="alpha")


def test_a_connection_that_is_used_stays(both: Cast) -> None:
    connection = cluster(both.alpha)
    naming(both, "orders")
    with pytest.raises(Conflict, match="used by supervisor orders"):
        transfer_connection(user=both.users["owner"], connection=connection, team_name="beta")
    connection.refresh_from_db()
    assert connection.team.name == "alpha"


def test_a_team_that_takes_names_only_takes_no_spec_that_says_itself_where(both: Cast) -> None:
    ConnectionRule.objects.create(team=both.beta, own_properties=False)
    with pytest.raises(Conflict, match=r"saved connections only.*consumerProperties"):
        give(both)
    assert owner_of() == "alpha"
    cluster(both.alpha)
    naming(both, "orders")
    assert give(both, "orders", along=True) == ["orders-kafka"]
