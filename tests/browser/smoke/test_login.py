"""Logging in as people do: by a provider, with a code, by a passkey, after a password that was forgotten."""

from __future__ import annotations

import re
import time
from typing import Any

from allauth.mfa.models import Authenticator
from playwright.sync_api import Browser, expect

from controlplane.teams.models import Membership, User
from tests.browser.site import Site, Visit
from tests.browser.walks_of_account import add_a_passkey, log_in_with_a_passkey
from tests.support.django_cast import PASSWORD
from tests.support.mailbox import mail_server
from tests.support.oidc import provider_process
from tests.support.second_factors import code_of, enrolled

OTHER = "another correct horse battery"
DEADLINE_S = 30


def test_a_provider_with_groups_ends_in_the_right_team_and_role(site: Site, browser: Browser, settings: Any) -> None:
    with provider_process() as house:
        settings.OIDC = house.settings(teams={"eng": (("alpha", "operator"),)}, takes_new_people=True)
        house.knows("ann", preferred_username="ann", groups=["eng"])
        context = browser.new_context()
        try:
            page = context.new_page()
            page.goto(f"{site.url}/login/?next=/datasources/")
            page.get_by_role("link", name="Log in with Example").click()
            page.get_by_placeholder("sub").fill("ann")
            page.get_by_role("button", name="Authorize").click()
            page.wait_for_url(f"{site.url}/datasources/")
            expect(page.get_by_role("link", name="flights", exact=True).first).to_be_visible()
        finally:
            context.close()
    assert list(Membership.objects.filter(user__username="ann").values_list("team__name", "role")) == [
        ("alpha", "operator")
    ]


def test_a_code_after_the_password(visit: Visit) -> None:
    viewer = User.objects.get(username="viewer")
    enrolled(viewer)
    visit.become("")
    visit.open("/login/?next=/tasks/")
    visit.page.get_by_label("Username").fill("viewer")
    visit.page.get_by_label("Password").fill(PASSWORD)
    visit.press("Log in")
    visit.page.get_by_label("Code").fill("000000")
    visit.press("Continue")
    expect(visit.page.get_by_role("alert").filter(has_text="The code is wrong")).to_be_visible()
    visit.page.get_by_label("Code").fill(code_of(viewer))
    visit.press("Continue")
    visit.page.wait_for_url(f"{visit.site.url}/tasks/")
    assert Authenticator.objects.get(type="totp", user=viewer).last_used_at is not None


def test_passkeys(visit: Visit) -> None:
    add_a_passkey(visit)
    log_in_with_a_passkey(visit)


def test_a_password_that_was_forgotten(visit: Visit, settings: Any) -> None:
    User.objects.filter(username="viewer").update(email="vi@example.org")
    visit.become("")
    with mail_server(settings) as mailbox:
        visit.open("/login/")
        visit.page.get_by_role("link", name="Forgotten your password?").click()
        visit.page.get_by_label("Your e-mail address").fill("vi@example.org")
        visit.press("Send a link")
        expect(visit.page.get_by_role("status").filter(has_text="Headgate has mailed a link")).to_be_visible()
        end = time.monotonic() + DEADLINE_S
        while not mailbox.messages:
            assert time.monotonic() < end, "no mail has come"
            time.sleep(0.05)
    link = re.search(r"http://\S+", mailbox.newest())
    assert link is not None
    visit.page.goto(link[0])
    visit.page.get_by_label("New password", exact=True).fill(OTHER)
    visit.page.get_by_label("New password confirmation").fill(OTHER)
    visit.press("Set the password")
    visit.page.get_by_label("Username").fill("viewer")
    visit.page.get_by_label("Password").fill(OTHER)
    visit.press("Log in")
    visit.page.wait_for_url(f"{visit.site.url}/")
