"""Reads of datasources by themselves. What they hold, and what fills them, is read where these models are."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Case, IntegerField, Model, Q, QuerySet, When

from controlplane.common.errors import NotFound
from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.teams.models import Team, User
from controlplane.teams.selectors import list_teams

Row = TypeVar("Row", bound=Model)


def find_datasource(user: User, name: str) -> Datasource:
    """A datasource without its sums, which cost a pass over its segments. Raises ``NotFound``."""
    return get_by_name(Datasource.objects.visible_to(user).select_related("team"), name)


def get_by_name(datasources: QuerySet[Datasource], name: str) -> Datasource:
    """The one of that name. Raises ``NotFound``."""
    datasource = datasources.filter(name=name).first() if storable(name) else None
    if datasource is None:
        raise NotFound(f"There is no datasource {name!r}.")
    return datasource


def search_datasources(user: User, text: str, *, team: str = "", most: int = 20) -> list[Datasource]:
    """Those with the text in their names, those that begin with it first; of one team, if it is named."""
    if not storable(text):
        return []
    matches = (
        Datasource.objects.visible_to(user)
        .present()
        .filter(_team_filter(team), name__icontains=text)
        .select_related("team")
    )
    return list(prefix_matches_first(matches, "name", text)[:most])


def prefix_matches_first(rows: QuerySet[Row], field: str, text: str) -> QuerySet[Row]:
    """By that field, but what begins with the text comes first."""
    begins = Case(When(**{f"{field}__istartswith": text}, then=0), default=1, output_field=IntegerField())
    return rows.order_by(begins, field)


def _team_filter(team: str) -> Q:
    return Q(team__name=team) if team else Q()


def team_of_spec(user: User, datasource: str | None, team_name: str | None) -> Team | None:
    """The team that a spec for this datasource belongs to, or would: that of the datasource, else the one named, else
    the user's only one. None where none of these says so, or it is not the user's.
    """
    existing = None
    if datasource is not None and storable(datasource):
        existing = Datasource.objects.visible_to(user).select_related("team").filter(name=datasource).first()
    if existing is not None:
        return existing.team
    teams = list_teams(user)
    if team_name:
        return teams.filter(name=team_name).first() if storable(team_name) else None
    candidates = list(teams[:2])
    return candidates[0] if len(candidates) == 1 else None
