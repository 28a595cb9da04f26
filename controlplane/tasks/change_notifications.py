"""What open pages are told of tasks: little, however often they report."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from controlplane.common.changes import Change, notify_pages
from controlplane.tasks.models import Task
from ingestion.specs.messages.protocol import IndexerStatus

_MAX_KNOWN = 10_000
_last_sent: OrderedDict[str, tuple[object, object]] = OrderedDict()  # by task: what was told of its indexers last


def notify_task_changed(task: Task, *, urgent: bool = False) -> None:
    """Something of it has changed, and so of its supervisor and datasource."""
    datasource = task.datasource
    notify_pages(
        Change(
            team=datasource.team_id,
            datasource=datasource.name,
            supervisor=task.supervisor_id,
            task=task.pk,
            urgent=urgent,
        )
    )


def notify_indexers_changed(task: Task, indexers: Sequence[IndexerStatus]) -> None:
    """Only if they are not as they were: they report each second, and most have nothing new to say."""
    states = tuple((i.number, i.state, i.restarts, i.message) for i in indexers)
    current = states, tuple(i.in_flight for i in indexers)
    previous = _last_sent.get(task.pk)
    if previous == current:
        return
    _last_sent[task.pk] = current
    _last_sent.move_to_end(task.pk)
    while len(_last_sent) > _MAX_KNOWN:
        _last_sent.popitem(last=False)
    notify_task_changed(task, urgent=previous is None or previous[0] != states)
