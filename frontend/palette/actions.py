"""What may be done to things that are named behind a verb: ``suspend orders``. Each leads to the page that asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from controlplane.connections.models import Connection
from controlplane.connections.selectors import list_connections
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import begins_first, datasources_named
from controlplane.supervisors.connections import uses_of
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import supervisors_named
from controlplane.tasks.models import Task
from controlplane.tasks.selectors import tasks_named
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, may
from controlplane.teams.selectors import list_teams
from frontend.actions import SupervisorActions, TaskActions
from frontend.palette.hit import OF_A_KIND, Hit
from frontend.reach import Reach
from frontend.taskname import short_name


@dataclass(frozen=True)
class PaletteAction:
    """Something that may be done to one thing."""

    verb: str  # as it is typed and written, before the thing's name
    name: str
    url: str

    @property
    def hit(self) -> Hit:
        return Hit(f"{self.verb} {self.name}…", "do", self.url, icon="lightning-charge")


@dataclass(frozen=True)
class _Kind:
    """A kind of thing, and what may be done to it."""

    verbs: tuple[str, ...]
    named: Callable[[User, Reach, str], Iterable[Any]]  # those with a text in their names
    actions: Callable[[User, Any], Iterable[PaletteAction]]  # what the user may do to one of them now


def actions(user: User, reach: Reach, text: str) -> list[Hit]:
    """Of a text that begins with a verb, whole or by its first letters."""
    found = []
    for kind in _KINDS:
        for verb, name in _verbs(kind.verbs, text):
            for thing in kind.named(user, reach, name):
                found += [action.hit for action in kind.actions(user, thing) if action.verb.lower() == verb]
    return found


def actions_of_supervisor(user: User, supervisor: Supervisor) -> list[Hit]:
    """All that may be done to it."""
    return [action.hit for action in _to_supervisor(user, supervisor)]


def _verbs(verbs: Sequence[str], text: str) -> list[tuple[str, str]]:
    """The verbs that the text may begin with, whole or by their first letters, each with the rest of the text."""
    lowered, first = text.lower(), text.lower().split(" ")[0]
    found = []
    for verb in verbs:
        if lowered == verb or lowered.startswith(f"{verb} "):
            found.append((verb, text[len(verb) + 1 :]))
        elif len(first) >= 2 and verb.startswith(first):
            found.append((verb, text[len(first) + 1 :]))
    return found


def _to_supervisor(user: User, one: Supervisor) -> list[PaletteAction]:
    found = [PaletteAction(a.label, one.id, a.confirm_url) for a in SupervisorActions.for_user(user, one).values()]
    if one.parent_id is None and may(user, Action.ADMINISTER, one.datasource.team):
        found.append(PaletteAction("Change", one.id, f"{reverse('frontend:load')}?{urlencode({'supervisor': one.id})}"))
    return found


def _to_task(user: User, one: Task) -> list[PaletteAction]:
    return [PaletteAction(a.label, short_name(one.id), a.confirm_url) for a in TaskActions.for_user(user, one).values()]


def _to_datasource(user: User, one: Datasource) -> list[PaletteAction]:
    found = []
    if may(user, Action.OPERATE, one.team):
        silence = f"{reverse('frontend:new-alert-silence')}?{urlencode({'datasource': one.name})}"
        found.append(PaletteAction("Silence", one.name, silence))
    if may(user, Action.ADMINISTER, one.team):
        for verb, view in (
            ("Delete", "datasource-delete"),
            ("Transfer", "datasource-transfer"),
            ("Mark segments of", "datasource-mark-segments"),
            ("Set rules of", "datasource-rules"),
            ("Mask columns of", "datasource-columns"),
        ):
            found.append(PaletteAction(verb, one.name, reverse(f"frontend:{view}", args=[one.name])))
    return found


def _to_connection(user: User, one: Connection) -> list[PaletteAction]:
    def asked(view: str, *of: str) -> str:
        return reverse(f"frontend:{view}", args=[one.team.name, one.name, *of])

    found = []
    if may(user, Action.OPERATE, one.team):
        found += [PaletteAction("Test", one.name, asked("connection"))]
        found += [PaletteAction("Restart supervisors that use", one.name, asked("connection-confirm", "restart"))]
    if may(user, Action.ADMINISTER, one.team):
        found += [PaletteAction("Change", one.name, asked("connection-change"))]
        found += [PaletteAction("Transfer", one.name, asked("connection-transfer"))]
        unused = [] if uses_of(one) else [PaletteAction("Delete", one.name, asked("connection-confirm", "delete"))]
        found += unused
    return found


def _to_team(user: User, one: Team) -> list[PaletteAction]:
    if not may(user, Action.ADMINISTER, one):
        return []
    return [PaletteAction("Invite into", one.name, reverse("frontend:team", args=[one.name]))]


_KINDS = (
    _Kind(
        ("suspend", "resume", "hand off", "scale", "reset offsets", "terminate", "change"),
        lambda user, reach, name: supervisors_named(user, name, team=reach.team, most=OF_A_KIND),
        _to_supervisor,
    ),
    _Kind(
        ("finish", "stop now"),
        lambda user, reach, name: tasks_named(user, name, team=reach.team, most=OF_A_KIND),
        _to_task,
    ),
    _Kind(
        ("silence", "delete", "transfer", "mark segments of", "set rules of", "mask columns of"),
        lambda user, reach, name: datasources_named(user, name, team=reach.team, most=OF_A_KIND),
        _to_datasource,
    ),
    _Kind(
        ("test", "restart supervisors that use", "change", "transfer", "delete"),
        lambda user, reach, name: begins_first(list_connections(user, search=name, team=reach.team), "name", name)[
            :OF_A_KIND
        ],
        _to_connection,
    ),
    _Kind(
        ("invite into",), lambda user, reach, name: list_teams(user).filter(name__icontains=name)[:OF_A_KIND], _to_team
    ),
)
