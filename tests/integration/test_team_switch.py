"""The team that is chosen at the top holds on every page: numbers, lists, what forms begin with, what is offered."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from controlplane.alerts.models import Receiver, Rule
from controlplane.connections.models import Connection
from controlplane.datasources.models import Datasource
from controlplane.loading.models import Draft
from controlplane.quarantine.models import CauseSum
from controlplane.quarantine.selectors.causes import count_new_causes
from controlplane.tasks.models import Task
from controlplane.teams.models import Membership
from controlplane.teams.roles import Role
from ingestion.specs.source_traits import SHARE_GROUP
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import Element, parsed


def choose(client: Client, team: str) -> Client:
    assert client.post("/-/team/", {"team": team}).status_code == 302
    return client


@pytest.fixture
def both(cast: Cast) -> Client:
    """The owner of alpha is a viewer in beta, too."""
    Membership.objects.create(user=cast.users["owner"], team=cast.beta, role=Role.VIEWER)
    return browsing_as(cast, "owner")


def chosen_of(page: Element, name: str = "team") -> list[str]:
    options = page.one("select", name=name).all("option")
    return [option.attributes["value"] for option in options if "selected" in option.attributes]


def test_the_badge_of_the_quarantine_counts_the_teams_causes(cast: Cast) -> None:
    CauseSum.objects.update(last_at=timezone.now())
    root = browsing_as(cast, "superuser")

    def badge() -> list[int]:
        return [item.badge for item in root.get("/tasks/").context["navigation"] if item.label == "Quarantine"]

    assert badge() == [count_new_causes(cast.users["superuser"])] == [1]
    choose(root, "beta")
    assert badge() == [0]
    choose(root, "alpha")
    assert badge() == [1]


def test_the_indexers_are_the_teams(cast: Cast) -> None:
    Task.objects.create(
        id="waits",
        kind=SHARE_GROUP.kind,
        datasource=cast.datasource,
        spec=cast.task.spec,
        indexers_wanted=2,
        created_at=timezone.now(),
    )
    Datasource.objects.create(name="trains", team=cast.beta)
    root = browsing_as(cast, "superuser")

    def line() -> str:
        return parsed(root.get("/tasks/")).one("span", data_capacity="").text

    def figure() -> str:
        return parsed(root.get("/")).one("div", data_figure="indexers").one("div", class_="figure-value").text

    choose(root, "beta")
    assert line() == "0 indexers in use, of team beta only."
    assert figure() == "0"
    choose(root, "alpha")
    assert line() == "2 indexers in use, of team alpha only. 1 task waits for 2 more."
    assert figure() == "2"


@pytest.mark.parametrize("place", ["new-alert-rule", "new-alert-receiver", "new-connection", "new-supervisor"])
def test_forms_begin_with_the_chosen_team(cast: Cast, place: str) -> None:
    place = reverse(f"frontend:{place}")
    root = browsing_as(cast, "superuser")
    choose(root, "beta")
    assert chosen_of(parsed(root.get(place))) == ["beta"]
    assert chosen_of(parsed(root.get(place, {"team": "alpha"}))) == ["alpha"]  # what a link names comes first


def offered(client: Client) -> list[str]:
    """The receivers of a new rule, in their order."""
    page = parsed(client.get(reverse("frontend:new-alert-rule")))
    names = {str(receiver.pk): receiver.name for receiver in Receiver.objects.all()}
    return [names[box.attributes["value"]] for box in page.all("input", name="receivers")]


def with_receivers(cast: Cast) -> None:
    for team in (cast.alpha, cast.beta):
        Receiver.objects.create(team=team, name=f"mail-{team.name}", kind="email", addresses=["a@example.org"])


def test_a_rule_offers_the_chosen_teams_receivers(cast: Cast) -> None:
    """They come first. The form may take another team: those of each team that the user administers follow."""
    with_receivers(cast)
    root = browsing_as(cast, "superuser")
    assert offered(choose(root, "beta")) == ["mail-beta", "mail-alpha"]
    assert offered(choose(root, "alpha")) == ["mail-alpha", "mail-beta"]
    receiver = Receiver.objects.get(name="mail-beta")
    kept = {"team": "beta", "name": "of beta", "hold_s": "60", "clear_s": "60", "receivers": str(receiver.pk)}
    assert root.post(reverse("frontend:new-alert-rule"), kept).status_code == 302
    assert [r.name for r in Rule.objects.get(name="of beta").receivers.all()] == ["mail-beta"]


def test_a_rule_offers_receivers_where_another_team_is_chosen(cast: Cast, both: Client) -> None:
    with_receivers(cast)
    assert offered(choose(both, "beta")) == ["mail-alpha"]


def test_what_is_offered_follows_the_role_in_the_chosen_team(both: Client) -> None:
    choose(both, "beta")
    for place in ("/tasks/", "/datasources/", "/supervisors/"):
        page = parsed(both.get(place)).one("main").text
        assert "Submit a" not in page and "Load data" not in page, place
    choose(both, "alpha")
    assert "Submit a task" in parsed(both.get("/tasks/")).one("main").text
    choose(both, "")
    assert "Submit a task" in parsed(both.get("/tasks/")).one("main").text


def test_drafts_are_those_of_the_chosen_team(cast: Cast) -> None:
    root = browsing_as(cast, "superuser")
    for team in ("alpha", "beta"):
        choose(root, team)
        root.post("/load/", {"topic": f"of-{team}"})
    assert set(Draft.objects.values_list("team__name", flat=True)) == {"alpha", "beta"}
    page = root.get("/load/").content.decode()
    assert "of-beta" in page and "of-alpha" not in page
    choose(root, "")
    page = root.get("/load/").content.decode()
    assert "of-beta" in page and "of-alpha" in page


def test_a_draft_of_a_connections_topic_is_of_its_team(cast: Cast) -> None:
    root = browsing_as(cast, "superuser")
    Connection.objects.create(
        team=cast.beta,
        name="kafka",
        kind=Connection.Kinds.KAFKA,
        properties={"bootstrap.servers": "kafka-broker:9092"},
        created_by=cast.users["superuser"],
        changed_by=cast.users["superuser"],
    )
    begin = parsed(root.get("/load/", {"connection": "kafka", "topic": "orders", "team": "beta"}))
    sent = {box.attributes["name"]: box.attributes["value"] for box in begin.all("input", type="hidden")}
    assert sent["team"] == "beta"
    root.post("/load/", {name: sent[name] for name in ("team", "connection", "topic")})
    assert Draft.objects.get().team == cast.beta


def test_who_makes_a_team_is_its_admin(cast: Cast) -> None:
    root = browsing_as(cast, "superuser")
    assert root.post(reverse("frontend:new-team"), {"name": "gamma"}).status_code == 302
    [made] = Membership.objects.filter(team__name="gamma")
    assert (made.user, made.role) == (cast.users["superuser"], Role.ADMIN)
