"""How many of a pattern's topics may change tasks at a time: ``stopTaskCount``.

As in Druid, where it bounds the groups of tasks that a supervisor cycles: only what has read for its ``taskDuration``
waits, and reads on meanwhile. A handoff that somebody asked for and a new spec do not.
"""

from __future__ import annotations

from django.db import connection

from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task

_LOCK = 0x5455524E


def must_wait(supervisor: Supervisor, tasks: list[Task]) -> bool:
    """Whether one whose task has read long enough is to read on, because others of its pattern change theirs.

    The supervisor's row is locked. Nobody is waited for: who finds another one deciding waits for the next.
    """
    most = getattr(supervisor.io_config, "stopTaskCount", None)
    if most is None or supervisor.parent_id is None or _is_changing(tasks):
        return False
    return not _try_lock(supervisor.parent_id) or _count_changing(supervisor) >= most


def _is_changing(tasks: list[Task]) -> bool:
    return len({t.replica_group or t.pk for t in tasks if not t.ended}) > 1


def _count_changing(supervisor: Supervisor) -> int:
    """How many of the others have more than one task, replicas counted once."""
    others = Supervisor.objects.filter(parent=supervisor.parent_id).exclude(pk=supervisor.pk).values("pk")
    active = Task.objects.active().reading().filter(supervisor_id__in=others)
    groups: dict[str, set[str]] = {}
    for pk, supervisor_id, group in active.values_list("pk", "supervisor_id", "replica_group"):
        groups.setdefault(str(supervisor_id), set()).add(group or pk)
    return sum(len(each) > 1 for each in groups.values())


def _try_lock(parent_id: str) -> bool:
    """Until the end of this transaction, so that what it starts is seen by the next who asks."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, parent_id])
        return bool(cursor.fetchone()[0])
