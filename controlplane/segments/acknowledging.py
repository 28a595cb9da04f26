"""Alarms among a datasource's events: somebody sees to them."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from controlplane.common.errors import Conflict
from controlplane.segments.models import SourceEvent
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require


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
    open_ones = SourceEvent.objects.filter(datasource=datasource, kind=event.kind, alarm=True, acknowledged_at=None)
    # The row count decides between two who do so at once.
    if not open_ones.filter(pk=event.pk).update(acknowledged_at=now, acknowledged_by=who):
        raise Conflict("This alarm is already acknowledged.")
    older = open_ones.filter(pk__lt=event.pk).update(acknowledged_at=now, acknowledged_by=who)
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
