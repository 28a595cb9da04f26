"""The ways of two people from login to done, on the whole stack: Kafka, Spark, Celery, PostgreSQL, a browser."""

from __future__ import annotations

import socket
import uuid
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Quiet
from tests.browser.crawl import HEIGHT, NARROW, WIDE, fits
from tests.support.house import House
from tests.support.records import numbered, published

TASK_MS = 240_000
LOOKS = [("light", WIDE), ("dark", NARROW)]


@pytest.fixture(params=LOOKS, ids=["wide-light", "narrow-dark"])
def visitor(request: pytest.FixtureRequest, page: Page, stack: House) -> Page:
    """Logged in, with a screen of one of the two kinds."""
    theme, width = request.param
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.goto(stack.url)
    page.get_by_label("Username").fill(stack.username)
    page.get_by_label("Password").fill(stack.password)
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.locator("#home")).to_be_visible()
    assert page.locator("html").get_attribute("data-bs-theme") == theme
    return page


def _team(stack: House) -> str:
    return str(stack.api("GET", "/api/v1/teams/")["results"][0]["name"])


def _connection(stack: House, servers: str) -> str:
    name = f"ways-{uuid.uuid4().hex[:6]}"
    body = {"name": name, "kind": "kafka", "properties": {"bootstrap.servers": servers}}
    stack.api("POST", "/api/v1/connections/", body, expect=201)
    return name


class Wizard:
    """The form of the step that is shown."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def main(self) -> Locator:
        return self.page.locator("main")

    def field(self, label: str) -> Locator:
        return self.main.get_by_label(label, exact=True)

    def press(self, name: str) -> None:
        self.main.get_by_role("button", name=name, exact=True).click()

    def refused(self, button: str, words: str) -> None:
        """A mistake is told on its step, which stays."""
        before = self.page.url
        self.press(button)
        expect(self.main.get_by_role("alert").filter(has_text=words).first).to_be_visible()
        assert self.page.url == before

    def on(self, button: str, step: str) -> None:
        self.press(button)
        self.page.wait_for_url(f"**/{step}/")


@pytest.mark.timeout(600)
def test_an_engineer_makes_a_mistake_at_each_step_and_ends_with_rows(visitor: Page, stack: House, quiet: Quiet) -> None:
    quiet.expected = ["status of 400"]  # what a browser says of each mistake
    topic = stack.topic("ways")
    stack.produce(topic, numbered(0, 300))
    connection = _connection(stack, stack.bootstrap)
    wizard = Wizard(visitor)
    visitor.goto(f"{stack.url}/load/")
    wizard.on("Begin", "connection")
    _to_the_records(wizard, connection, topic)
    _to_the_rows(wizard)
    _to_the_spec(wizard, topic)
    visitor.wait_for_url(f"**/supervisors/{topic}/")
    published(stack, topic, 300)
    expect(visitor.locator("[data-counter=published] .figure-value")).to_have_text("=300", timeout=TASK_MS)
    visitor.locator(f"a[href='/datasources/{topic}/']").first.click()
    visitor.get_by_role("link", name="Rows", exact=True).click()
    row = visitor.get_by_role("row").filter(has=visitor.get_by_role("cell", name="299", exact=True))
    expect(row.get_by_role("cell", name="598", exact=True)).to_be_visible()
    fits(visitor)
    stack.rest()


def _to_the_records(wizard: Wizard, connection: str, topic: str) -> None:
    wizard.field("Connection").select_option("")
    wizard.field("Servers (bootstrap.servers)").fill("")
    wizard.refused("Topic", "Choose a connection, or say which servers to ask.")
    wizard.field("Connection").select_option(connection)
    wizard.on("Topic", "topic")
    wizard.refused("Parse", "This field is required.")
    wizard.field("Topic").fill("nobody-made-this-one")
    wizard.press("Read records")
    expect(wizard.page.locator("#preview-problem")).to_contain_text("nobody-made-this-one")
    wizard.field("Topic").fill(topic)
    wizard.press("Read records")
    expect(wizard.main).to_contain_text("300 newest records")
    wizard.on("Parse", "parse")
    wizard.field("Format").select_option("csv")
    wizard.refused("Time", "column")
    wizard.field("Format").select_option("json")
    wizard.on("Time", "time")


def _to_the_rows(wizard: Wizard) -> None:
    wizard.field("Field").fill("")
    wizard.refused("Filter, transform", "This field is required.")
    wizard.page.reload()  # back and forward lose nothing, nor does this
    wizard.press("Use time")
    expect(wizard.field("Field")).to_have_value("time")
    wizard.on("Filter, transform", "transform")
    wizard.field("Columns to make, one a line: name = expression").fill("twice")
    wizard.refused("Columns", "Line 1 is no name = expression")
    wizard.field("Columns to make, one a line: name = expression").fill("twice = n * 2")
    wizard.on("Columns", "schema")
    wizard.field("Metrics, one a line: type name field").fill("longSum")
    wizard.refused("Reading", "Line 1 is no metric")
    wizard.field("Metrics, one a line: type name field").fill("")
    wizard.on("Reading", "reading")


def _to_the_spec(wizard: Wizard, topic: str) -> None:
    wizard.field("Indexers (taskCount)").fill("0")
    wizard.refused("Review", "greater than or equal to 1")
    wizard.field("Indexers (taskCount)").fill("1")
    wizard.on("Review", "review")
    expect(wizard.field("Datasource")).to_have_value(topic)
    wizard.field("Datasource").fill("")
    wizard.refused("Use this name", "This field is required.")
    wizard.field("Datasource").fill(topic)
    wizard.press("Use this name")
    expect(wizard.page.get_by_text("The draft is saved.")).to_be_visible()
    fits(wizard.page)
    wizard.press("Submit supervisor")


def _break(stack: House, connection: str) -> None:
    """Its servers are where nobody listens, as after a broker's machine has died; who uses it is told."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
    place = f"/api/v1/connections/{_team(stack)}/{connection}/"
    stack.api("PUT", place, {"properties": {"bootstrap.servers": address}}, expect=200)
    stack.api("POST", f"{place}restart/", expect=200)


def _mend(page: Page, stack: House) -> None:
    page.get_by_role("link", name="Change it").click()
    page.get_by_label("Bootstrap servers").fill(stack.bootstrap)
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.locator("[data-verdict=ok]")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messages")).to_contain_text("is changed")
    page.get_by_role("button", name="Restart who uses it…").click()
    page.get_by_role("dialog").get_by_role("button", name="Restart who uses it", exact=True).click()


@pytest.mark.timeout(600)
def test_an_operator_sees_a_failed_broker_at_home_finds_the_cause_and_mends_it(visitor: Page, stack: House) -> None:
    topic = stack.topic("ways")
    stack.produce(topic, numbered(0, 200))
    connection = _connection(stack, stack.bootstrap)
    spec: dict[str, Any] = stack.kafka_spec(topic)
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
    visitor.get_by_role("button", name="Test now").click()
    expect(visitor.locator("[data-verdict]")).to_have_attribute("data-verdict", "tcp")
    _mend(visitor, stack)
    stack.produce(topic, numbered(200, 300))
    published(stack, topic, 300)
    visitor.goto(stack.url)
    expect(visitor.locator(f"[data-supervisor='{topic}']")).to_be_visible()
    expect(problem).to_have_count(0, timeout=TASK_MS)
    stack.rest()
