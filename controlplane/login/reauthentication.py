"""Who is logged in shows once more who they are."""

from __future__ import annotations

import time

from django.http import HttpRequest

from controlplane.login.codes import CodeResult, try_code
from controlplane.teams.models import User

FRESH_S = 600
CONFIRMED_AT_KEY = "confirmed_at"  # in the session: when its user logged in, or last gave a password or a code again


def note_confirmed(request: HttpRequest) -> None:
    """The session's user has just shown who they are."""
    request.session[CONFIRMED_AT_KEY] = time.time()


def is_fresh(request: HttpRequest) -> bool:
    """Whether the session's user has lately shown who they are."""
    return bool(time.time() - request.session.get(CONFIRMED_AT_KEY, 0) < FRESH_S)


def failed_reauthentication(user: User, secret: str) -> str:
    """What is wrong with the user's password, or where they have none with the code; empty: nothing."""
    if user.has_usable_password():
        return "" if user.check_password(secret) else "The password is wrong."
    verdict, _ = try_code(user, secret)
    return "" if verdict is CodeResult.RIGHT else verdict.value
