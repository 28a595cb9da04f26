"""Preview in a browser: by keyboard, without losing what was typed, in both themes, on narrow screens."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browser.crawl import HEIGHT, NARROW, THEMES, fits
from tests.browser.site import log_in_as
from tests.support.django_cast import SEED, Cast, make_cast

LINES = [
    {"__time": "2025-06-01T12:00:00Z", "customer": "c1", "amount": 12.5, "note": "a longer text " * 20},
    {"__time": "2025-06-01T12:00:05Z", "customer": "c2", "amount": 3, "tags": ["x", "y"], "address": {"city": "Bern"}},
]


@pytest.fixture
def site(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture
def form(page: Page, site: Cast, live_server: LiveServer) -> Page:
    """The form for a task, records pasted."""
    log_in_as(page, live_server.url, site.users["owner"])
    page.goto(f"{live_server.url}/tasks/-/new/")
    expect(page.locator(".cm-content")).to_contain_text("your_datasource")
    page.get_by_label("Pasted records").fill("\n".join([*map(json.dumps, LINES), "this is not JSON"]))
    page.get_by_label("Records", exact=True).select_option("Pasted")
    return page


def write(page: Page, text: str) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_a_preview_by_keyboard_keeps_what_was_typed_and_fits_each_screen(form: Page) -> None:
    write(form, json.dumps({**SEED, "context": {"mine": 1}}))
    form.get_by_role("button", name="Preview").focus()
    form.keyboard.press("Enter")
    title = form.get_by_role("heading", name="Preview: 3 records")
    expect(title).to_be_focused()
    expect(form.locator("[data-outcome=stored]")).to_have_count(2)
    expect(form.get_by_role("columnheader", name="amount double")).to_be_visible()
    expect(form.locator("[data-outcome=unparseable]")).to_contain_text("not JSON")
    expect(form.locator(".cm-content")).to_contain_text('"mine"')
    expect(form.get_by_role("button", name="Preview")).to_be_enabled()
    for theme in THEMES:
        form.emulate_media(color_scheme=theme)
        fits(form)
    form.set_viewport_size({"width": NARROW, "height": HEIGHT})
    cards = form.get_by_role("region", name="Records and their rows, as a table")
    assert cards.evaluate("region => region.scrollWidth <= region.clientWidth"), "records scroll sideways"


def test_a_fault_is_a_link_into_the_text(form: Page) -> None:
    write(form, json.dumps({**SEED, "surprise": 1}))
    form.get_by_role("button", name="Preview").click()
    form.locator("#preview-problem").get_by_role("link", name="surprise").click()
    assert form.evaluate("document.getSelection().toString()") == '"surprise"'
