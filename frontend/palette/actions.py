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
from controlplane.datasources.selectors import prefix_matches_first, search_datasources
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
from frontend.task_names import short_name
from frontend.team_scope import Reach


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
    hits = []
    for kind in _KINDS:
        for verb, name in _verbs(kind.verbs, text):
            for thing in kind.named(user, reach, name):
                hits += [action.hit for action in kind.actions(user, thing) if action.verb.lower() == verb]
    return hits


def actions_of_supervisor(user: User, supervisor: Supervisor) -> list[Hit]:
    """All that may be done to it."""
    return [action.hit for action in _supervisor_actions(user, supervisor)]


def _verbs(verbs: Sequence[str], text: str) -> list[tuple[str, str]]:
    """The verbs that the text may begin with, whole or by their first letters, each with the rest of the text."""
    lowered, first = text.lower(), text.lower().split(" ")[0]
    matches = []
    for verb in verbs:
        if lowered == verb or lowered.startswith(f"{verb} "):
            matches.append((verb, text[len(verb) + 1 :]))
        elif len(first) >= 2 and verb.startswith(first):
            matches.append((verb, text[len(first) + 1 :]))
    return matches


def _supervisor_actions(user: User, supervisor: Supervisor) -> list[PaletteAction]:
    possible = [
        PaletteAction(a.label, supervisor.id, a.confirm_url)
        for a in SupervisorActions.for_user(user, supervisor).values()
    ]
    if not supervisor.is_made_by_another and may(user, Action.ADMINISTER, supervisor.datasource.team):
        possible.append(
            PaletteAction(
                "Change", supervisor.id, f"{reverse('frontend:load')}?{urlencode({'supervisor': supervisor.id})}"
            )
        )
    return possible


def _task_actions(user: User, task: Task) -> list[PaletteAction]:
    return [
        PaletteAction(a.label, short_name(task.id), a.confirm_url) for a in TaskActions.for_user(user, task).values()
    ]


def _datasource_actions(user: User, datasource: Datasource) -> list[PaletteAction]:
    possible = []
    if may(user, Action.OPERATE, datasource.team):
        silence = f"{reverse('frontend:new-alert-silence')}?{urlencode({'datasource': datasource.name})}"
        possible.append(PaletteAction("Silence", datasource.name, silence))
    if may(user, Action.ADMINISTER, datasource.team):
        for verb, view in (
            ("Delete", "datasource-delete"),
            ("Transfer", "datasource-transfer"),
            ("Mark segments of", "datasource-mark-segments"),
            ("Set rules of", "datasource-rules"),
            ("Mask columns of", "datasource-columns"),
        ):
            possible.append(PaletteAction(verb, datasource.name, reverse(f"frontend:{view}", args=[datasource.name])))
    return possible


def _connection_actions(user: User, connection: Connection) -> list[PaletteAction]:
    def url_of(view: str, *more: str) -> str:
        return reverse(f"frontend:{view}", args=[connection.team.name, connection.name, *more])

    possible = []
    if may(user, Action.OPERATE, connection.team):
        possible += [PaletteAction("Test", connection.name, url_of("connection"))]
        possible += [
            PaletteAction("Restart supervisors that use", connection.name, url_of("connection-confirm", "restart"))
        ]
    if may(user, Action.ADMINISTER, connection.team):
        possible += [PaletteAction("Change", connection.name, url_of("connection-change"))]
        possible += [PaletteAction("Transfer", connection.name, url_of("connection-transfer"))]
        unused = (
            []
            if uses_of(connection)
            else [PaletteAction("Delete", connection.name, url_of("connection-confirm", "delete"))]
        )
        possible += unused
    return possible


def _team_actions(user: User, team: Team) -> list[PaletteAction]:
    if not may(user, Action.ADMINISTER, team):
        return []
    return [PaletteAction("Invite into", team.name, reverse("frontend:team", args=[team.name]))]


_KINDS = (
    _Kind(
        ("suspend", "resume", "hand off", "scale", "reset offsets", "terminate", "change"),
        lambda user, reach, name: supervisors_named(user, name, team=reach.team, most=OF_A_KIND),
        _supervisor_actions,
    ),
    _Kind(
        ("finish", "stop now"),
        lambda user, reach, name: tasks_named(user, name, team=reach.team, most=OF_A_KIND),
        _task_actions,
    ),
    _Kind(
        ("silence", "delete", "transfer", "mark segments of", "set rules of", "mask columns of"),
        lambda user, reach, name: search_datasources(user, name, team=reach.team, most=OF_A_KIND),
        _datasource_actions,
    ),
    _Kind(
        ("test", "restart supervisors that use", "change", "transfer", "delete"),
        lambda user, reach, name: prefix_matches_first(
            list_connections(user, search=name, team=reach.team), "name", name
        )[:OF_A_KIND],
        _connection_actions,
    ),
    _Kind(
        ("invite into",),
        lambda user, reach, name: list_teams(user).filter(name__icontains=name)[:OF_A_KIND],
        _team_actions,
    ),
)
