"""Deleting a datasource whole: its segments are lost, what was read stays read, and its name stays its team's.

The row stays with its sources, settled ranges and receipts: a spec that names it again makes it anew, and goes on where
reading had come to; no record is stored a second time.

It is deleted at once, and its segments go in small transactions: those of a large one for a minute or so, by whoever
comes next when a process dies over it. Until none is left no spec can name it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from django.db import transaction
from django.utils import timezone

from controlplane.common.changes import Change, notify_pages
from controlplane.common.database import try_advisory_lock
from controlplane.common.errors import Conflict, FieldError, InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.publishing.models import Rewind, RewindPart
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments import killing, marking
from controlplane.segments.marking import Amount
from controlplane.segments.models import Segment
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require

FIRST_RUN_S = 5.0  # while somebody waits for the answer
_MAX_NAMED = 10
_LOCK = 0x434C4541


@dataclass(frozen=True)
class DeletionPreview:
    """What deleting it would mean."""

    amount: Amount  # of its segments, in use or not
    quarantined: int = 0  # records that stay until they are purged
    # What reads into it and must end first: supervisor, rewind of a supervisor, or task; and whose id.
    readers: list[tuple[str, str]] = field(default_factory=list)


def preview_deletion(user: User, datasource: Datasource) -> DeletionPreview:
    """Raises ``NotAllowed``: it is for the team's admins."""
    require(user, Action.ADMINISTER, datasource.team)
    return DeletionPreview(
        amount=killing.amount_of(Segment.objects.filter(datasource=datasource)),
        quarantined=QuarantinedRecord.objects.filter(datasource=datasource, state=QuarantinedRecord.State.KEPT).count(),
        readers=_readers(datasource),
    )


def delete_datasource(*, user: User, datasource: Datasource, name: str) -> Amount:
    """Mark all its segments unused and have their files deleted, once no reader's lease holds them; how many.

    Of a large one some are left when this returns: see ``continue_deleting``. ``name``: must be the datasource's. Needs
    the role admin. Raises ``InvalidInput`` for another name, and ``Conflict`` while a supervisor, a rewind or a task
    reads into it.
    """
    require(user, Action.ADMINISTER, datasource.team)
    if name != datasource.name:
        raise InvalidInput(
            "Nothing was deleted.", [FieldError("/name", f"must be the datasource's name: {datasource.name}", "name")]
        )
    amount = _mark_deleted(user, datasource)
    _delete_segments(Datasource.objects.get(pk=datasource.pk), FIRST_RUN_S)
    return amount


@transaction.atomic
def _mark_deleted(user: User, datasource: Datasource) -> Amount:
    """What it had then."""
    # Locked: a spec that is submitted meanwhile waits, and is refused afterwards; or is seen here.
    rows = Datasource.objects.select_for_update(of=("self",), no_key=True).select_related("team")
    locked = rows.get(pk=datasource.pk)
    require(user, Action.ADMINISTER, locked.team)
    readers = _readers(locked)
    if readers:
        names = ", ".join(f"{kind} {pk}" for kind, pk in readers[:_MAX_NAMED])
        more = f" and {len(readers) - _MAX_NAMED} more" if len(readers) > _MAX_NAMED else ""
        raise Conflict(
            f"{names}{more} write to {locked.name}. Terminate the supervisors, cancel the rewinds and stop the tasks "
            "first."
        )
    if locked.deleted_at is not None:
        raise Conflict(f"The datasource {locked.name} is already deleted.")
    amount = killing.amount_of(Segment.objects.filter(datasource=locked, kill_began_at=None))
    locked.deleted_at, locked.deleted_by, locked.clearing = timezone.now(), user.get_username(), True
    locked.save(update_fields=["deleted_at", "deleted_by", "clearing"])
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
    notify_pages(Change(team=locked.team_id, datasource=locked.name, urgent=True))
    return amount


def continue_deleting(seconds: float) -> int:
    """Give up what is left of deleted datasources' segments, for about so long; how many datasources are done.

    One process at a time does.
    """
    until = time.monotonic() + seconds
    with try_advisory_lock(_LOCK) as won:
        waiting = Datasource.objects.filter(clearing=True).order_by("deleted_at") if won else []
        return sum(_delete_segments(datasource, until - time.monotonic()) for datasource in waiting)


def _delete_segments(datasource: Datasource, seconds: float) -> bool:
    if not Datasource.objects.filter(pk=datasource.pk, clearing=True).exists():
        return False  # somebody else has, since it was looked for
    is_finished = marking.give_up_all(
        datasource, by=datasource.deleted_by, what="the whole datasource, deleted", seconds=seconds
    )
    if is_finished:
        Datasource.objects.filter(pk=datasource.pk, clearing=True).update(clearing=False)
        notify_pages(Change(team=datasource.team_id, datasource=datasource.name))
    return is_finished


def _readers(datasource: Datasource) -> list[tuple[str, str]]:
    supervisors = Supervisor.objects.filter(datasource=datasource, terminated_at=None).order_by("pk")
    rewinds = Rewind.objects.filter(datasource=datasource, parts__state=RewindPart.State.WAITING)
    tasks = Task.objects.active().filter(datasource=datasource).order_by("pk")
    return [
        *(("supervisor", pk) for pk in supervisors.values_list("pk", flat=True)),
        *(("rewind of supervisor", pk) for pk in sorted({*rewinds.values_list("supervisor_id", flat=True)})),
        *(("task", pk) for pk in tasks.values_list("pk", flat=True)),
    ]
