"""Things that have the palette's text in their names."""

from __future__ import annotations

from django.db.models import Q
from django.urls import reverse

from controlplane.alerts.selectors import list_receivers, list_rules
from controlplane.connections.selectors import list_connections
from controlplane.datasources.selectors import begins_first, datasources_named
from controlplane.loading.documents import value_at
from controlplane.loading.models import Draft
from controlplane.loading.selectors import drafts_of
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.selectors import supervisors_named
from controlplane.tasks.models import Task
from controlplane.tasks.selectors import tasks_named
from controlplane.teams.models import User
from controlplane.teams.people import list_people
from controlplane.teams.selectors import list_teams
from frontend.load.forms import SCHEMA
from frontend.load.steps import step_of
from frontend.palette.actions import actions_of_supervisor
from frontend.palette.hit import OF_A_KIND, Hit
from frontend.reach import Reach
from frontend.taskname import short_name

DATASOURCE = (*SCHEMA, "dataSource")  # where a draft names it


def things(user: User, reach: Reach, text: str) -> list[Hit]:
    """By kind; with the one supervisor that matches, what may be done to it."""
    supervisors = supervisors_named(user, text, team=reach.team, most=OF_A_KIND)
    found = [_supervisor(one) for one in supervisors]
    for datasource in datasources_named(user, text, team=reach.team, most=OF_A_KIND):
        url = reverse("frontend:datasource", args=[datasource.name])
        found.append(Hit(datasource.name, f"datasource of {datasource.team.name}", url, icon="database"))
    found += [*_connections(user, reach, text), *_drafts(user, text), *_alerting(user, reach, text)]
    found += [*_teams(user, text), *_people(user, reach, text)]
    found += [_task(one) for one in tasks_named(user, text, team=reach.team, most=OF_A_KIND)]
    return [*found, *actions_of_supervisor(user, supervisors[0])] if len(supervisors) == 1 else found


def _supervisor(one: Supervisor) -> Hit:
    hint = f"supervisor, {one.state.lower().replace('_', ' ')}"
    return Hit(one.id, hint, reverse("frontend:supervisor", args=[one.id]), icon="diagram-3")


def _task(one: Task) -> Hit:
    hint = f"task of {one.supervisor_id or one.datasource.name}, {one.status.lower()}"
    return Hit(short_name(one.id), hint, reverse("frontend:task", args=[one.id]), icon="play-circle")


def _connections(user: User, reach: Reach, text: str) -> list[Hit]:
    found = begins_first(list_connections(user, search=text, team=reach.team), "name", text)[:OF_A_KIND]
    return [
        Hit(
            one.name,
            f"{one.get_kind_display()} of {one.team.name}",
            reverse("frontend:connection", args=[one.team.name, one.name]),
            icon="plug",
        )
        for one in found
    ]


def _drafts(user: User, text: str) -> list[Hit]:
    named = Q(supervisor__id__icontains=text) | Q(**{f"document__{'__'.join(DATASOURCE)}__icontains": text})
    return [_draft(one) for one in drafts_of(user).filter(named)[:OF_A_KIND]]


def _draft(one: Draft) -> Hit:
    name = f"Change of {one.supervisor_id}" if one.supervisor_id else str(value_at(one.document, DATASOURCE))
    url = reverse("frontend:load-step", args=[one.pk, step_of(one).name])
    return Hit(name, f"draft in {one.team.name}", url, icon="box-arrow-in-down")


def _alerting(user: User, reach: Reach, text: str) -> list[Hit]:
    found = []
    for kind, view, listed in (
        ("alert rule", "alert-rule", list_rules(user, reach.team)),
        ("receiver of alerts", "alert-receiver", list_receivers(user, reach.team)),
    ):
        for one in listed.filter(name__icontains=text)[:OF_A_KIND]:
            found.append(Hit(one.name, f"{kind}, {one.team.name}", reverse(f"frontend:{view}", args=[one.pk]), "bell"))
    return found


def _teams(user: User, text: str) -> list[Hit]:
    found = list_teams(user).filter(name__icontains=text)[:OF_A_KIND]
    return [Hit(team.name, "team", reverse("frontend:team", args=[team.name]), icon="people") for team in found]


def _people(user: User, reach: Reach, text: str) -> list[Hit]:
    if not reach.administers_site:
        return []
    found = list_people(user, search=text)[:OF_A_KIND]
    return [Hit(p.username, "user", reverse("frontend:person", args=[p.username]), icon="person-badge") for p in found]
