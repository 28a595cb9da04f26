"""Deleting a datasource whole: its segments are lost, what was read stays read, and its name stays its team's.

The row stays with its sources, settled ranges and receipts: a spec that names it again makes it anew, and goes on where
reading had come to; no record is stored a second time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import transaction
from django.utils import timezone

from controlplane.common.changes import Change, tell
from controlplane.common.errors import Conflict, FieldError, InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.segments import killing, marking
from controlplane.segments.marking import Amount, Chosen
from controlplane.segments.models import QuarantinedRecord, Segment
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require

_NAMED = 10


@dataclass(frozen=True)
class Outlook:
    """What deleting it would mean."""

    amount: Amount  # of its segments, in use or not
    quarantined: int = 0  # records that stay until they are purged
    # What reads into it and must end first: supervisor or task, and its id.
    readers: list[tuple[str, str]] = field(default_factory=list)


def outlook(user: User, datasource: Datasource) -> Outlook:
    """Raises ``NotAllowed``: it is for the team's admins."""
    require(user, Action.ADMINISTER, datasource.team)
    return Outlook(
        amount=killing.amount_of(Segment.objects.filter(datasource=datasource)),
        quarantined=QuarantinedRecord.objects.filter(datasource=datasource, state=QuarantinedRecord.State.KEPT).count(),
        readers=_readers(datasource),
    )


@transaction.atomic
def delete_datasource(*, user: User, datasource: Datasource, name: str) -> Amount:
    """Mark all its segments unused and have their files deleted, once no reader's lease holds them; how many.

    ``name``: must be the datasource's. Needs the role admin. Raises ``InvalidInput`` for another name, and ``Conflict``
    while a supervisor or a task reads into it.
    """
    require(user, Action.ADMINISTER, datasource.team)
    if name != datasource.name:
        raise InvalidInput(
            "Nothing is deleted.", [FieldError("/name", f"must be the datasource's: {datasource.name}", "name")]
        )
    # Locked: a spec that is submitted meanwhile waits, and makes it anew afterwards; or is seen here.
    known = Datasource.objects.select_for_update(of=("self",), no_key=True).select_related("team")
    locked = known.get(pk=datasource.pk)
    require(user, Action.ADMINISTER, locked.team)
    readers = _readers(locked)
    if readers:
        named = ", ".join(f"{kind} {pk}" for kind, pk in readers[:_NAMED])
        more = f" and {len(readers) - _NAMED} more" if len(readers) > _NAMED else ""
        raise Conflict(f"{named}{more} read into {locked.name}: terminate supervisors and stop tasks first.")
    if locked.deleted_at is not None:
        raise Conflict(f"The datasource {locked.name} is deleted already.")
    marking.mark_unused(locked, Chosen(), by=user.get_username(), what="the whole datasource, deleted")
    amount = killing.give_up(locked, Chosen())
    locked.deleted_at, locked.deleted_by = timezone.now(), user.get_username()
    locked.save(update_fields=["deleted_at", "deleted_by"])
    audit.record(
        user=user,
        team=locked.team,
        target="datasource",
        target_id=locked.name,
        action="delete",
        segments=amount.segments,
        rows=amount.rows,
        size_bytes=amount.size_bytes,
    )
    tell(Change(team=locked.team_id, datasource=locked.name, urgent=True))
    return amount


def _readers(datasource: Datasource) -> list[tuple[str, str]]:
    supervisors = Supervisor.objects.filter(datasource=datasource, terminated_at=None).order_by("pk")
    tasks = Task.objects.active().filter(datasource=datasource).order_by("pk")
    return [
        *(("supervisor", pk) for pk in supervisors.values_list("pk", flat=True)),
        *(("task", pk) for pk in tasks.values_list("pk", flat=True)),
    ]
