"""A newcomer's first walk through the product, on the whole stack: Kafka, Spark, Celery, PostgreSQL, a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from controlplane.embedded.demo.records import EXAMPLE_RECORDS, FLIGHTS
from controlplane.embedded.demo.records import flights as flight_records
from controlplane.embedded.demo.specs import FLIGHTS_DATASOURCE, FLIGHTS_TOPIC, flights_supervisor
from tests.browser.timeline import changed, drawn, point_at
from tests.support.django_cast import SEED
from tests.support.house import House
from tests.support.records import published

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
TASK_MS = 240_000


@pytest.mark.timeout(1200)
def test_from_login_to_a_task_that_succeeds(page: Page, stack: House) -> None:
    """The year's flights are on their way meanwhile: two applications of Spark take little longer to start than one."""
    days = _start_the_flights(stack)
    _log_in(page, stack)
    _submit_the_seed_s_spec(page, stack)
    published(stack, FLIGHTS_DATASOURCE, FLIGHTS, 280)
    stack.rest()
    _look_at_the_flights(page, days)


def _start_the_flights(stack: House) -> int:
    """All of 2013, for a supervisor that reads them. Returns on how many days there were any."""
    days: set[bytes] = set()

    def noted(record: bytes) -> bytes:
        days.add(record.partition(b'"time_hour":"')[2][:10])
        return record

    stack.make_topic(FLIGHTS_TOPIC)
    stack.supervise(flights_supervisor(stack.bootstrap))
    assert stack.produce(FLIGHTS_TOPIC, map(noted, flight_records())) == FLIGHTS
    return len(days)


def _log_in(page: Page, stack: House) -> None:
    page.goto(stack.url)
    page.get_by_label("Username").fill(stack.username)
    page.get_by_label("Password").fill(stack.password)
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("heading", name="Datasources")).to_be_visible()


def _submit_the_seed_s_spec(page: Page, stack: House) -> None:
    topic = stack.topic("druid-share-test")
    stack.produce(topic, EXAMPLE_RECORDS)
    spec = json.loads(json.dumps(SEED))
    spec["dataSchema"]["dataSource"] = topic
    spec["ioConfig"] |= {"topic": topic, "groupId": topic, "consumerProperties": {"bootstrap.servers": stack.bootstrap}}
    page.get_by_role("link", name="Tasks", exact=True).click()
    page.get_by_role("link", name="Submit a task").first.click()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(json.dumps(spec, indent=2))
    page.get_by_role("button", name="Submit task").click()
    expect(page.get_by_text("Task submitted.")).to_be_visible()
    expect(page.locator("#task-live[data-status=SUCCESS]")).to_be_visible(timeout=TASK_MS)
    expect(page.locator("[data-counter=published] .figure-value")).to_have_text(f"={len(EXAMPLE_RECORDS)}")
    expect(page.locator("[data-adds-up=yes]")).to_be_visible()


def _look_at_the_flights(page: Page, days: int) -> None:
    page.get_by_role("link", name="Datasources", exact=True).click()
    page.get_by_role("link", name=FLIGHTS_DATASOURCE, exact=True).click()
    whole = drawn(page)
    assert (whole.bars, whole.rows) == (days, FLIGHTS)
    published = page.locator("[data-counter=published] .figure-value")
    expect(published).to_have_text(f"={FLIGHTS:,}")
    expect(page.locator("[data-adds-up=yes]")).to_be_visible()
    point_at(page, 0.5)
    expect(page.locator(".timeline-tip")).to_contain_text("Segments")
    IMAGES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=IMAGES / "timeline.png")
    page.get_by_role("button", name="Zoom in").click()
    assert changed(page, whole).bars < whole.bars
