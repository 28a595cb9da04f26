"""What each host does for the applications that it has launched, every two seconds. No other host can.

1. A process that is gone without a last word has failed; one that was stopped with its machine goes on later. After
   one that had waited for a task, and died before it began with it, the task is launched again: once.
2. A process whose task has ended, or was taken over by another host, is killed. Its token is of no use any more.
3. What was claimed here and never started, because its worker was killed in between, is launched anew.
4. Logs are kept within their size.
5. Applications that serve many tasks are given those that wait for one; what hangs or has died of them goes.
6. As many applications wait for tasks as the settings say (``spare_rounds``).
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from celery.signals import worker_shutting_down
from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from controlplane.common import applications
from controlplane.tasks import (
    heartbeat_gaps,
    launcher,
    lifecycle,
    residents,
    shared_applications,
    spare_rounds,
    spares,
)
from controlplane.tasks.celery_tasks import launch_on_commit
from controlplane.tasks.models import Resident, Status, Task

EXIT_GRACE = timedelta(seconds=3)  # a process that ended has said so by then
KILL_GRACE_S = 10.0  # so long one may take to end after its last word
_unowned_since: dict[str, float] = {}
_worker_ends = False
_STOPPED_TEXT = "The stack or its machine was shut down, and the task was killed before it stopped cleanly."


@worker_shutting_down.connect
def stop_launching(**_: Any) -> None:
    """Who stops this host's applications must find all of them, and other hosts may launch what waits."""
    global _worker_ends
    _worker_ends = True


def run() -> None:
    """One round."""
    launcher.record_submissions()
    since = heartbeat_gaps.heartbeats_accepted_since()
    if since is not None:
        fail_dead()
        claimed = Task.objects.filter(status=Status.PENDING, host=settings.HOST_NAME).exclude(launched_at=None)
        unstarted = [name for name in claimed.values_list("pk", flat=True) if not launcher.has_process(name)]
        lifecycle.requeue_unstarted(since, Q(pk__in=unstarted))
    residents.end_lost()
    running = [name for name, _ in applications.running_applications(settings.TASK_DIR)]
    for name in running:
        launcher.limit_log(name)
    kill_unowned(running, time.monotonic())
    shared_applications.sweep()
    if not _worker_ends:
        launcher.launch_sharing()
    spare_rounds.run(time.monotonic())


def fail_dead() -> None:
    """End what this machine's processes say is over, without waiting for the heartbeat's time."""
    quiet = timezone.now() - EXIT_GRACE
    for task in Task.objects.active().filter(launched_at__lt=quiet):
        if (task.last_heartbeat_at is None or task.last_heartbeat_at < quiet) and launcher.is_dead(task.pk):
            if launcher.was_stopped(task.pk):
                lifecycle.interrupt_task(task, message=_STOPPED_TEXT)
            elif spares.forget(launcher.folder_of(task.pk)) and lifecycle.requeue_untouched(task):
                launch_on_commit(task)
            else:
                lifecycle.end_task(task, error=_dead_message(task))
            launcher.remove_scratch(task.pk)


def _dead_message(task: Task) -> str:
    if task.last_heartbeat_at is None:
        return "The application's process ended before it reported. Its log says why."
    return f"The application's process ended without a report. {lifecycle.loss_note(task)}"


def kill_unowned(running: list[str], now: float) -> list[str]:
    """Kill those whose task is not this host's any more, after ``KILL_GRACE_S``; unknown ones are left alone.

    ``running``: ids of tasks and residents whose processes run here. ``now`` is of the monotonic clock.
    """
    rows: list[tuple[Any, ...]] = [
        *Task.objects.filter(pk__in=running).values_list("pk", "ended_at", "launched_at", "host"),
        *Resident.objects.filter(pk__in=running).values_list("pk", "ended_at", "launched_at", "host"),
    ]
    unowned = {
        name
        for name, ended_at, launched_at, host in rows
        if ended_at is not None or launched_at is None or host not in ("", settings.HOST_NAME)
    }
    for name in [name for name in _unowned_since if name not in unowned]:
        del _unowned_since[name]
    killed = [name for name in unowned if now - _unowned_since.setdefault(name, now) >= KILL_GRACE_S]
    for name in killed:
        launcher.kill(name)
    return killed
