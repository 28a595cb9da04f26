"""What every page has around it: the chosen team, and what the palette finds for whom."""

from __future__ import annotations

import pytest

from controlplane.loading.models import Draft
from controlplane.supervisors.models import Supervisor
from controlplane.teams.models import Membership
from controlplane.teams.roles import Role
from frontend.palette import MAX_HITS
from tests.support.alerting import alerting
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed


def found(cast: Cast, role: str, text: str) -> dict[str, str]:
    """Name → address of what the palette answers."""
    hits = browsing_as(cast, role).get("/-/go.json", {"q": text}).json()["hits"]
    return {hit["name"]: hit["url"] for hit in hits}


def test_the_palette_finds_things_by_any_part_of_their_names(cast: Cast) -> None:
    assert found(cast, "viewer", "LIGHT") == {
        "flights": "/datasources/flights/",
        "06-01 12:00 · abcdefgh": f"/tasks/{cast.task.pk}/",
    }
    assert f"/tasks/{cast.task.pk}/" in found(cast, "viewer", cast.task.pk).values()
    assert f"/tasks/{cast.task.pk}/" in found(cast, "viewer", "06-01 12:00 · abcdefgh").values()
    urls = [hit["url"] for hit in browsing_as(cast, "viewer").get("/-/go.json?q=fli").json()["hits"]]
    assert urls == ["/supervisors/flights/", "/datasources/flights/", f"/tasks/{cast.task.pk}/"]


@pytest.mark.parametrize("text", ["flights", "suspend", "abcdefgh", "suspend flights", "stop now"])
def test_the_palette_shows_nobody_what_is_another_team_s(cast: Cast, text: str) -> None:
    assert found(cast, "outsider", text) == {}


def test_the_palette_offers_what_the_role_and_the_state_allow(cast: Cast) -> None:
    asks = "/supervisors/flights/confirm"
    assert found(cast, "operator", "suspend fli")["Suspend flights…"] == f"{asks}/suspend/"
    assert found(cast, "operator", "ha flights") == {"Hand off flights…": f"{asks}/handoff/"}
    assert found(cast, "viewer", "suspend fli") == {}
    assert found(cast, "operator", "terminate fli") == {}
    assert found(cast, "owner", "terminate fli") == {"Terminate flights…": f"{asks}/terminate/"}
    assert found(cast, "operator", "stop now abcd") == {
        "Stop now 06-01 12:00 · abcdefgh…": f"/tasks/{cast.task.pk}/confirm/stop/"
    }
    Supervisor.objects.filter(pk="flights").update(suspended=True)
    assert "Suspend flights…" not in found(cast, "operator", "flights")
    assert "Resume flights…" in found(cast, "operator", "flights")


def test_the_palette_finds_connections_teams_people_alerts_and_drafts(cast: Cast) -> None:
    there = alerting(cast)
    draft = Draft.objects.create(
        owner=cast.users["operator"], team=cast.alpha, document={"spec": {"dataSchema": {"dataSource": "new-trains"}}}
    )
    assert found(cast, "viewer", "schemas") == {"orders-schemas": "/connections/alpha/orders-schemas/"}
    assert found(cast, "viewer", "alph") == {"alpha": "/teams/alpha/"}
    assert found(cast, "operator", "trains") == {"new-trains": f"/load/{draft.pk}/connection/"}
    assert found(cast, "owner", "trains") == {}, "a draft is its owner's"
    assert found(cast, "viewer", there.rule.name)[there.rule.name] == f"/alerts/rules/{there.rule.pk}/"
    assert found(cast, "viewer", there.receiver.name)[there.receiver.name] == f"/alerts/receivers/{there.receiver.pk}/"
    assert found(cast, "superuser", "viewe") == {"viewer": "/people/viewer/"}
    assert found(cast, "owner", "viewe") == {}
    for name in ("schemas", "alph", there.rule.name, there.receiver.name):
        assert found(cast, "outsider", name) == {}


def test_the_palette_leads_to_what_may_be_done_to_datasources_connections_and_teams(cast: Cast) -> None:
    of_connection = "/connections/alpha/orders-schemas"
    assert found(cast, "owner", "restart orders") == {
        "Restart supervisors that use orders-schemas…": f"{of_connection}/confirm/restart/"
    }
    assert found(cast, "operator", "test orders") == {"Test orders-schemas…": f"{of_connection}/"}
    assert found(cast, "operator", "delete orders") == {}
    assert found(cast, "owner", "delete fli") == {"Delete flights…": "/datasources/flights/delete/"}
    assert found(cast, "operator", "silence fli") == {"Silence flights…": "/alerts/silences/-/new/?datasource=flights"}
    assert found(cast, "viewer", "silence fli") == {}
    assert found(cast, "owner", "change fli") == {"Change flights…": "/load/?supervisor=flights"}
    assert found(cast, "owner", "invite into al") == {"Invite into alpha…": "/teams/alpha/"}
    for text in ("restart orders", "delete fli", "silence fli", "change fli", "invite into al"):
        assert found(cast, "outsider", text) == {}


def test_what_the_palette_offers_can_be_opened(cast: Cast) -> None:
    owner, texts = (
        browsing_as(cast, "owner"),
        ("", "flights", "orders", "delete fli", "transfer o", "mark fli", "set fli"),
    )
    hits = [hit for text in texts for hit in owner.get("/-/go.json", {"q": text}).json()["hits"]]
    assert {hit["url"]: owner.get(hit["url"]).status_code for hit in hits} == {hit["url"]: 200 for hit in hits}


def test_the_palette_without_a_text_offers_pages(cast: Cast) -> None:
    assert {"Load data", "Datasources", "Audit trail"} <= set(found(cast, "owner", ""))
    assert {"Load data", "Submit a task", "Audit trail", "Style guide"} & set(found(cast, "viewer", "")) == set()


@pytest.mark.parametrize("text", ["\x00", "%", "_", "\ud800", "'", "x" * 10_000, "[(", "stop \x00"])
def test_any_text_may_be_looked_for(cast: Cast, text: str) -> None:
    answer = browsing_as(cast, "owner").get("/-/go.json", {"q": text.encode("utf-8", "surrogatepass")})
    assert answer.status_code == 200
    assert len(answer.json()["hits"]) <= MAX_HITS


def test_a_chosen_team_s_things_alone_are_shown_until_it_is_left(cast: Cast) -> None:
    Membership.objects.create(user=cast.users["viewer"], team=cast.beta, role=Role.VIEWER)
    viewer = browsing_as(cast, "viewer")
    answer = viewer.post("/-/team/", {"team": "beta", "next": "/supervisors/?state=RUNNING"})
    assert answer["Location"] == "/supervisors/?state=RUNNING"
    assert viewer.get("/-/go.json?q=flights").json() == {"hits": []}
    team = parsed(viewer.get("/datasources/")).one("nav", aria_label="Site").one("button", title="Team")
    assert team.text.split() == ["Team:", "beta"]
    Membership.objects.filter(user=cast.users["viewer"], team=cast.beta).delete()
    assert viewer.get("/-/go.json?q=flights").json()["hits"] != []


@pytest.mark.parametrize("back", ["https://elsewhere.example/", "//elsewhere.example/", "javascript:alert(1)", ""])
def test_choosing_a_team_leads_to_no_other_site(cast: Cast, back: str) -> None:
    answer = browsing_as(cast, "owner").post("/-/team/", {"team": "", "next": back})
    assert answer["Location"] == "/"
