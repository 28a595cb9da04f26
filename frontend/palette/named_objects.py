"""Things that have the palette's text in their names."""

from __future__ import annotations

from django.db.models import Q
from django.urls import reverse

from controlplane.alerts.selectors import list_receivers, list_rules
from controlplane.connections.selectors import list_connections
from controlplane.datasources.selectors import prefix_matches_first, search_datasources
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
from frontend.task_names import short_name
from frontend.team_scope import Reach

DATASOURCE = (*SCHEMA, "dataSource")  # where a draft names it


def things(user: User, reach: Reach, text: str) -> list[Hit]:
    """By kind; with the one supervisor that matches, what may be done to it."""
    supervisors = supervisors_named(user, text, team=reach.team, most=OF_A_KIND)
    hits = [_supervisor(match) for match in supervisors]
    for datasource in search_datasources(user, text, team=reach.team, most=OF_A_KIND):
        url = reverse("frontend:datasource", args=[datasource.name])
        hits.append(Hit(datasource.name, f"datasource of {datasource.team.name}", url, icon="database"))
    hits += [*_connections(user, reach, text), *_drafts(user, text), *_alerting(user, reach, text)]
    hits += [*_teams(user, text), *_people(user, reach, text)]
    hits += [_task(match) for match in tasks_named(user, text, team=reach.team, most=OF_A_KIND)]
    return [*hits, *actions_of_supervisor(user, supervisors[0])] if len(supervisors) == 1 else hits


def _supervisor(supervisor: Supervisor) -> Hit:
    hint = f"supervisor, {supervisor.state.lower().replace('_', ' ')}"
    return Hit(supervisor.id, hint, reverse("frontend:supervisor", args=[supervisor.id]), icon="diagram-3")


def _task(task: Task) -> Hit:
    hint = f"task of {task.supervisor_id or task.datasource.name}, {task.status.lower()}"
    return Hit(short_name(task.id), hint, reverse("frontend:task", args=[task.id]), icon="play-circle")


def _connections(user: User, reach: Reach, text: str) -> list[Hit]:
    connections = prefix_matches_first(list_connections(user, search=text, team=reach.team), "name", text)[:OF_A_KIND]
    return [
        Hit(
            connection.name,
            f"{connection.get_kind_display()} of {connection.team.name}",
            reverse("frontend:connection", args=[connection.team.name, connection.name]),
            icon="plug",
        )
        for connection in connections
    ]


def _drafts(user: User, text: str) -> list[Hit]:
    named = Q(supervisor__id__icontains=text) | Q(**{f"document__{'__'.join(DATASOURCE)}__icontains": text})
    return [_draft(draft) for draft in drafts_of(user).filter(named)[:OF_A_KIND]]


def _draft(draft: Draft) -> Hit:
    name = f"Change of {draft.supervisor_id}" if draft.supervisor_id else str(value_at(draft.document, DATASOURCE))
    url = reverse("frontend:load-step", args=[draft.pk, step_of(draft).name])
    return Hit(name, f"draft in {draft.team.name}", url, icon="box-arrow-in-down")


def _alerting(user: User, reach: Reach, text: str) -> list[Hit]:
    hits = []
    for kind, view, listed in (
        ("alert rule", "alert-rule", list_rules(user, reach.team)),
        ("receiver of alerts", "alert-receiver", list_receivers(user, reach.team)),
    ):
        for match in listed.filter(name__icontains=text)[:OF_A_KIND]:
            hits.append(
                Hit(match.name, f"{kind}, {match.team.name}", reverse(f"frontend:{view}", args=[match.pk]), "bell")
            )
    return hits


def _teams(user: User, text: str) -> list[Hit]:
    teams = list_teams(user).filter(name__icontains=text)[:OF_A_KIND]
    return [Hit(team.name, "team", reverse("frontend:team", args=[team.name]), icon="people") for team in teams]


def _people(user: User, reach: Reach, text: str) -> list[Hit]:
    if not reach.administers_site:
        return []
    people = list_people(user, search=text)[:OF_A_KIND]
    return [Hit(p.username, "user", reverse("frontend:person", args=[p.username]), icon="person-badge") for p in people]
