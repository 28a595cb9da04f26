"""A page of each kind: what it is about is there, nothing is wider than its screen, and axe finds nothing wrong."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.crawl import fits, violations
from tests.browser.site import Visit
from tests.browser.test_every_page import AXE

# By address: what is seen there.
KINDS = {
    "/": "#home",
    "/datasources/": "main >> text=flights",
    "/datasources/flights/": "[data-counter=published]",
    "/supervisors/flights/": "main >> text=RUNNING",
    "/tasks/": "main table",
    "/quarantine/": "main table",
    "/alerts/": "main",
    "/connections/": "main >> text=orders-schemas",
    "/load/": "main form",
    "/supervisors/-/new/": ".cm-content",
}


def test_each_kind_of_page_shows_what_it_is_about(visit: Visit) -> None:
    """``test_every_page`` looks at all of them, in both themes."""
    visit.page.add_init_script(AXE)
    faults = {address: _faults(visit, address, what) for address, what in KINDS.items()}
    assert {address: found for address, found in faults.items() if found} == {}


def _faults(visit: Visit, address: str, what: str) -> list[str]:
    visit.open(address)
    expect(visit.page.locator(what).first).to_be_visible()
    fits(visit.page)
    return violations(visit.page)
