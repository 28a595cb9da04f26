"""Somebody who uses the whole stack in a browser."""

from __future__ import annotations

import uuid
from typing import Literal

from playwright.sync_api import Page, expect

from tests.browser.crawl import HEIGHT
from tests.support.house import House

TASK_MS = 240_000


def log_in(page: Page, stack: House, theme: Literal["light", "dark"], width: int) -> Page:
    """By the form, on a screen of that width."""
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.goto(stack.url)
    page.get_by_label("Username").fill(stack.username)
    page.get_by_label("Password").fill(stack.password)
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.locator("#home")).to_be_visible()
    assert page.locator("html").get_attribute("data-bs-theme") == theme
    return page


def make_connection(stack: House, servers: str) -> str:
    """Its name."""
    name = f"ways-{uuid.uuid4().hex[:6]}"
    body = {"name": name, "kind": "kafka", "properties": {"bootstrap.servers": servers}}
    stack.api("POST", "/api/v1/connections/", body, expect=201)
    return name
