"""The wizard's topics, of servers that a draft names itself: which there are, and why that is not known."""

from __future__ import annotations

import html
import re
import socket
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from django.test import Client

from controlplane.connections.services import set_rule
from controlplane.loading.models import Draft
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.waiting import wait_for


@pytest.fixture
def pages(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


@pytest.fixture
def web_server() -> Iterator[str]:
    """The address of one, of the kind that Headgate runs on."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        config = uvicorn.Config("controlplane.config.asgi:application", lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        wait_for("it listens", lambda: server.started, 30)
        yield f"127.0.0.1:{place.getsockname()[1]}"
        server.should_exit = True
        thread.join(30)


def begin(client: Client, properties: dict[str, str]) -> Draft:
    document = {"type": "kafka", "spec": {"ioConfig": {"consumerProperties": properties}}}
    answer = client.post("/api/v1/load/drafts/", {"document": document}, content_type="application/json")
    assert answer.status_code == 201, answer.content
    return Draft.objects.get(pk=answer.json()["id"])


def test_topics_of_a_drafts_own_servers_are_there_to_choose_from(
    pages: Client, clients: dict[str, Client], broker: Broker
) -> None:
    prefix = f"own-{uuid.uuid4().hex[:8]}"
    orders, others = broker.topic(f"{prefix}-orders", 3), broker.topic(f"{prefix}-others", 1)
    servers = broker.kafka.bootstrap
    draft = begin(clients["owner"], {"bootstrap.servers": servers})

    def topics(answer: Any) -> list[str]:
        assert answer.status_code == 200
        rows = parsed(answer).all("tr")
        return [row.attributes["data-topic"] for row in rows if "data-topic" in row.attributes]

    listed = pages.get(f"/load/{draft.pk}/topic/", {"search": prefix, "sort": "-partitions"})
    assert topics(listed) == [orders, others]
    assert f"Topics of {servers}" in listed.content.decode()
    guess = re.search(r'name="guess" value="([^"]+)"', listed.content.decode())
    assert guess is not None
    told = pages.post(f"/load/{draft.pk}/topic/", {"guess": html.unescape(guess[1])})
    assert told.status_code == 302
    draft.refresh_from_db()
    assert draft.document["spec"]["ioConfig"]["topic"] == orders


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"bootstrap.servers": "127.0.0.1:9"}, "127.0.0.1:9"),
        ({"bootstrap.servers": "kafka", "security.protocol": "SASL_SSL"}, "sasl.mechanism is required"),
        ({"security.protocol": "PLAINTEXT"}, "&#x27;bootstrap.servers&#x27; is required"),
    ],
)
def test_why_the_topics_of_own_servers_are_not_known(
    pages: Client, clients: dict[str, Client], properties: dict[str, str], told: str
) -> None:
    draft = begin(clients["owner"], properties)
    answer = pages.get(f"/load/{draft.pk}/topic/")
    assert answer.status_code == 200
    assert told in answer.content.decode()


def test_a_team_that_takes_connections_by_name_alone_is_told_no_topics_of_own_servers(
    pages: Client, clients: dict[str, Client], broker: Broker
) -> None:
    draft = begin(clients["owner"], {"bootstrap.servers": broker.kafka.bootstrap})
    set_rule(user=draft.owner, team=draft.team, own_properties=False)
    told = pages.get(f"/load/{draft.pk}/topic/").content.decode()
    assert "allows saved connections only" in told
    assert "data-topic" not in told


def test_what_is_wrong_with_the_servers_is_named_before_a_login(
    pages: Client, clients: dict[str, Client], broker: Broker, web_server: str
) -> None:
    kafka = broker.kafka.bootstrap
    for properties, told in (
        ({"bootstrap.servers": kafka, "security.protocol": "SSL"}, "Set security.protocol to PLAINTEXT"),
        ({"bootstrap.servers": web_server}, "is a web server. Check host and port"),
    ):
        draft = begin(clients["owner"], properties)
        assert told in pages.get(f"/load/{draft.pk}/topic/").content.decode()
        draft.delete()


def test_a_mistyped_topic_keeps_the_list_and_finds_the_one_that_was_meant(
    pages: Client, clients: dict[str, Client], broker: Broker
) -> None:
    meant = broker.topic(f"meant-{uuid.uuid4().hex[:8]}", 1)
    draft = begin(clients["owner"], {"bootstrap.servers": broker.kafka.bootstrap})
    pages.post(f"/load/{draft.pk}/topic/", {"topic": meant[:-1] + "x-", "go": "again"})
    page = parsed(pages.get(f"/load/{draft.pk}/topic/"))
    assert meant[:-1] in page.one(id="preview-problem").text
    assert meant in [row.attributes["data-topic"] for row in page.all("tr") if "data-topic" in row.attributes]
    offered = page.one("form", data_similar="").all("button")
    assert offered[0].text == f"Use {meant}"
    pages.post(f"/load/{draft.pk}/topic/", {"guess": offered[0].attributes["value"]})
    draft.refresh_from_db()
    assert draft.document["spec"]["ioConfig"]["topic"] == meant
