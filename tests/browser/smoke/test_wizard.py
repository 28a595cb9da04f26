"""An engineer's way from login to rows, on the whole stack: Kafka, Spark, Celery, PostgreSQL, a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Quiet
from tests.browser.crawl import WIDE, fits
from tests.browser.visitor import TASK_MS, log_in, make_connection
from tests.support.house import House
from tests.support.records import numbered, published


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
def test_an_engineer_makes_a_mistake_at_each_step_and_ends_with_rows(page: Page, stack: House, quiet: Quiet) -> None:
    """On a wide, light screen. Spark runs what the wizard submits: rows are what an engineer wants of it."""
    visitor = log_in(page, stack, "light", WIDE)
    quiet.expected = ["status of 400"]  # what a browser says of each mistake
    topic = stack.topic("ways")
    stack.produce(topic, numbered(0, 300))
    connection = make_connection(stack, stack.bootstrap)
    wizard = Wizard(visitor)
    visitor.goto(f"{stack.url}/load/")
    wizard.on("Create draft", "connection")
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
    wizard.refused("Topic", "Choose a connection, or enter servers.")
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
    wizard.field("Transforms, one per line: name = expression").fill("twice")
    wizard.refused("Columns", "Line 1 must be name = expression")
    wizard.field("Transforms, one per line: name = expression").fill("twice = n * 2")
    wizard.on("Columns", "schema")
    wizard.field("Metrics, one per line: type name field").fill("longSum")
    wizard.refused("Reading", "Line 1 must be type, name and field")
    wizard.field("Metrics, one per line: type name field").fill("")
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
