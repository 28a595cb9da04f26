"""A team from nothing: made, joined by a link, worked in with a service token, and left. What was submitted goes on."""

from __future__ import annotations

from typing import Any

from django.test import Client
from playwright.sync_api import Browser, Page, expect

from controlplane.datasources.models import Datasource
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.teams.models import Membership, Team
from controlplane.teams.roles import Role
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.browser.conftest import Quiet
from tests.browser.site import Visit
from tests.support.django_cast import PASSWORD, spec_for

SUPERVISOR = {"suspended", "terminated_at", "version", "detailed_state"}


def test_a_team_needs_nobody_else(visit: Visit, browser: Browser, browser_context_args: dict[str, Any]) -> None:
    link = _make_a_team_and_invite(visit)
    context = browser.new_context(**browser_context_args)
    guest = context.new_page()
    quiet = Quiet(guest)
    try:
        _join(guest, link)
        _sees_exactly_the_team(guest)
        supervisor = _submitted_by("ann")
        _raise_the_role(visit)
        _make_and_revoke_a_token(guest, visit.site.url)
        before = Supervisor.objects.filter(pk=supervisor).values(*SUPERVISOR).get()
        _remove(visit)
        guest.goto(f"{visit.site.url}/teams/")
        expect(guest.get_by_role("heading", name="You are in no team yet")).to_be_visible()
        assert Supervisor.objects.filter(pk=supervisor).values(*SUPERVISOR).get() == before
    finally:
        context.close()
    assert quiet.faults == []


def _make_a_team_and_invite(visit: Visit) -> str:
    """By an administrator of the site; returns the link."""
    visit.become("superuser")
    visit.open("/teams/-/new/")
    visit.page.get_by_label("Name", exact=True).fill("web")
    visit.press("Create team")
    visit.page.get_by_label("E-mail address").fill("ann@example.org")
    visit.page.locator("#link-role").select_option("operator")
    visit.press("Create invitation link")
    link = visit.page.get_by_label("Link of the invitation").text_content()
    assert link
    return link.strip()


def _join(guest: Page, link: str) -> None:
    guest.goto(link)
    guest.get_by_label("User name").fill("ann")
    for label in ("Password", "Repeat password"):
        guest.get_by_label(label, exact=True).fill(PASSWORD)
    guest.get_by_role("button", name="Create my login").click()
    expect(guest.locator(".messages")).to_contain_text("You are in team web now.")


def _sees_exactly_the_team(guest: Page) -> None:
    guest.get_by_role("link", name="Teams", exact=True).first.click()
    expect(guest.locator("[data-team]")).to_have_count(1)
    expect(guest.locator("[data-team=web]")).to_contain_text("operator")
    guest.get_by_role("link", name="Datasources", exact=True).first.click()
    expect(guest.get_by_text("flights", exact=True)).to_have_count(0)
    guest.get_by_role("link", name="Teams", exact=True).first.click()
    guest.get_by_role("link", name="web", exact=True).click()
    expect(guest.get_by_role("heading", name="Members")).to_be_visible()
    expect(guest.get_by_role("link", name="Service accounts")).to_have_count(0)  # no admin


def _submitted_by(username: str) -> str:
    """A running supervisor that this member has submitted; nothing of it is looked at but that it stays."""
    team = Team.objects.get(name="web")
    author = Membership.objects.get(team=team, user__username=username).user
    datasource = Datasource.objects.create(name="visits", team=team, created_by=author)
    made = Supervisor.objects.create(id="visits", datasource=datasource, detailed_state="RUNNING")
    spec = parse_supervisor_spec(spec_for("visits")).canonical()
    SpecVersion.objects.create(supervisor=made, version=1, spec=spec, created_by=author)
    return made.pk


def _raise_the_role(visit: Visit) -> None:
    visit.open("/teams/web/")
    visit.page.get_by_label("Role of ann").select_option("admin")
    visit.press("Change the role of ann")
    visit.told("ann is admin now.")


def _make_and_revoke_a_token(guest: Page, url: str) -> None:
    """By the new admin; the token reads and does not write, and then does nothing."""
    guest.goto(f"{url}/teams/web/service-accounts/")
    guest.get_by_label("Name", exact=True).fill("robot")
    guest.get_by_role("button", name="Create account").click()
    guest.get_by_label("Token name").fill("nightly")
    guest.get_by_role("button", name="Create token").click()
    secret = guest.get_by_label("Secret of the token").text_content()
    assert secret
    robot = Client(headers={"Authorization": f"Bearer {secret.strip()}"})
    assert [d["name"] for d in robot.get("/api/v1/datasources/").json()["results"]] == ["visits"]
    refused = robot.post("/api/v1/supervisors/visits/suspend/")
    assert (refused.status_code, "scope read" in refused.json()["detail"]) == (403, True)
    guest.get_by_role("button", name="Revoke the token nightly").click()
    guest.get_by_role("button", name="Revoke token").click()
    expect(guest.locator(".messages")).to_contain_text("The token is revoked.")
    assert robot.get("/api/v1/datasources/").status_code == 401


def _remove(visit: Visit) -> None:
    visit.become("superuser")
    Membership.objects.create(team=Team.objects.get(name="web"), user=visit.site.cast.users["owner"], role=Role.ADMIN)
    visit.open("/teams/web/members/ann/remove/")
    visit.press("Remove")
    visit.told("ann is no longer in the team.")
