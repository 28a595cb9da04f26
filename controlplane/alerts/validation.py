"""What writes of rules and receivers have in common."""

from __future__ import annotations

from typing import Any

from controlplane.alerts.models import Receiver, Rule
from controlplane.common.changes import Change, notify_pages
from controlplane.common.errors import Conflict, FieldError, InvalidInput
from controlplane.common.text import storable
from controlplane.teams import audit
from controlplane.teams.models import User
from ingestion.specs.limits import in_one_line


def check_new(model: type[Rule] | type[Receiver], instance: Rule | Receiver, most: int, what: str) -> None:
    check_name(model, instance, what)
    if model._default_manager.filter(team=instance.team).count() >= most:
        raise Conflict(f"Team {instance.team.name} has {most} already. Delete some.")


def check_name(model: type[Rule] | type[Receiver], instance: Rule | Receiver, what: str) -> None:
    if model._default_manager.filter(team=instance.team, name=instance.name).exclude(pk=instance.pk).exists():
        raise Conflict(f"Team {instance.team.name} has a {what} {instance.name!r} already. Choose another name.")


def name_faults(name: str) -> list[FieldError]:
    fits = name.strip() and len(name) <= 100 and storable(name) and in_one_line(name)
    return [] if fits else [FieldError("/name", "must have 1 to 100 characters, in one line", "name")]


def invalid_input(what: str, faults: list[FieldError]) -> InvalidInput:
    many = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
    return InvalidInput(f"The {what} has {many}. Nothing was changed.", faults)


def record(user: User, subject: Rule | Receiver, action: str, **detail: Any) -> None:
    notify_pages(Change(team=subject.team_id, urgent=True))
    audit.record(user=user, team=subject.team, target="alert", target_id=subject.name, action=action, **detail)
