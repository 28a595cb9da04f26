"""What the site's audit trail says of logins: who came in, and with whose name somebody did not."""

from __future__ import annotations

from typing import Any

from controlplane.common.rate_limit import is_first
from controlplane.common.text import storable
from controlplane.teams import audit
from controlplane.teams.models import User

EVERY_S = 60


def record_login(user: User, where: str) -> None:
    """Somebody has logged in, with all that it takes. ``where``: on the pages, or over REST for a token."""
    audit.record(user=user, team=None, target="login", target_id=user.get_username(), action="log_in", where=where)


def record_failed_login(credentials: dict[str, Any], **_: Any) -> None:
    """Django's signal: no user has this name and this password.

    A name that nobody has is not kept: it may be a password, typed into the wrong field.
    """
    name = credentials.get("username")
    typed = name if isinstance(name, str) and storable(name) else ""
    _record_failure(typed if User.objects.filter(username=typed).exists() else "", "fail")


def record_wrong_code(user: User) -> None:
    """The password was right, and the code of the second factor was not."""
    _record_failure(user.get_username(), "second_factor_fail")


def _record_failure(name: str, action: str) -> None:
    """``name``: whose login it was tried on; who tried is not known. Once a minute, as some try without end."""
    if is_first(f"{action} {name}", EVERY_S):
        audit.record(user=None, team=None, target="login", target_id=name, action=action)
