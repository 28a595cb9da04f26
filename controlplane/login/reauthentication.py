"""Who is logged in shows once more who they are."""

from __future__ import annotations

from controlplane.login.codes import CodeResult, try_code
from controlplane.teams.models import User


def failed_reauthentication(user: User, secret: str) -> str:
    """What is wrong with the user's password, or where they have none with the code; empty: nothing."""
    if user.has_usable_password():
        return "" if user.check_password(secret) else "The password is wrong."
    verdict, _ = try_code(user, secret)
    return "" if verdict is CodeResult.RIGHT else verdict.value
