"""Without a mouse: from the login to an act and its effect, and every focus can be seen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from controlplane.loading.models import Draft
from controlplane.supervisors.models import Supervisor
from tests.browser.crawl import NARROW, WIDE
from tests.browser.site import Site
from tests.support.django_cast import PASSWORD

MOST_TABS = 80
# What is focused: its name as it is read out, and whether a mark around it can be seen.
FOCUSED = """() => {
    const e = document.activeElement, s = getComputedStyle(e);
    const label = e.getAttribute("aria-label") || e.labels?.[0]?.innerText || e.innerText || "";
    const marked = (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== "none";
    return [label.trim().replace(/\\s+/g, " "), marked || e === document.body];
}"""


def tab_to(page: Page, name: str) -> None:
    """Tab by tab until it is focused; each that is passed must show that it has the focus."""
    passed = []
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        label, marked = page.evaluate(FOCUSED)
        assert marked, f"nothing shows that {label!r} is focused"
        if label == name:
            return
        passed.append(label)
    raise AssertionError(f"no way to {name!r} past {passed}")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_an_admin_suspends_a_supervisor(site: Site, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(reduced_motion="reduce")
    page.goto(site.url)
    page.get_by_label("Username").focus()  # it has the focus without this where the browser allows it
    page.keyboard.type("owner")
    tab_to(page, "Password")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()

    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED)[0] == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)

    page.keyboard.press("Control+k")
    page.keyboard.type("flights")
    expect(page.locator(".palette-hit").filter(has_text="flights").first).to_be_visible()
    hit = page.locator(".palette-hit[aria-selected=true]")
    for _ in range(10):
        expect(hit).to_have_count(1)
        if "supervisor" in hit.inner_text().lower():
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/supervisors/flights/")

    tab_to(page, "Suspend…")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    tab_to(page, "Suspend")
    page.keyboard.press("Enter")
    expect(page.locator(".messages")).to_contain_text("suspended")
    assert Supervisor.objects.get(pk="flights").suspended


def test_a_draft_is_begun_and_a_list_is_sorted(site: Site, page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto(site.url)
    page.get_by_label("Username").fill("owner")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/datasources/")
    tab_to(page, "Rows")
    page.keyboard.press("Enter")
    page.wait_for_url("**/datasources/?sort=-rows")
    tab_to(page, "Load data")
    page.keyboard.press("Enter")
    page.wait_for_url("**/load/")
    tab_to(page, "Begin")
    page.keyboard.press("Enter")
    page.wait_for_url("**/connection/")
    tab_to(page, "Servers (bootstrap.servers)")
    page.keyboard.press("Control+a")
    page.keyboard.type("127.0.0.1:1")
    tab_to(page, "Topic")
    page.keyboard.press("Enter")
    page.wait_for_url("**/topic/")
    assert Draft.objects.get().document["spec"]["ioConfig"]["consumerProperties"]["bootstrap.servers"] == "127.0.0.1:1"
