"""The page of the REST interface in a browser. That it asks no other host and logs no error is ``quiet``'s."""

from __future__ import annotations

from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer


def test_swagger_works_under_its_own_policy(transactional_db: None, page: Page, live_server: LiveServer) -> None:
    answer = page.goto(f"{live_server.url}/api/docs/")
    assert answer is not None
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    page.get_by_text("/api/v1/datasources/", exact=False).first.wait_for()
    page.locator("#operations-datasources-list_datasources").click()
    page.get_by_text("Try it out").first.wait_for()
