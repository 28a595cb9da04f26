"""A new password for who has forgotten theirs, by a link in a mail."""

from __future__ import annotations

import logging
import threading

from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.http import HttpRequest
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from controlplane.common import mail
from controlplane.login.sso_login import users_of_address
from controlplane.teams.models import User

log = logging.getLogger(__name__)


class ResetTokens(PasswordResetTokenGenerator):
    """Good for an hour, once, and for who may log in: whatever ends somebody's logins ends these too."""

    key_salt = "controlplane.login.password_resets"

    def _make_hash_value(self, user: User, timestamp: int) -> str:
        return f"{super()._make_hash_value(user, timestamp)}{user.logins_ended}"

    def check_token(self, user: User | None, token: str | None) -> bool:
        return user is not None and user.is_active and user.service_of_id is None and super().check_token(user, token)


RESET_TOKENS = ResetTokens()


def send_links(*, email: str, request: HttpRequest) -> None:
    """Mail a link to each person with this address who has a password. Nothing tells whether there is one.

    The server is spoken to beside the request, so that its time tells nothing either.
    """
    people = [user for user in users_of_address(email) if user.has_usable_password()]
    letters = [(user.email, _mail_text(user, request)) for user in people]
    if letters:
        threading.Thread(target=_send, args=(letters,), daemon=True).start()


def _send(letters: list[tuple[str, str]]) -> None:
    for email, body in letters:
        try:
            mail.send(to=[email], subject="Headgate: a new password", body=body)
        except mail.MailFailed as error:
            log.warning("a link for a new password could not be sent: %s", error.detail)


def _mail_text(user: User, request: HttpRequest) -> str:
    key = urlsafe_base64_encode(force_bytes(user.pk))
    address = mail.link(reverse("frontend:login-reset-set", args=[key, RESET_TOKENS.make_token(user)]), request)
    return (
        f"Someone has asked for a new password for the login {user.username}.\n\n"
        f"Set it here within one hour:\n{address}\n\n"
        "A new password ends all sessions and tokens. Not you? Do nothing: your password stays the same.\n"
    )
