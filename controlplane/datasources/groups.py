"""Whose a group of Kafka's is: its configuration on the broker, and who reads what, are the whole group's.

Kafka knows no teams, and the cluster is not known before it is asked. So a name belongs, on all clusters of the
installation, to the team whose specs name it, for as long as one of them does or the group's progress is kept.
Supervisors, tasks and sources are reached by relation name: their apps lie above this one.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models import F, Q

from controlplane.common.errors import Conflict
from controlplane.datasources.models import Datasource
from controlplane.teams.models import Team

_ACTIVE = ("PENDING", "RUNNING")  # of tasks.models.Status
_SHARE_GROUP = "share_group"  # of segments.models.Source.Kind
_LOCK = 7_340_017


def claim_group(team: Team, named: str | None, owner: str, since: datetime | None = None) -> None:
    """Make sure that a group is no other team's, until the transaction ends. Raises ``Conflict``.

    ``named``: an ioConfig's ``group``. ``owner``: as which it is called without a name: the supervisor's id, or the
    datasource's name for a task submitted by hand. ``since``: another team's later claim counts nothing.
    """
    if named is None:
        return
    group = named or owner
    with connection.cursor() as cursor:  # two teams that name a group at the same time: one after the other
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, group])
    others = Datasource.objects.exclude(team=team)
    if any(others.filter(claim).exists() for claim in _claims(group, since)):
        raise Conflict(f"The group {group!r} is taken; choose another groupId.")


def _claims(group: str, since: datetime | None) -> list[Q]:
    """What makes a group a datasource's: its supervisors', its tasks' by hand, progress that is kept of it."""
    spec, task = "supervisors__versions__spec__spec__ioConfig__", "tasks__spec__spec__ioConfig__"
    supervised = Q(supervisors__terminated_at=None, supervisors__versions__version=F("supervisors__version"))
    by_hand = Q(tasks__status__in=_ACTIVE, tasks__supervisor_id="")
    kept = Q(sources__kind=_SHARE_GROUP, sources__group=group, sources__current=True)
    if since is not None:
        supervised &= Q(supervisors__created_at__lt=since)
        by_hand &= Q(tasks__created_at__lt=since)
        kept &= Q(sources__created_at__lt=since)
    unnamed = {"assignment": "consumer_group", "groupId__isnull": True}
    return [
        supervised & Q(**{f"{spec}groupId": group}),
        supervised & Q(supervisors__pk=group, **{spec + name: value for name, value in unnamed.items()}),
        by_hand & Q(**{f"{task}groupId": group}),
        by_hand & Q(name=group, **{task + name: value for name, value in unnamed.items()}),
        kept,
    ]
