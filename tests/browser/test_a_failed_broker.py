"""An operator's way from a failed broker to one that is read again, on the whole stack and in a browser."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.crawl import NARROW, fits
from tests.browser.visitor import TASK_MS, log_in, make_connection
from tests.support.house import House
from tests.support.records import numbered, published


def _team(stack: House) -> str:
    return str(stack.api("GET", "/api/v1/teams/")["results"][0]["name"])


def _break(stack: House, connection: str) -> None:
    """Its servers are where nobody listens, as after a broker's machine has died; who uses it is told."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
    place = f"/api/v1/connections/{_team(stack)}/{connection}/"
    stack.api("PUT", place, {"properties": {"bootstrap.servers": address}}, expect=200)
    stack.api("POST", f"{place}restart/", expect=200)


def _mend(page: Page, stack: House) -> None:
    page.get_by_role("link", name="Change connection").click()
    page.get_by_label("Bootstrap servers").fill(stack.bootstrap)
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.locator("[data-verdict=ok]")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messages")).to_contain_text("is changed")
    page.get_by_role("button", name="Restart supervisors that use it…").click()
    page.get_by_role("dialog").get_by_role("button", name="Restart supervisors that use it", exact=True).click()


@pytest.mark.timeout(600)
def test_an_operator_sees_a_failed_broker_at_home_finds_the_cause_and_mends_it(page: Page, stack: House) -> None:
    """On a narrow, dark screen. Under Spark, as what runs is what the pages tell of."""
    visitor = log_in(page, stack, "dark", NARROW)
    topic = stack.topic("ways")
    stack.produce(topic, numbered(0, 200))
    connection = make_connection(stack, stack.bootstrap)
    spec: dict[str, Any] = stack.kafka_spec(topic, period="PT2S")  # a few of these until it is called failed, or well
    del spec["ioConfig"]["consumerProperties"]
    spec["ioConfig"]["connection"] = connection
    stack.supervise(spec)
    published(stack, topic, 200)
    _break(stack, connection)
    visitor.goto(stack.url)
    problem = visitor.locator("[data-problem]").filter(has=visitor.get_by_role("link", name=topic, exact=True)).first
    expect(problem).to_contain_text("Kafka", timeout=TASK_MS)  # the page is live: nobody loads it anew
    fits(visitor)
    problem.get_by_role("link", name=topic, exact=True).click()
    visitor.get_by_role("link", name=connection).first.click()
    visitor.get_by_role("button", name="Test connection").click()
    expect(visitor.locator("[data-verdict]")).to_have_attribute("data-verdict", "tcp")
    _mend(visitor, stack)
    stack.produce(topic, numbered(200, 300))
    published(stack, topic, 300)
    visitor.goto(stack.url)
    expect(visitor.locator(f"[data-supervisor='{topic}']")).to_be_visible()
    expect(problem).to_have_count(0, timeout=TASK_MS)
    stack.rest()
