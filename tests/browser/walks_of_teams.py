"""Walks through the pages of teams and their people."""

from __future__ import annotations

from django.utils import timezone
from playwright.sync_api import expect

from controlplane.connections.models import Connection
from controlplane.datasources.models import Datasource
from controlplane.quotas.models import Quota
from controlplane.teams.models import ApiToken, Invitation, LinkInvitation, Membership, Team, User
from tests.browser.site import OWNERS_ADDRESS, OWNERS_SECRET, Visit
from tests.browser.site import invite_by_link as make_link
from tests.support.django_cast import PASSWORD


def _open_team(name: str) -> bool:
    return Team.objects.filter(name=name, deleted_at__isnull=True).exists()


def make_a_team(visit: Visit) -> None:
    visit.become("superuser")
    visit.open("/teams/")
    visit.page.get_by_role("link", name="New team").click()
    visit.page.get_by_label("Name", exact=True).fill("gamma")
    visit.press("Create team")
    visit.told("Team gamma was created, and you are its admin.")
    assert _open_team("gamma")


def delete_a_team(visit: Visit) -> None:
    visit.become("superuser")
    visit.open("/teams/alpha/about/")
    owned = visit.page.locator("[data-owned]")
    expect(owned.get_by_role("link", name="flights", exact=True)).to_be_visible()
    expect(owned.get_by_role("link", name="orders-schemas", exact=True)).to_be_visible()
    expect(visit.button("Delete team…")).to_have_count(0)
    Team.objects.create(name="delta")
    visit.open("/teams/delta/")
    visit.answer("Delete team", "Delete team")
    visit.told("Team delta is deleted.")
    assert not _open_team("delta")


def transfer_a_datasource(visit: Visit) -> None:
    visit.become("superuser")
    visit.open("/datasources/flights/")
    visit.page.get_by_role("link", name="Transfer").click()
    visit.page.get_by_label("To team").select_option("beta")
    visit.press("Transfer it")
    visit.told("Team beta now owns the datasource flights.")
    moved = Datasource.objects.filter(name="flights")
    assert [d.team.name for d in moved] == ["beta"]
    moved.update(team=Team.objects.get(name="alpha"))


def transfer_a_connection(visit: Visit) -> None:
    visit.become("superuser")
    visit.open("/connections/alpha/orders-schemas/transfer/")
    visit.page.get_by_label("To team").select_option("beta")
    visit.press("Transfer connection")
    visit.told("Team beta now owns the connection orders-schemas.")
    moved = Connection.objects.filter(name="orders-schemas")
    assert [c.team.name for c in moved] == ["beta"]
    moved.update(team=Team.objects.get(name="alpha"))


def set_limits(visit: Visit) -> None:
    visit.become("superuser")
    visit.open("/teams/alpha/limits/")
    visit.page.get_by_label("Indexers").fill("40")
    visit.press("Set the limits")
    visit.told("The limits of team alpha are set.")
    assert Quota.objects.get(team__name="alpha").indexers == 40
    visit.page.get_by_label("Indexers").fill("")
    visit.press("Set the limits")
    visit.told("The limits of team alpha are set.")
    assert Quota.objects.get(team__name="alpha").indexers is None


def rename_a_team(visit: Visit) -> None:
    visit.become("superuser")
    team = Team.objects.create(name="to-rename")
    visit.open("/teams/to-rename/about/")
    visit.page.get_by_label("Description").fill("Streams of the shop")
    visit.page.get_by_role("textbox", name="Name").fill("shop")
    visit.press("Save")
    visit.told("The changes are saved.")
    expect(visit.page.get_by_role("heading", name="shop")).to_be_visible()
    team.refresh_from_db()
    assert (team.name, team.description) == ("shop", "Streams of the shop")
    team.name = "~gone"
    team.deleted_at = timezone.now()
    team.save()


def delete_on_a_page(visit: Visit) -> None:
    visit.become("superuser")
    Team.objects.create(name="delta")
    visit.open("/teams/delta/delete/confirm/")
    visit.page.get_by_role("button", name="Cancel").click()
    expect(visit.page).to_have_url(f"{visit.site.url}/teams/delta/")
    visit.open("/teams/delta/delete/confirm/")
    visit.press("Delete team")
    visit.told("Team delta is deleted.")
    assert not _open_team("delta")


def _role_of(visit: Visit, name: str) -> str | None:
    found = Membership.objects.filter(team=visit.site.cast.alpha, user__username=name).first()
    return None if found is None else found.role


def invite_by_link(visit: Visit) -> None:
    visit.open("/teams/alpha/")
    visit.page.get_by_label("E-mail address").fill("ann@example.org")
    visit.press("Create invitation link")
    expect(visit.page.get_by_label("Link of the invitation")).to_contain_text("/join/")
    visit.press("Copy the link")
    assert LinkInvitation.objects.filter(team=visit.site.cast.alpha, email="ann@example.org").exists()


