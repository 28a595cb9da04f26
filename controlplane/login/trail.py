"""What the site's audit trail says of logins: who came in, and with whose name somebody did not."""

from __future__ import annotations

from typing import Any

from controlplane.common.once import is_first
from controlplane.common.text import storable
from controlplane.teams import audit
from controlplane.teams.models import User

EVERY_S = 60


def came_in(user: User, where: str) -> None:
    """Somebody has logged in, with all that it takes. ``where``: on the pages, or over REST for a token."""
    audit.record(user=user, team=None, target="login", target_id=user.get_username(), action="log_in", where=where)


def did_not_come_in(credentials: dict[str, Any], **_: Any) -> None:
    """Django's signal: no user has this name and this password.

    A name that nobody has is not kept: it may be a password, typed into the wrong field.
    """
    name = credentials.get("username")
    typed = name if isinstance(name, str) and storable(name) else ""
    _failed(typed if User.objects.filter(username=typed).exists() else "", "fail")


def gave_a_wrong_code(user: User) -> None:
    """The password was right, and the code of the second factor was not."""
    _failed(user.get_username(), "second_factor_fail")


def _failed(name: str, action: str) -> None:
    """``name``: whose login it was tried on; who tried is not known. Once a minute, as some try without end."""
    if is_first(f"{action} {name}", EVERY_S):
        audit.record(user=None, team=None, target="login", target_id=name, action=action)
