"""Without a mouse: from the login to acts and their effects, and every focus can be seen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from controlplane.connections.models import Connection
from controlplane.loading.models import Draft
from controlplane.supervisors.models import SpecVersion, Supervisor
from tests.browser.crawl import NARROW, WIDE
from tests.browser.keyboard import FOCUSED, SKIP, log_in, press, tab_to, write
from tests.browser.site import CLUSTER, Site


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_an_admin_suspends_a_supervisor(site: Site, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    log_in(page, site, "owner")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED)[0] == SKIP
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

    tab_to(page, "Suspend…", through_header=True)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    tab_to(page, "Suspend")
    page.keyboard.press("Enter")
    expect(page.locator(".messages")).to_contain_text("suspended")
    assert Supervisor.objects.get(pk="flights").suspended


def test_a_draft_is_begun_and_a_list_is_sorted(site: Site, page: Page) -> None:
    log_in(page, site, "owner")
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/datasources/")
    tab_to(page, "Rows")
    page.keyboard.press("Enter")
    page.wait_for_url("**/datasources/?sort=-rows")
    tab_to(page, "Load data")
    page.keyboard.press("Enter")
    page.wait_for_url("**/load/")
    tab_to(page, "Create draft")
    page.keyboard.press("Enter")
    page.wait_for_url("**/connection/")
    tab_to(page, "Servers (bootstrap.servers)")
    page.keyboard.press("Control+a")
    page.keyboard.type("127.0.0.1:1")
    tab_to(page, "Topic")
    page.keyboard.press("Enter")
    page.wait_for_url("**/topic/")
    assert Draft.objects.get().document["spec"]["ioConfig"]["consumerProperties"]["bootstrap.servers"] == "127.0.0.1:1"


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_wizard_is_gone_through_from_the_time_to_the_submit(site: Site, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    draft = site.draft()
    log_in(page, site, "owner")
    page.goto(f"{site.url}/load/{draft.pk}/time/")
    with page.expect_navigation():
        press(page, "Use __time")
    tab_to(page, "Segment granularity")
    page.keyboard.type("Hour")
    press(page, "Filter, transform")
    page.wait_for_url("**/transform/")
    write(page, "Keep records where", "amount >= 0")
    page.keyboard.press("Escape")
    write(page, "Transforms, one per line: name = expression", "twice = amount * 2")
    page.keyboard.press("Escape")
    press(page, "Columns")
    page.wait_for_url("**/schema/")
    tab_to(page, "Query granularity")
    page.keyboard.type("Minute")
    tab_to(page, "Rollup")
    page.keyboard.press("Space")
    press(page, "Reading")
    page.wait_for_url("**/reading/")
    write(page, "Indexers (taskCount)", "2")
    press(page, "Review")
    page.wait_for_url("**/review/")
    press(page, "Submit supervisor")
    expect(page.locator(".messages")).to_contain_text("Supervisor submitted.")
    spec = SpecVersion.objects.get(supervisor="drafted").spec["spec"]
    assert spec["dataSchema"]["granularitySpec"]["segmentGranularity"] == "HOUR"
    assert spec["dataSchema"]["granularitySpec"]["queryGranularity"] == "MINUTE"
    assert spec["dataSchema"]["granularitySpec"]["rollup"] is True
    assert spec["dataSchema"]["transformSpec"]["filter"]["expression"] == "amount >= 0"
    assert [made["name"] for made in spec["dataSchema"]["transformSpec"]["transforms"]] == ["twice"]
    assert spec["ioConfig"]["taskCount"] == 2


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_people_are_invited_and_an_invitation_is_accepted(site: Site, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    log_in(page, site, "owner")
    page.goto(f"{site.url}/teams/")
    press(page, "Accept the invitation of beta")
    expect(page.locator(".messages")).to_contain_text("beta")
    assert site.cast.beta.memberships.filter(user__username="owner").exists()

    page.goto(f"{site.url}/teams/alpha/")
    write(page, "E-mail address", "new@example.org")
    tab_to(page, "Role")
    page.keyboard.type("operator")
    press(page, "Create invitation link")
    expect(page.locator("#new-link")).to_be_visible()
    assert site.cast.alpha.link_invitations.get(email="new@example.org").role == "operator"
    tab_to(page, "Copy the link")
    press(page, "Invite an existing user by name")
    write(page, "User name", "outsider")
    press(page, "Invite")
    expect(page.locator("[data-invited=outsider]")).to_be_visible()
    press(page, "Withdraw the invitation of outsider")
    expect(page.locator("[data-invited=outsider]")).to_have_count(0)
    press(page, "Withdraw the link of new@example.org")
    expect(page.locator("[data-link='new@example.org']")).to_have_count(0)
    assert not site.cast.alpha.link_invitations.filter(email="new@example.org").exists()


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_connection_is_made_tested_and_deleted(site: Site, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    log_in(page, site, "owner")
    page.goto(f"{site.url}/connections/")
    press(page, "New Kafka cluster")
    page.wait_for_url("**/connections/-/new/")
    write(page, "Name", "typed")
    write(page, "Bootstrap servers", "127.0.0.1:1")
    tab_to(page, "Security")
    page.keyboard.type("SASL_PLAINTEXT")
    write(page, "User", "me")
    write(page, "Password", "canary-4711")
    press(page, "Test")
    expect(page.locator("[data-verdict=tcp]")).to_contain_text("refuses the connection")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUSED)[0] == "Create"
    page.keyboard.press("Enter")
    expect(page.locator(".messages")).to_contain_text("The connection typed was created.")
    press(page, "Test connection")
    expect(page.locator("[data-verdict=tcp]")).to_contain_text("nothing listens there")
    page.goto(f"{site.url}/connections/alpha/typed/")
    press(page, "Delete…")
    expect(page.get_by_role("dialog")).to_be_visible()
    press(page, "Delete")
    expect(page.locator(".messages")).to_contain_text("The connection typed is deleted.")
    assert list(Connection.objects.filter(kind="kafka").values_list("name", flat=True)) == [CLUSTER]
