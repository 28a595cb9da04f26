"""Walks through the pages of the site's people, as its administrator."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from playwright.sync_api import expect

from controlplane.teams.models import PasswordLink, User
from tests.browser.site import OWNERS_SECRET, Visit, password_link
from tests.support.django_cast import PASSWORD
from tests.support.second_factors import enrolled


def _open(visit: Visit, address: str) -> None:
    visit.become("superuser")
    visit.open(address)


def _is_active(name: str) -> bool:
    return User.objects.get(username=name).is_active


def filter_people(visit: Visit) -> None:
    _open(visit, "/people/")
    visit.page.get_by_label("Name or address").fill("outsid")
    visit.press("Filter")
    expect(visit.page.locator("[data-person]")).to_have_count(1)


def make_a_user(visit: Visit) -> None:
    _open(visit, "/people/")
    visit.page.get_by_role("link", name="New user").click()
    visit.page.get_by_label("User name").fill("bert")
    visit.press("Create user")
    visit.told("The user bert was created.")
    assert not User.objects.get(username="bert").has_usable_password()


def make_a_password_link(visit: Visit) -> None:
    _open(visit, "/people/operator/")
    visit.press("Create password link")
    expect(visit.page.get_by_label("Link to choose a password")).to_contain_text("/password/")
    assert PasswordLink.objects.filter(user__username="operator").exists()


def deactivate(visit: Visit) -> None:
    _open(visit, "/people/operator/")
    visit.answer("Deactivate", "Deactivate")
    visit.told("operator is deactivated.")
    assert not _is_active("operator")


def activate(visit: Visit) -> None:
    User.objects.filter(username="operator").update(is_active=False)
    _open(visit, "/people/operator/")
    visit.answer("Activate", "Activate")
    visit.told("operator is active again.")
    assert _is_active("operator")


def remove_second_factors(visit: Visit) -> None:
    """On the person's page, and on the page that asks."""
    guest = User.objects.get(username="guest")
    for asked in (False, True):
        if asked:
            enrolled(guest)
            visit.open("/people/guest/second-factors/")
            visit.page.get_by_role("button", name="Cancel").click()
            visit.open("/people/guest/second-factors/")
            visit.press("Remove second factors")
        else:
            _open(visit, "/people/guest/")
            visit.answer("Remove second factors", "Remove second factors")
        visit.told("The second factors of guest were removed")
        assert not Authenticator.objects.filter(user=guest).exists()
    enrolled(guest)


def switch_on_a_page(visit: Visit) -> None:
    _open(visit, "/people/guest/switch/")
    visit.page.get_by_role("button", name="Cancel").click()
    expect(visit.page).to_have_url(f"{visit.site.url}/people/guest/")
    for label, active in (("Activate", True), ("Deactivate", False)):
        visit.open("/people/guest/switch/")
        visit.press(label)
        visit.told("guest is")
        assert _is_active("guest") is active


def choose_a_password(visit: Visit) -> None:
    cast = visit.site.cast
    password_link(cast.users["viewer"], cast.users["superuser"], OWNERS_SECRET)
    visit.become("")
    visit.open(f"/password/{OWNERS_SECRET}/")
    for label in ("Password", "Repeat password"):
        visit.page.get_by_label(label, exact=True).fill(f"{PASSWORD} two")
    visit.press("Set the password")
    visit.told("The password is set.")
    assert User.objects.get(username="viewer").check_password(f"{PASSWORD} two")