def invite_by_name(visit: Visit) -> None:
    visit.open("/teams/alpha/")
    visit.page.get_by_text("Invite an existing user by name").click()
    visit.page.get_by_label("User name").fill("ann")
    visit.press("Invite")
    visit.told("If there is a user ann, they can accept")
    assert Invitation.objects.filter(team=visit.site.cast.alpha, username="ann").exists()


def withdraw(visit: Visit) -> None:
    make_link(visit.site.cast.alpha, "guest@example.org", "the-guests-secret")
    visit.open("/teams/alpha/")
    visit.press("Withdraw the link of guest@example.org")
    visit.told("Its link no longer works")
    visit.press("Withdraw the invitation of guest")
    visit.told("The invitation of guest is withdrawn.")
    assert not LinkInvitation.objects.filter(email="guest@example.org").exists()
    assert not Invitation.objects.filter(username="guest").exists()


def change_a_role(visit: Visit) -> None:
    visit.open("/teams/alpha/")
    visit.page.get_by_label("Role of viewer").select_option("operator")
    visit.press("Change the role of viewer")
    visit.told("viewer is operator now.")
    assert _role_of(visit, "viewer") == "operator"
    visit.page.get_by_label("Role of operator").select_option("viewer")
    visit.press("Change the role of operator")
    visit.told("operator is viewer now.")
    assert _role_of(visit, "operator") == "viewer"
    visit.page.get_by_label("Role of owner").select_option("viewer")
    visit.press("Change the role of owner")
    visit.page.get_by_role("button", name="Cancel").click()
    visit.page.get_by_label("Role of owner").select_option("viewer")
    visit.press("Change the role of owner")
    visit.press("Change my role")
    visit.told("owner is the last admin")
    assert _role_of(visit, "owner") == "admin"


def remove(visit: Visit) -> None:
    visit.open("/teams/alpha/")
    visit.page.get_by_role("link", name="Remove… viewer").click()
    visit.page.get_by_role("button", name="Cancel").click()
    visit.page.get_by_role("link", name="Remove… viewer").click()
    visit.press("Remove")
    visit.told("viewer is no longer in the team.")
    assert _role_of(visit, "viewer") is None


def make_a_login(visit: Visit) -> None:
    make_link(visit.site.cast.alpha, "ann@example.org", "the-secret-of-ann")
    visit.become("")
    visit.open("/join/the-secret-of-ann/")
    visit.page.get_by_label("User name").fill("ann")
    for label in ("Password", "Repeat password"):
        visit.page.get_by_label(label, exact=True).fill(PASSWORD)
    visit.press("Create my login")
    visit.told("You are in team alpha now.")
    assert _role_of(visit, "ann") == "viewer"
    assert User.objects.get(username="ann").email == "ann@example.org"


def accept_a_link(visit: Visit) -> None:
    beta = visit.site.cast.beta
    Membership.objects.filter(team=beta, user__username="owner").delete()
    make_link(beta, OWNERS_ADDRESS, OWNERS_SECRET)
    visit.open(f"/join/{OWNERS_SECRET}/")
    visit.press("Accept as owner")
    visit.told("You are in team beta now.")
    assert Membership.objects.filter(team=beta, user__username="owner").exists()


def revoke_a_members_token(visit: Visit) -> None:
    visit.site.cast.alpha.memberships.get_or_create(user=visit.site.cast.users["viewer"])
    visit.open("/teams/alpha/tokens/")
    visit.press("Revoke the token laptop of viewer")
    visit.press("Revoke token")
    visit.told("A token of viewer is revoked.")
    assert not ApiToken.objects.filter(name="laptop").exists()


def make_an_account(visit: Visit) -> None:
    visit.open("/teams/alpha/service-accounts/")
    visit.page.get_by_label("Name", exact=True).fill("robot")
    visit.press("Create account")
    expect(visit.page.get_by_role("heading", name="Service account robot")).to_be_visible()
    assert User.objects.get(username="robot@alpha").service_of == visit.site.cast.alpha


def make_and_revoke_a_token(visit: Visit) -> None:
    visit.open("/teams/alpha/service-accounts/loader/")
    visit.page.get_by_label("Token name").fill("weekly")
    form = visit.page.get_by_role("region", name="New token")
    form.get_by_label("Datasources").select_option("flights")
    visit.press("Create token")
    expect(visit.page.get_by_label("Secret of the token")).to_be_visible()
    made = ApiToken.objects.get(name="weekly")
    assert (made.user.username, made.scope, made.datasources) == ("loader@alpha", "read", ["flights"])
    visit.press("Revoke the token nightly")
    visit.press("Revoke token")
    visit.told("The token is revoked.")
    assert not ApiToken.objects.filter(name="nightly").exists()


def delete_an_account(visit: Visit) -> None:
    visit.open("/teams/alpha/service-accounts/loader/")
    visit.page.get_by_role("link", name="Delete…").click()
    visit.page.get_by_role("button", name="Cancel").click()
    visit.page.get_by_role("link", name="Delete…").click()
    visit.press("Delete")
    visit.told("The service account loader is deleted.")
    assert not User.objects.filter(username="loader@alpha").exists()
