"""What open pages are told of tasks: little, however often they report."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from controlplane.common.changes import Change, tell
from controlplane.tasks.models import Task
from ingestion.specs.messages.protocol import IndexerStatus

_KNOWN = 10_000
_told: OrderedDict[str, tuple[object, object]] = OrderedDict()  # by task: what was told of its indexers last


def notify_task_changed(task: Task, *, urgent: bool = False) -> None:
    """Something of it has changed, and so of its supervisor and datasource."""
    of = task.datasource
    tell(Change(team=of.team_id, datasource=of.name, supervisor=task.supervisor_id, task=task.pk, urgent=urgent))


def notify_indexers_changed(task: Task, indexers: Sequence[IndexerStatus]) -> None:
    """Only if they are not as they were: they report each second, and most have nothing new to say."""
    states = tuple((i.number, i.state, i.restarts, i.message) for i in indexers)
    now = states, tuple(i.in_flight for i in indexers)
    before = _told.get(task.pk)
    if before == now:
        return
    _told[task.pk] = now
    _told.move_to_end(task.pk)
    while len(_told) > _KNOWN:
        _told.popitem(last=False)
    notify_task_changed(task, urgent=before is None or before[0] != states)
