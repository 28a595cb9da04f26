"""Reads of connections. Nothing here gives out a secret."""

from __future__ import annotations

from django.db.models import F, QuerySet

from controlplane.common.errors import InvalidInput, NotFound
from controlplane.common.text import storable
from controlplane.connections.models import Connection, ConnectionRule
from controlplane.teams.models import Team, User


def list_connections(user: User, *, search: str = "", kind: str = "", team: str = "") -> QuerySet[Connection]:
    """Those of the user's teams, by team and name; each with ``team_name``."""
    connections = Connection.objects.visible_to(user).select_related("team", "created_by", "changed_by")
    connections = connections.annotate(team_name=F("team__name")).order_by("team_name", "name")
    if not storable(search) or not storable(team):
        return connections.none()
    filters = {"name__icontains": search, "kind": kind, "team__name": team}
    return connections.filter(**{field: value for field, value in filters.items() if value})


def get_connection(user: User, team: str, name: str) -> Connection:
    """One of ``list_connections``. Raises ``NotFound``: another team's is as one that there is not."""
    connection = list_connections(user, team=team).filter(name=name).first() if storable(name) and team else None
    if connection is None:
        raise NotFound(f"You have no team {team!r} with a connection {name!r}.")
    return connection


def get_cluster(user: User, team: str, name: str) -> Connection:
    """One of ``list_connections`` that is a Kafka cluster. Raises ``NotFound``, ``InvalidInput`` for a registry."""
    connection = get_connection(user, team, name)
    if not connection.is_kafka:
        raise InvalidInput(f"The connection {name!r} is a schema registry. It has no topics or groups.")
    return connection


def own_properties_allowed(team: Team) -> bool:
    """Whether the team's specs may say themselves where and how they connect."""
    rule = ConnectionRule.objects.filter(team=team).first()
    return rule is None or rule.own_properties
