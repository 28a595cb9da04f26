"""Events of a datasource's sources: lists, alarms that somebody sees to, and what is old."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.common.errors import Conflict, NotFound
from controlplane.datasources.models import Datasource
from controlplane.sources.models import EXPIRING_KINDS, SourceEvent
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require

MAX_ALARMS = 200
_BATCH_SIZE = 10_000


def list_events(
    user: User, datasource: Datasource, *, kind: str = "", alarm: bool | None = None
) -> QuerySet[SourceEvent]:
    """What an operator must know about its sources, newest first; of one kind, with an alarm or without."""
    events = SourceEvent.objects.filter(datasource=datasource).shown_to(user).select_related("source").order_by("-id")
    if kind:
        events = events.filter(kind=kind)
    return events if alarm is None else events.filter(alarm=alarm)


def get_event(user: User, datasource: Datasource, number: int) -> SourceEvent:
    """Raises ``NotFound``. The caller has made sure that the user may see the datasource."""
    event = list_events(user, datasource).filter(pk=number).first()
    if event is None:
        raise NotFound(f"Datasource {datasource.name!r} has no event {number}.")
    return event


def new_alarms(user: User, datasources: Sequence[int], since: datetime) -> list[SourceEvent]:
    """That nobody has acknowledged: the newest first, each with its datasource; no more than a person would read."""
    alarms = SourceEvent.objects.filter(datasource__in=datasources, alarm=True, acknowledged_at=None)
    alarms = alarms.filter(created_at__gte=since).shown_to(user)
    return list(alarms.select_related("datasource").order_by("-id")[:MAX_ALARMS])


@transaction.atomic
def acknowledge(*, user: User, event: SourceEvent) -> SourceEvent:
    """Say that somebody sees to an alarm, and to the older ones of its kind, with which it is shown as one.

    Needs the role operator. Raises ``Conflict`` for what is no alarm, or acknowledged already. ``event``: with its
    datasource, as the user may see it.
    """
    datasource = event.datasource
    require(user, Action.OPERATE, datasource.team)
    if not event.alarm:
        raise Conflict("This event is not an alarm: there is nothing to acknowledge.")
    now, who = timezone.now(), user.get_username()
    unacknowledged = SourceEvent.objects.filter(
        datasource=datasource, kind=event.kind, alarm=True, acknowledged_at=None
    )
    # The row count decides between two who do so at once.
    if not unacknowledged.filter(pk=event.pk).update(acknowledged_at=now, acknowledged_by=who):
        raise Conflict("This alarm is already acknowledged.")
    older = unacknowledged.filter(pk__lt=event.pk).update(acknowledged_at=now, acknowledged_by=who)
    audit.record(
        user=user,
        team=datasource.team,
        target="datasource",
        target_id=datasource.name,
        action="acknowledge",
        kind=event.kind,
        events=1 + older,
    )
    event.acknowledged_at, event.acknowledged_by = now, who
    return event


def drop_old(retention: timedelta) -> int:
    """Delete those that are older; how many. Alarms that nobody has acknowledged stay."""
    old = SourceEvent.objects.filter(kind__in=EXPIRING_KINDS, created_at__lt=timezone.now() - retention)
    deleted = 0
    while batch := list(
        old.exclude(alarm=True, acknowledged_at=None).order_by().values_list("pk", flat=True)[:_BATCH_SIZE]
    ):
        deleted += SourceEvent.objects.filter(pk__in=batch).delete()[0]
    return deleted
