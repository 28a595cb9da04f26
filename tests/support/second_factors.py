"""People with a second factor, and the codes of theirs."""

from __future__ import annotations

import base64
import secrets
import time

from allauth.mfa.models import Authenticator
from allauth.mfa.utils import decrypt
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from django.test import Client

from controlplane.teams.models import User
from tests.support.django_cast import PASSWORD

PERIOD_S = 30


def enrolled(user: User) -> None:
    """An authenticator app and recovery codes."""
    Authenticator(type="totp").wrap().activate(user, base64.b32encode(secrets.token_bytes(20)).decode())
    Authenticator(type="recovery_codes").wrap().activate(user)


def code_of(user: User, ahead: int = 0) -> str:
    """What the user's app shows now, or so many half minutes later."""
    return code_of_key(decrypt(Authenticator.objects.get(user=user, type="totp").data["secret"]), ahead)


def code_of_key(key: str, ahead: int = 0) -> str:
    """What an app with this key shows now, or so many half minutes later."""
    return HOTP(base64.b32decode(key), 6, SHA1()).generate(int(time.time()) // PERIOD_S + ahead).decode()


def recovery_codes(user: User) -> list[str]:
    """Those that are left."""
    codes: list[str] = Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes()
    return codes


def log_in(username: str, password: str = PASSWORD) -> Client:
    """A browser whose password was taken; whoever has a second factor is asked for it next."""
    client = Client()
    assert client.post("/login/", {"username": username, "password": password}).status_code == 302
    return client
