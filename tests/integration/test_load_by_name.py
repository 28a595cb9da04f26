"""The wizard's first step in a team that takes connections by their names only."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from controlplane.connections.models import Connection
from controlplane.connections.services import set_rule
from controlplane.loading.models import Draft
from tests.support.django_cast import Cast, browsing_as
from tests.support.drafts import SERVERS, begin, document
from tests.support.html import parsed

PATH = "spec.ioConfig.consumerProperties"
NAMED = {"type": "kafka", "spec": {"ioConfig": {"topic": "orders", "connection": "orders-kafka"}}}


@pytest.fixture
def pages(cast: Cast) -> Client:
    place = {"bootstrap.servers": "127.0.0.1:9"}
    Connection.objects.create(team=cast.alpha, name="orders-kafka", kind=Connection.Kinds.KAFKA, properties=place)
    set_rule(user=cast.users["owner"], team=cast.alpha, own_properties=False)
    return browsing_as(cast, "owner")


def fields(answer: Any) -> dict[str, str]:
    """The step's, with the text of their choices."""
    assert answer.status_code == 200
    form = parsed(answer).one("main")
    found = [e for e in form.all() if e.tag in ("input", "select", "textarea") and e.attributes.get("type") != "hidden"]
    return {e.attributes["name"]: e.text for e in found}


def test_only_connections_are_offered(pages: Client, owner: Client) -> None:
    draft = begin(owner, {"document": NAMED})
    answer = pages.get(f"/load/{draft.pk}/connection/")
    assert fields(answer) == {"connection": "Choose one orders-kafka"}
    assert "Team alpha allows saved connections only" in parsed(answer).one("main").text
    assert PATH not in answer.content.decode()


def test_a_draft_with_servers_of_its_own_is_shown_and_told_so(pages: Client, owner: Client) -> None:
    draft = begin(owner)
    answer = pages.get(f"/load/{draft.pk}/connection/")
    assert list(fields(answer)) == ["connection"]
    told = parsed(answer).one("div", id="look-problem").text
    assert PATH in told
    assert "allows saved connections only" in told
    assert PATH in parsed(pages.get(f"/load/{draft.pk}/topic/")).one("main").text
    assert "kafka-broker:9092" in parsed(pages.get(f"/load/{draft.pk}/review/")).one("textarea", name="document").text


def test_a_connection_takes_the_place_of_own_servers(pages: Client, owner: Client) -> None:
    draft = begin(owner)
    assert pages.post(f"/load/{draft.pk}/connection/", {"connection": "orders-kafka"}).status_code == 302
    draft.refresh_from_db()
    io_config = draft.document["spec"]["ioConfig"]
    assert (io_config["connection"], io_config.get("consumerProperties")) == ("orders-kafka", None)


def test_properties_beside_own_servers_may_be_taken_out(pages: Client, owner: Client) -> None:
    draft = begin(owner, {"document": document(consumerProperties={**SERVERS, "security.protocol": "SSL"})})
    assert list(fields(pages.get(f"/load/{draft.pk}/connection/"))) == ["connection", "properties"]
    sent = {"connection": "orders-kafka", "properties": '{"bootstrap.servers": "elsewhere:9092"}'}
    refused = pages.post(f"/load/{draft.pk}/connection/", sent)
    assert (refused.status_code, "Leave bootstrap.servers out" in refused.content.decode()) == (400, True)
    sent = {"connection": "orders-kafka", "properties": ""}
    assert pages.post(f"/load/{draft.pk}/connection/", sent).status_code == 302
    draft.refresh_from_db()
    assert draft.document["spec"]["ioConfig"].get("consumerProperties") is None


def test_without_a_connection_the_step_says_where_one_is_missing(pages: Client, owner: Client) -> None:
    draft = begin(owner)
    answer = pages.post(f"/load/{draft.pk}/connection/", {"connection": "", "servers": "elsewhere:9092"})
    assert answer.status_code == 400
    assert "spec.ioConfig.connection: team alpha allows" in parsed(answer).one("main").text
    draft.refresh_from_db()
    assert draft.document == document()


def test_a_new_draft_begins_without_servers(pages: Client, owner: Client, settings: Any) -> None:
    settings.DEFAULT_BOOTSTRAP = "kafka:9092"
    pages.post("/load/", {})
    assert Draft.objects.get().document["spec"]["ioConfig"]["consumerProperties"] == {}
    assert begin(owner, {}).document["spec"]["ioConfig"]["consumerProperties"] == {}
