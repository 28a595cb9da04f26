"""The audit trail: one entry for each change that a person (or a rule of the site) makes to what a team owns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from controlplane.common.changes import Change, notify_pages
from controlplane.common.client_address import current_address
from controlplane.common.text import storable
from controlplane.teams.models import AuditEntry, Team, User
from controlplane.teams.permissions import Action, require, require_site_admin
from controlplane.teams.selectors import teams_administered

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
        "skip_and_fill",
        "fill",
        "rewind",
        "undo_rewind",
        "cancel_rewind",
        "handoff",
        "apply_group_config",
    ),
    "task": ("submit", "stop", "finish"),
    "quarantine": ("replay_ingest", "replay_produce", "purge", "export", "import", "retention"),
    "member": ("invite", "invite_by_link", "withdraw", "join", "decline", "set", "remove", "leave"),
    "team": ("create", "rename", "describe", "delete", "quota"),
    "token": ("create", "revoke"),
    "person": (
        "create",
        "deactivate",
        "activate",
        "password_link",
        "password_set",
        "email",
        "remove_second_factors",
        "add_second_factor",
        "remove_second_factor",
    ),
    "service_account": ("create", "delete"),
    "datasource": (
        "mask",
        "transfer",
        "set_compaction",
        "turn_off_compaction",
        "set_compaction_slots",
        "mark_unused",
        "mark_used",
        "kill",
        "set_rules",
        "acknowledge",
        "delete",
        "query",
    ),
    "alert": (
        "create_rule",
        "change_rule",
        "delete_rule",
        "create_receiver",
        "change_receiver",
        "delete_receiver",
        "silence",
        "end_silence",
        "acknowledge",
    ),
    "connection": ("create", "change", "delete", "rule", "transfer"),
    "saved_query": ("share", "change", "delete"),
    # The site's: who came in, who did not, and what a role or a scope did not allow.
    "login": ("log_in", "fail", "second_factor_fail"),
    "request": ("refuse",),
}

_SHOWN_AS = {
    "supervisor": "supervisor",
    "task": "task",
    "quarantine": "datasource",
    "datasource": "datasource",
}  # as pages name what changes


def record(*, user: User | None, team: Team | None, target: str, target_id: str, action: str, **detail: Any) -> None:
    """Add an entry in the caller's transaction: it is there exactly when the change is.

    ``user``: None for what a rule of the site did. ``team``: None for what is the site's. ``detail``: JSON, without
    secrets and payloads.
    """
    if action not in ACTIONS[target]:
        raise ValueError(f"there is no action {action!r} on a {target}")
    subject = {_SHOWN_AS[target]: target_id} if target in _SHOWN_AS else {}
    notify_pages(Change(team=team.pk if team else 0, urgent=True, **subject))  # type: ignore[arg-type]  # they are names
    _add(user, team, target, target_id, action, detail)


def record_read(*, user: User, datasource: str, team: Team, **detail: Any) -> None:
    """Add an entry for a query that reads a datasource. Nothing has changed, so no page is notified."""
    _add(user, team, "datasource", datasource, "query", detail)


def _add(
    user: User | None, team: Team | None, target: str, target_id: str, action: str, detail: dict[str, Any]
) -> None:
    AuditEntry.objects.create(
        team=team,
        username=user.get_username() if user else "",
        address=current_address() or None,
        token=user.token_name if user else "",
        target=target,
        target_id=target_id,
        action=action,
        detail=detail,
    )


def last_actions(target: str, target_ids: Collection[str], actions: Collection[str]) -> dict[str, AuditEntry]:
    """The last entry of each of these things that is one of these actions.

    The caller has made sure that it may be seen.
    """
    entries = AuditEntry.objects.filter(target=target, target_id__in=target_ids, action__in=actions)
    return {entry.target_id: entry for entry in entries.order_by("target_id", "-id").distinct("target_id")}


def newest_entries(user: User, team: Team | None, most: int) -> list[AuditEntry]:
    """Of the teams in which the user is admin, or of one of them; none where the user is admin of none."""
    teams = teams_administered(user) if team is None else teams_administered(user).filter(pk=team.pk)
    entries = AuditEntry.objects.filter(team__in=list(teams.values_list("pk", flat=True)))
    return list(entries.select_related("team").order_by("-id")[:most])


@dataclass(frozen=True)
class AuditFilter:
    """Which entries; what is None or empty filters nothing."""

    username: str = ""
    target: str = ""
    target_id: str = ""
    action: str = ""
    team: str = ""  # of the whole site's entries those of a team; SITE_ALONE for those of none
    text: str = ""  # anywhere in who, what, to what, and the detail
    # When it was; half-open.
    since: datetime | None = None
    until: datetime | None = None


EVERYTHING = AuditFilter()
SITE_ONLY = "-"  # no team's name


def list_entries(user: User, team: Team, entry_filter: AuditFilter = EVERYTHING) -> QuerySet[AuditEntry]:
    """A team's entries, newest first. Raises ``NotAllowed``: only its admins may read them."""
    require(user, Action.ADMINISTER, team)
    return _matching(AuditEntry.objects.filter(team=team), entry_filter)


def list_site_entries(user: User, entry_filter: AuditFilter = EVERYTHING) -> QuerySet[AuditEntry]:
    """All teams' entries, deleted ones' too, and those of the site, newest first. Raises ``NotAllowed``."""
    require_site_admin(user)
    entries = AuditEntry.objects.all()
    if entry_filter.team == SITE_ONLY:
        entries = entries.filter(team=None)
    elif entry_filter.team:
        entries = entries.filter(team__name=entry_filter.team) if storable(entry_filter.team) else entries.none()
    return _matching(entries, entry_filter)


def _matching(entries: QuerySet[AuditEntry], entry_filter: AuditFilter) -> QuerySet[AuditEntry]:
    exact = {name: getattr(entry_filter, name) for name in ("username", "target", "target_id", "action")}
    if not all(storable(value) for value in (*exact.values(), entry_filter.text)):
        return AuditEntry.objects.none()
    entries = entries.select_related("team").filter(**{name: value for name, value in exact.items() if value})
    if entry_filter.since is not None:
        entries = entries.filter(at__gte=entry_filter.since)
    if entry_filter.until is not None:
        entries = entries.filter(at__lt=entry_filter.until)
    return (_with_text(entries, entry_filter.text) if entry_filter.text else entries).order_by("-id")


def _with_text(entries: QuerySet[AuditEntry], text: str) -> QuerySet[AuditEntry]:
    entries = entries.annotate(detail_text=Cast("detail", TextField()))
    matches = Q(detail_text__icontains=text)
    for name in ("username", "action", "target", "target_id", "token"):
        matches |= Q(**{f"{name}__icontains": text})
    return entries.filter(matches)
