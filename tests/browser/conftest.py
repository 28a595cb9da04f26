"""A browser whose pages stay quiet: no error in its console, no request to another machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import ConsoleMessage, Page, Request, expect
from pytest_django.live_server_helper import LiveServer

from tests.browser.crawl import HEIGHT, WIDE
from tests.browser.site import Site, Visit, make_site

expect.set_options(timeout=30_000)  # ms; five seconds of a busy machine say nothing of a page
# The first has no windows, and works a quarter less.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The system's Chromium (HEADGATE_CHROMIUM for another); without one Playwright's own, which says if it lacks."""
    program = os.environ.get("HEADGATE_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    # As root, in a container, Chromium has no sandbox of its own.
    return {**browser_type_launch_args, "executable_path": program, "args": ["--no-sandbox"]}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    chosen = {"viewport": {"width": WIDE, "height": HEIGHT}, "color_scheme": "light", "timezone_id": "Asia/Tokyo"}
    return {**browser_context_args, **chosen, "locale": "en-GB"}


class Quiet:
    """What a page should not have done. ``expected``: texts of console errors that a test causes on purpose."""

    def __init__(self, page: Page) -> None:
        self.faults: list[str] = []
        self.hosts: set[str] = set()
        self.expected: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        page.on("request", self._asked)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(text in message.text for text in self.expected):
            self.faults.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme.startswith(("http", "ws")):
            self.hosts.add(address.netloc)


@pytest.fixture(autouse=True)
def quiet(page: Page) -> Iterator[Quiet]:
    """Fails the test afterwards if the console was not quiet or another machine was asked."""
    watched = Quiet(page)
    yield watched
    assert watched.faults == []
    assert len(watched.hosts) <= 1, watched.hosts


@pytest.fixture
def site(transactional_db: None, live_server: LiveServer, page: Page) -> Iterator[Site]:
    yield make_site(live_server.url)
    page.goto("about:blank")  # a page that is still open would ask for itself when its user is gone


@pytest.fixture
def visit(site: Site, page: Page, quiet: Quiet) -> Visit:
    """The owner's visit, who may do everything. Buttons and links change at once: no colour is caught on its way."""
    page.emulate_media(reduced_motion="reduce")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit = Visit(page, site)
    visit.become("owner")
    return visit
