"""Reads of datasources by themselves. What they hold, and what fills them, is read where these models are."""

from __future__ import annotations

from django.db.models import QuerySet

from controlplane.common.errors import NotFound
from controlplane.common.text import storable
from controlplane.datasources.models import Datasource
from controlplane.teams.models import User


def find_datasource(user: User, name: str) -> Datasource:
    """A datasource without its sums, which cost a pass over its segments. Raises ``NotFound``."""
    return only_one_named(Datasource.objects.visible_to(user).select_related("team"), name)


def only_one_named(among: QuerySet[Datasource], name: str) -> Datasource:
    """The one of that name. Raises ``NotFound``."""
    datasource = among.filter(name=name).first() if storable(name) else None
    if datasource is None:
        raise NotFound(f"There is no datasource {name!r}.")
    return datasource
