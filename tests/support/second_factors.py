"""People with a second factor, and the codes of theirs."""

from __future__ import annotations

import time

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from allauth.mfa.utils import decrypt
from django.test import Client

from controlplane.teams.models import User
from tests.support.django_cast import PASSWORD

PERIOD_S = 30


def enrolled(user: User) -> None:
    """An authenticator app and recovery codes."""
    TOTP.activate(user, generate_totp_secret())
    RecoveryCodes.activate(user)


def code_of(user: User, ahead: int = 0) -> str:
    """What the user's app shows now, or so many half minutes later."""
    secret = decrypt(Authenticator.objects.get(user=user, type="totp").data["secret"])
    return format_hotp_value(hotp_value(secret, int(time.time()) // PERIOD_S + ahead))


def recovery_codes(user: User) -> list[str]:
    """Those that are left."""
    codes: list[str] = Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes()
    return codes


def log_in(username: str, password: str = PASSWORD) -> Client:
    """A browser whose password was taken; whoever has a second factor is asked for it next."""
    client = Client()
    assert client.post("/login/", {"username": username, "password": password}).status_code == 302
    return client
