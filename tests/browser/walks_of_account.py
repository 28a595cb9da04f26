"""Each form and button of one's own account, clicked through to what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from allauth.mfa.models import Authenticator
from django.test import Client
from playwright.sync_api import expect

from controlplane.login.models import Session
from controlplane.teams.models import ApiToken, User
from tests.browser.site import OWNERS_ADDRESS, Visit, address_link
from tests.support.django_cast import PASSWORD
from tests.support.second_factors import code_of_key

OTHER = "another correct horse battery"


def _owner() -> User:
    return User.objects.get(username="owner")


def say_again_who_it_is(visit: Visit) -> None:
    visit.open("/login/again/?next=/tasks/")
    visit.page.get_by_label("Password").fill(PASSWORD)
    visit.press("Continue")
    visit.page.wait_for_url(f"{visit.site.url}/tasks/")


def change_the_name(visit: Visit) -> None:
    visit.open("/account/")
    visit.page.get_by_label("First name").fill("Ann")
    visit.press("Save the name")
    visit.told("Your name is changed.")
    assert _owner().first_name == "Ann"


def change_the_address(visit: Visit) -> None:
    """Without a mail server at once; with one its link asks."""
    visit.open("/account/")
    visit.page.get_by_role("textbox", name="E-mail address").fill("ann@example.org")
    visit.press("Save the address")
    visit.told("Your e-mail address is changed.")
    owner = _owner()
    assert owner.email == "ann@example.org"
    visit.open(address_link(owner, OWNERS_ADDRESS))
    visit.press("Confirm address")
    visit.told(f"Your e-mail address is {OWNERS_ADDRESS}.")
    assert _owner().email == OWNERS_ADDRESS


def change_the_password(visit: Visit) -> None:
    visit.open("/account/")
    visit.page.get_by_label("Old password").fill(PASSWORD)
    visit.page.get_by_label("New password", exact=True).fill(OTHER)
    visit.page.get_by_label("New password confirmation").fill(OTHER)
    visit.press("Change the password")
    visit.told("Your password is changed.")
    owner = visit.site.cast.users["owner"]
    owner.refresh_from_db()
    assert owner.check_password(OTHER)
    owner.set_password(PASSWORD)
    owner.save()
    visit.become("owner")


def make_and_revoke_a_token(visit: Visit) -> None:
    visit.open("/account/")
    tokens = visit.page.get_by_role("region", name="Tokens for REST")
    tokens.get_by_label("Token name").fill("ci")
    tokens.get_by_label("Scope").select_option("read")
    tokens.get_by_label("Datasources").select_option("flights")
    visit.press("Create token")
    expect(tokens.get_by_label("The new token")).to_be_visible()
    token = ApiToken.objects.get(user__username="owner", name="ci", scope="read", datasources=["flights"])
    visit.button(f"Revoke ci {token.token_key}").click()
    visit.press("Revoke token")
    visit.told("The token is revoked.")
    assert not ApiToken.objects.filter(pk=token.pk).exists()


@contextmanager
def authenticator(visit: Visit) -> Iterator[None]:
    """A device with a passkey's store, whose owner always agrees."""
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("WebAuthn.enable")
    wanted = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    session.send("WebAuthn.addVirtualAuthenticator", {"options": wanted})
    yield
    session.send("WebAuthn.disable")
    session.detach()


def _passkey(visit: Visit) -> None:
    visit.become("owner")
    visit.open("/account/passkey/")
    visit.page.get_by_label("Name").fill("My laptop")
    visit.press("Add the passkey")
    expect(visit.page.locator("#recovery-codes")).to_be_visible()


def _without(visit: Visit) -> None:
    Authenticator.objects.filter(user__username="owner").delete()
    visit.become("owner")


def add_a_passkey(visit: Visit) -> None:
    """It is asked for after the password, too."""
    with authenticator(visit):
        _passkey(visit)
        assert Authenticator.objects.get(type="webauthn").data["name"] == "My laptop"
        visit.become("")
        visit.open("/login/?next=/tasks/")
        visit.page.get_by_label("Username").fill("owner")
        visit.page.get_by_label("Password").fill(PASSWORD)
        visit.press("Log in")
        visit.press("Use a passkey")
        visit.page.wait_for_url(f"{visit.site.url}/tasks/")
    _without(visit)


def log_in_with_a_passkey(visit: Visit) -> None:
    """Nothing else is asked."""
    with authenticator(visit):
        _passkey(visit)
        visit.become("")
        visit.open("/login/?next=/tasks/")
        visit.press("Log in with a passkey")
        visit.page.wait_for_url(f"{visit.site.url}/tasks/")
        assert Authenticator.objects.get(type="webauthn").last_used_at is not None
    _without(visit)


def end_sessions(visit: Visit) -> None:
    """One, then all others."""
    owner = _owner()
    for _ in range(2):
        Client().force_login(owner)
    visit.open("/account/")
    before = Session.objects.filter(user=owner).count()
    visit.button("End the session").first.click()
    visit.told("The session has ended.")
    assert Session.objects.filter(user=owner).count() == before - 1
    visit.press("End all other sessions")
    visit.told("Only this session is left.")
    assert Session.objects.filter(user=owner).count() == 1
    visit.open("/account/")


def set_up_an_app(visit: Visit) -> None:
    visit.open("/account/app/")
    key = visit.page.locator("#app-key").text_content()
    assert key is not None
    visit.page.get_by_label("Authenticator code").fill(code_of_key(key))
    visit.press("Set up")
    expect(visit.page.locator("#recovery-codes")).to_be_visible()
    before = visit.page.locator("#recovery-codes").text_content()
    visit.press("Create new codes")
    visit.told("These are your new recovery codes.")
    assert visit.page.locator("#recovery-codes").text_content() != before
    visit.open("/account/")
    visit.button("Remove Authenticator app").click()
    visit.told("The second factor is removed.")
    assert not Authenticator.objects.filter(user__username="owner").exists()
