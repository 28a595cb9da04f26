"""What the command palette offers for a text: pages, things by name, and what may be done to them."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from controlplane.datasources.selectors import datasources_named
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import supervisors_named
from controlplane.tasks.models import Task
from controlplane.tasks.selectors import tasks_named
from controlplane.teams.models import User
from frontend.actions import PageAction, SupervisorActions, TaskActions
from frontend.context import sections_for
from frontend.reach import Reach
from frontend.taskname import short_name

MOST = 20
OF_A_KIND = 8
LONGEST_TEXT = 300

# What may be done by name, as it is called on the pages.
SUPERVISOR_VERBS = ("suspend", "resume", "hand off", "scale", "reset offsets", "terminate")
TASK_VERBS = ("finish", "stop now")


@dataclass(frozen=True)
class Hit:
    """One line of the palette."""

    name: str
    hint: str
    url: str
    icon: str


def hits_of(user: User, reach: Reach, text: str) -> list[Hit]:
    """At most ``MOST``; a page and a thing that begin with the text come before those that hold it."""
    wanted = " ".join(text[:LONGEST_TEXT].split()).rpartition("· ")[2]
    pages = [hit for hit in _pages(reach) if wanted.lower() in hit.name.lower()]
    if not wanted:
        return pages[:MOST]
    doing = _to_supervisors(user, reach, wanted) + _to_tasks(user, reach, wanted)
    return [*doing, *pages, *_things(user, reach, wanted)][:MOST]


def _pages(reach: Reach) -> list[Hit]:
    found = []
    if reach.may_submit_supervisors:
        found.append(Hit("Submit a supervisor", "do", reverse("frontend:new-supervisor"), icon="plus-lg"))
        url = reverse("frontend:import-supervisors")
        found.append(Hit("Import supervisors from Druid", "do", url, icon="box-arrow-in-down"))
    if reach.may_submit_tasks:
        found.append(Hit("Submit a task", "do", reverse("frontend:new-task"), icon="plus-lg"))
    found += [Hit(section.label, "page", reverse(section.view), section.icon) for section in sections_for(reach)]
    found.append(Hit("Your account", "page", reverse("frontend:account"), icon="person-circle"))
    if reach.may_read_audit:
        found.append(Hit("Audit trail", "page", reverse("frontend:audit"), icon="journal-text"))
    found.append(Hit("API", "page", "/api/docs/", icon="code-slash"))
    if reach.user is not None and reach.user.is_superuser:
        found.append(Hit("Style guide", "page", reverse("frontend:styleguide"), icon="palette"))
    return found


def _things(user: User, reach: Reach, text: str) -> list[Hit]:
    supervisors = supervisors_named(user, text, team=reach.team, most=OF_A_KIND)
    found = [_supervisor(one) for one in supervisors]
    for datasource in datasources_named(user, text, team=reach.team, most=OF_A_KIND):
        url = reverse("frontend:datasource", args=[datasource.name])
        found.append(Hit(datasource.name, f"datasource of {datasource.team.name}", url, icon="database"))
    found += [_task(one) for one in tasks_named(user, text, team=reach.team, most=OF_A_KIND)]
    if len(supervisors) == 1:
        found += [_action(a, supervisors[0].id) for a in SupervisorActions.for_user(user, supervisors[0]).values()]
    return found


def _supervisor(one: Supervisor) -> Hit:
    hint = f"supervisor, {one.state.lower().replace('_', ' ')}"
    return Hit(one.id, hint, reverse("frontend:supervisor", args=[one.id]), icon="diagram-3")


def _task(one: Task) -> Hit:
    hint = f"task of {one.supervisor_id or one.datasource.name}, {one.status.lower()}"
    return Hit(short_name(one.id), hint, reverse("frontend:task", args=[one.id]), icon="play-circle")


def _action(action: PageAction, name: str) -> Hit:
    return Hit(f"{action.label} {name}…", "do", action.confirm_url, icon="lightning-charge")


def _to_supervisors(user: User, reach: Reach, text: str) -> list[Hit]:
    found = []
    for verb, name in _verbs(SUPERVISOR_VERBS, text):
        for one in supervisors_named(user, name, team=reach.team, most=OF_A_KIND):
            actions = SupervisorActions.for_user(user, one).values()
            found += [_action(action, one.id) for action in actions if action.label.lower() == verb]
    return found


def _to_tasks(user: User, reach: Reach, text: str) -> list[Hit]:
    found = []
    for verb, name in _verbs(TASK_VERBS, text):
        for one in tasks_named(user, name, team=reach.team, most=OF_A_KIND):
            actions = TaskActions.for_user(user, one).values()
            found += [_action(action, short_name(one.id)) for action in actions if action.label.lower() == verb]
    return found


def _verbs(verbs: tuple[str, ...], text: str) -> list[tuple[str, str]]:
    """The verbs that the text may begin with, whole or by their first letters, each with the rest of the text."""
    lowered, first = text.lower(), text.lower().split(" ")[0]
    found = []
    for verb in verbs:
        if lowered == verb or lowered.startswith(f"{verb} "):
            found.append((verb, text[len(verb) + 1 :]))
        elif len(first) >= 2 and verb.startswith(first):
            found.append((verb, text[len(first) + 1 :]))
    return found
