"""A new password by mail, through a real mail server, and what an attacker gets of it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.login import password_resets
from controlplane.teams.models import User
from tests.support.django_cast import Cast, browsing_as, speaking_as
from tests.support.mailbox import Mailbox, mail_server
from tests.support.second_factors import enrolled, log_in

ADDRESS = "vi@example.org"
OTHER = "another correct horse battery"
FORGOTTEN = "/login/forgotten/"
DEADLINE_S = 20
pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture
def mailbox(cast: Cast, settings: Any) -> Iterator[Mailbox]:
    User.objects.filter(username="viewer").update(email=ADDRESS)
    with mail_server(settings) as mailbox:
        yield mailbox


def ask(email: str = ADDRESS) -> str:
    answer = Client().post(FORGOTTEN, {"email": email})
    assert answer.status_code == 200
    return re.sub(r'"[^"]{40,}"', "", answer.content.decode())


def link_of(mailbox: Mailbox, number: int = 1) -> str:
    """The path of the link in the mail of this number."""
    end = time.monotonic() + DEADLINE_S
    while len(mailbox.messages) < number:
        assert time.monotonic() < end, "no mail has come"
        time.sleep(0.02)
    found = re.search(r"http://testserver(/\S+)", str(mailbox.messages[number - 1].get_content()))
    assert found is not None
    return found[1]


def set_password(link: str, password: str = OTHER) -> bool:
    """Follow the link in a new browser; whether it took the password."""
    browser = Client()
    page = browser.get(link)
    if page.status_code != 302:
        assert "This link is not valid" in page.content.decode()
        return False
    form = page.headers["Location"]
    assert browser.get(form).status_code == 200
    return browser.post(form, {"new_password1": password, "new_password2": password}).status_code == 302


def test_a_link_sets_a_password_once_and_ends_what_was_open(mailbox: Mailbox, cast: Cast) -> None:
    session, token = browsing_as(cast, "viewer"), speaking_as(cast, "viewer")
    ask()
    link = link_of(mailbox)
    assert mailbox.messages[0]["To"] == ADDRESS
    assert not set_password(link, "short")
    assert session.get("/account/").status_code == 200
    assert set_password(link)
    assert session.get("/account/").status_code == 302
    assert token.get("/api/v1/teams/").status_code == 401
    assert not set_password(link, "a third correct horse battery")
    log_in("viewer", OTHER)


def test_the_answer_tells_nothing(mailbox: Mailbox, cast: Cast) -> None:
    known, unknown = ask(), ask("nobody@example.org")
    assert known == unknown
    link_of(mailbox)
    assert len(mailbox.messages) == 1


def test_a_link_ends_with_its_hour(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    ask()
    link = link_of(mailbox)
    later = timezone.now().replace(tzinfo=None) + timedelta(minutes=61)
    monkeypatch.setattr(password_resets.RESET_TOKENS, "_now", lambda: later)
    assert not set_password(link)


def test_who_is_turned_off_gets_none_and_their_link_is_void(mailbox: Mailbox) -> None:
    ask()
    link = link_of(mailbox)
    User.objects.filter(username="viewer").update(is_active=False)
    assert not set_password(link)
    User.objects.filter(username="viewer").update(is_active=True)
    assert not set_password(link), "turning off has ended it"
    User.objects.filter(username="viewer").update(is_active=False)
    ask()
    User.objects.filter(username="operator").update(email="op@example.org")
    ask("op@example.org")
    link_of(mailbox, 2)
    assert [m["To"] for m in mailbox.messages] == [ADDRESS, "op@example.org"]


def test_a_link_is_for_nobody_else(mailbox: Mailbox, cast: Cast) -> None:
    ask()
    link = link_of(mailbox)
    parts = link.split("/")
    parts[3] = password_resets.urlsafe_base64_encode(str(cast.users["superuser"].pk).encode())
    assert not set_password("/".join(parts))


def test_a_link_is_no_way_round_the_second_factor(mailbox: Mailbox, cast: Cast) -> None:
    enrolled(cast.users["viewer"])
    ask()
    assert set_password(link_of(mailbox))
    assert log_in("viewer", OTHER).get("/account/").status_code == 302


def test_few_mails_are_sent_to_one_address(mailbox: Mailbox) -> None:
    User.objects.filter(username="operator").update(email="op@example.org")
    for _ in range(5):
        ask()
    ask("op@example.org")
    link_of(mailbox, 4)
    end = time.monotonic() + DEADLINE_S
    while sum(m["To"] == "op@example.org" for m in mailbox.messages) < 1:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert sorted(m["To"] for m in mailbox.messages) == ["op@example.org", *[ADDRESS] * 3]


def test_letters_that_look_the_same_get_no_mail(mailbox: Mailbox) -> None:
    User.objects.filter(username="operator").update(email="mike@example.org")
    ask("m\u0131ke@example.org")
    ask()
    link_of(mailbox)
    assert [m["To"] for m in mailbox.messages] == [ADDRESS]


def test_the_links_host_is_the_sites_own(mailbox: Mailbox, settings: Any) -> None:
    settings.PUBLIC_URL = "https://headgate.example.org"
    ask()
    end = time.monotonic() + DEADLINE_S
    while not mailbox.messages:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert "https://headgate.example.org/login/forgotten/" in mailbox.newest()


def test_a_site_without_mail_says_who_helps(cast: Cast, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    page = Client().get(FORGOTTEN).content.decode()
    assert "Ask a site admin" in page
    assert "<form" not in page
    assert Client().post(FORGOTTEN, {"email": ADDRESS}).status_code == 200
