"""Mail, with a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from controlplane.common import mail
from tests.support.mailbox import Mailbox, mail_server


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with mail_server(settings) as mailbox:
        yield mailbox


def test_a_mail_arrives(mailbox: Mailbox) -> None:
    mail.send(to=["ann@example.org"], subject="A\nB: ü", body="Grüße\n.\nEnd")
    [message] = mailbox.messages
    assert (message["To"], message["Subject"]) == ("ann@example.org", "A B: ü")
    assert message["Auto-Submitted"] == "auto-generated"
    assert mailbox.newest().splitlines() == ["Grüße", ".", "End"]


def test_a_server_that_refuses_says_so(mailbox: Mailbox) -> None:
    mailbox.refuses = "554 5.7.1 no mail for you"
    with pytest.raises(mail.MailFailed, match=r"554 5\.7\.1 no mail for you"):
        mail.send(to=["ann@example.org"], subject="x", body="x")


@pytest.mark.parametrize("address", ["", "ann", "ann@example.org\nBcc: eve@example.org", "a@b@c"])
def test_what_is_no_address_gets_nothing(mailbox: Mailbox, address: str) -> None:
    with pytest.raises(ValidationError):
        mail.send(to=[address], subject="x", body="x")
    assert mailbox.messages == []


def test_a_server_that_is_away_or_not_set_says_so(settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    with mail_server(settings):
        pass
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    with pytest.raises(mail.MailFailed, match=r"127\.0\.0\.1 did not accept the mail: Connection refused"):
        mail.send(to=["ann@example.org"], subject="x", body="x")
    settings.EMAIL_HOST = ""
    assert not mail.is_configured()
    with pytest.raises(mail.MailFailed, match="HEADGATE_EMAIL_URL"):
        mail.send(to=["ann@example.org"], subject="x", body="x")
