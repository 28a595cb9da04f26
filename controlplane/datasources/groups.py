"""Whose a group of Kafka's is: its configuration on the broker, and who reads what, are the whole group's.

Kafka knows no teams, and the cluster is not known before it is asked. So a name belongs, on all clusters of the
installation, to the team whose specs name it, for as long as one of them does or the group's progress is kept. What
names a group, or has read with it, is known to an app above this one, which says so with ``register_group_holders``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from controlplane.common.errors import Conflict
from controlplane.datasources.models import Datasource
from controlplane.teams.models import Team

# The keys of datasources that a group is held for: of holders made before a time, if one is given.
Holders = Callable[[str, datetime | None], Iterable[QuerySet[Any, Any]]]

_LOCK_ID = 7_340_017
_holders: list[Holders] = []


def register_group_holders(holders: Holders) -> Holders:
    """From now on these count; a decorator."""
    _holders.append(holders)
    return holders


def claim_group(team: Team, group_id: str | None, owner: str, since: datetime | None = None) -> None:
    """Make sure that a group is no other team's, until the transaction ends. Raises ``Conflict``.

    ``group_id``: an ioConfig's ``group``. ``owner``: as which it is called without a name: the supervisor's id, or the
    datasource's name for a manual task. ``since``: another team's later claim counts nothing.
    """
    if group_id is None:
        return
    group = group_id or owner
    with connection.cursor() as cursor:  # two teams that name a group at the same time: one after the other
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK_ID, group])
    others = Datasource.objects.exclude(team=team)
    if any(others.filter(pk__in=keys).exists() for holders in _holders for keys in holders(group, since)):
        raise Conflict(f"The group {group!r} is taken; choose another groupId.")
