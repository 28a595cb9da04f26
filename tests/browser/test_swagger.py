"""The page of the REST interface in a browser. That it asks no other host and logs no error is ``quiet``'s."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browser.conftest import Quiet


def test_swagger_works_under_its_own_policy(
    transactional_db: None, page: Page, live_server: LiveServer, quiet: Quiet
) -> None:
    quiet.expected.append("escaping deep link whitespace")  # what it says of any name with an underscore
    # It draws what is looked at; a link to an operation leads there.
    answer = page.goto(f"{live_server.url}/api/docs/#/datasources/list_datasources")
    assert answer is not None
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    listed = page.locator("#operations-datasources-list_datasources")
    expect(listed).to_contain_text("/api/v1/datasources/")
    page.get_by_text("Try it out").first.wait_for()
