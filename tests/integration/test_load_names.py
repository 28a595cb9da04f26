"""What a draft's datasource is called, and whose that name is."""

from __future__ import annotations

import json

import pytest

from controlplane.loading.models import Draft
from controlplane.teams.models import Membership
from controlplane.teams.roles import Role
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed


def test_a_topic_gives_no_name_that_is_another_teams(cast: Cast) -> None:
    Membership.objects.create(user=cast.users["outsider"], team=cast.alpha, role=Role.VIEWER)
    client = browsing_as(cast, "outsider")
    begun = client.post("/load/", {"topic": "flights", "servers": "127.0.0.1:1"}, follow=True)
    assert "A datasource of another team has the topic" in begun.content.decode()
    draft = Draft.objects.get()
    assert (draft.team, draft.document["spec"]["ioConfig"]["topic"]) == (cast.beta, "flights")
    assert "dataSource" not in draft.document["spec"]["dataSchema"]
    for topic, name in (("orders", "orders"), ("flights", None)):
        assert client.post(f"/load/{draft.pk}/topic/", {"topic": topic, "go": "back"}).status_code == 302
        draft.refresh_from_db()
        assert draft.document["spec"]["dataSchema"].get("dataSource") == name
    named = json.dumps({**draft.document, "spec": {**draft.document["spec"], "dataSchema": {"dataSource": "flights"}}})
    client.post(f"/load/{draft.pk}/review/", {"document": named, "go": "stay"})
    refused = client.get(f"/load/{draft.pk}/topic/").content.decode()
    assert "belongs to that team; another name makes a new one" in refused


@pytest.mark.parametrize(("role", "of"), [(Role.OPERATOR, "beta"), (Role.VIEWER, "")])
def test_a_draft_is_of_the_team_that_the_header_says(cast: Cast, role: str, of: str) -> None:
    Membership.objects.create(user=cast.users["owner"], team=cast.beta, role=role)
    pages = browsing_as(cast, "owner")
    assert pages.post("/-/team/", {"team": "beta", "next": "/"}).status_code == 302
    begun = pages.post("/load/", {"topic": "orders"}, follow=True)
    assert [draft.team.name for draft in Draft.objects.all()] == [of] * bool(of)
    assert ("You are not an operator of team beta" in parsed(begun).text) is (not of)
