"""The audit trail: one entry for each change that a person (or a rule of the site) makes to what a team owns."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from controlplane.common.clients import current_address
from controlplane.common.text import storable
from controlplane.teams.models import AuditEntry, Team, User
from controlplane.teams.permissions import Action, require

# What there are entries for, by what is acted on.
ACTIONS = {
    "supervisor": (
        "create",
        "update",
        "suspend",
        "resume",
        "scale",
        "terminate",
        "reset",
        "handoff",
        "apply_group_config",
    ),
    "task": ("submit", "stop", "finish"),
    "quarantine": ("replay_ingest", "replay_produce", "purge", "export", "retention"),
    "member": ("invite", "withdraw", "join", "decline", "set", "remove", "leave"),
    "token": ("revoke",),
}


def record(*, user: User | None, team: Team, target: str, target_id: str, action: str, **detail: Any) -> None:
    """Add an entry in the caller's transaction: it is there exactly when the change is.

    ``user``: None for what a rule of the site did. ``detail``: JSON, without secrets and payloads.
    """
    if action not in ACTIONS[target]:
        raise ValueError(f"there is no action {action!r} on a {target}")
    AuditEntry.objects.create(
        team=team,
        username=user.get_username() if user else "",
        address=current_address() or None,
        target=target,
        target_id=target_id,
        action=action,
        detail=detail,
    )


def list_entries(
    user: User, team: Team, *, username: str = "", target: str = "", target_id: str = "", action: str = ""
) -> QuerySet[AuditEntry]:
    """A team's entries, newest first. Raises ``NotAllowed``: only its admins may read them."""
    require(user, Action.ADMINISTER, team)
    wanted = {"username": username, "target": target, "target_id": target_id, "action": action}
    if not all(storable(value) for value in wanted.values()):
        return AuditEntry.objects.none()
    entries = AuditEntry.objects.filter(team=team, **{name: value for name, value in wanted.items() if value})
    return entries.order_by("-id")
