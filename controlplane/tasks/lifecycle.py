"""The life of a task: what it is to do, who may speak for it, and its end. Whoever may change a task, does it here."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from controlplane.common.database import cursor
from controlplane.common.text import storable
from controlplane.publishing.models import IndexerFence
from controlplane.quarantine import replays
from controlplane.tasks import events
from controlplane.tasks.change_notifications import notify_task_changed
from controlplane.tasks.models import Goal, Status, Task

ERROR_LENGTH = 4000


def set_goal(task: Task, goal: Goal) -> bool:
    """Change what a task is to do; a PENDING one that is not to run ends here. False when it has ended."""
    unlaunched = Task.objects.filter(pk=task.pk, status=Status.PENDING, launched_at=None)
    if goal is not Goal.RUN:
        with transaction.atomic():
            if unlaunched.update(
                status=Status.FAILED, error="Stopped before it was launched.", ended_at=timezone.now(), goal=goal
            ):
                if task.kind in (Task.Kind.REPLAY, Task.Kind.REWIND):
                    replays.release_records(task.pk)
                return True
    notify_task_changed(task, urgent=True)
    return bool(Task.objects.active().filter(pk=task.pk).update(goal=goal))


def new_token(task: Task) -> str:
    """A fresh token for one launch of a task; only its hash is kept, and it ends with the task."""
    token = secrets.token_urlsafe(32)
    Task.objects.filter(pk=task.pk).update(token_hash=token_hash(token))
    return token


def token_hash(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def token_and_status(task_id: str) -> tuple[str, str]:
    """A task's token hash and status; empty for an unknown task. Asked for every message of an indexer."""
    if not storable(task_id):
        return "", ""
    with cursor() as c:
        return c.execute("SELECT token_hash, status FROM tasks_task WHERE id = %s", (task_id,)).fetchone() or ("", "")


def end_task(task: Task, *, error: str = "") -> bool:
    """Mark a task ended: FAILED when there is an error, else SUCCESS. False when it had ended."""
    active = Task.objects.active().filter(pk=task.pk)
    status = Status.FAILED if error else Status.SUCCESS
    with transaction.atomic():
        has_ended = active.update(status=status, error=error[:ERROR_LENGTH], ended_at=timezone.now())
        if has_ended and task.kind in (Task.Kind.REPLAY, Task.Kind.REWIND):
            replays.release_records(task.pk)
        if has_ended:
            events.report_quarantined(task, at_its_end=True)
        if has_ended and error:
            _note_failed_phase(task)
            events.report_failure(task, error)
        if has_ended:
            notify_task_changed(task, urgent=True)
    return bool(has_ended)


def _note_failed_phase(task: Task) -> None:
    """A batch task's message says what it is doing: of one that has failed, what it was doing then."""
    reported = Task.objects.filter(pk=task.pk, last_heartbeat_at__isnull=False).exclude(message="").first()
    if reported is not None and reported.is_batch:
        message = f"It failed while it was {reported.message[0].lower()}{reported.message[1:]}"
        Task.objects.filter(pk=task.pk).update(message=message)


def interrupt_task(task: Task, *, message: str) -> bool:
    """Its application was stopped from outside, with the stack or its machine: it has not failed. False when it had
    ended.

    A manual task, and a replay, wait to be launched anew, and go on from what is settled: nobody would submit them
    again. Others end, and the next round starts what is wanted.
    """
    with transaction.atomic():
        task.indexers.update(state="stopped", in_flight=0)
        if _requeue(task, f"{message} It continues automatically."):
            return True
        if not end_task(task):
            return False
        Task.objects.filter(pk=task.pk).update(message=f"{message} Unpublished records are read again.")
        return True


def _requeue(task: Task, message: str) -> bool:
    is_manual = not task.supervisor_id and task.kind != Task.Kind.REPAIR
    if not is_manual and task.kind != Task.Kind.REPLAY:
        return False
    cleared = dict.fromkeys(("launched_at", "started_at", "last_heartbeat_at"))
    waiting = Task.objects.active().filter(pk=task.pk, goal=Goal.RUN)
    return bool(waiting.update(status=Status.PENDING, token_hash="", message=message, **cleared))


def requeue_unstarted(heard_since: datetime, of: Q) -> int:
    """Let tasks wait again that were claimed for a launch ``TASK_HEARTBEAT_TIMEOUT`` ago by a host that did not start
    them; how many. One that comes up late has no token any more, and ends."""
    late = timezone.now() - settings.TASK_HEARTBEAT_TIMEOUT
    if heard_since > late:
        return 0
    claimed = Task.objects.filter(of, status=Status.PENDING, launched_at__lt=late, last_heartbeat_at=None)
    message = "The host that was to start it did not. It starts on another host, or on this one again."
    return claimed.update(launched_at=None, token_hash="", message=message)


def requeue_untouched(task: Task) -> bool:
    """Let a task wait again whose dead application has done nothing: no heartbeat, no epoch, nothing produced.

    What it may have sent last is of no use: its token is not valid any more, and the next one has a higher epoch.
    """
    if task.replay_mode == Task.Replay.PRODUCE or IndexerFence.objects.filter(task_id=task.pk).exists():
        return False
    untouched = Task.objects.filter(pk=task.pk, status=Status.PENDING, last_heartbeat_at=None, goal=Goal.RUN)
    message = "The application that waited for it died before it began. It starts again."
    return bool(untouched.update(launched_at=None, token_hash="", message=message))


def unclaim(task: Task, message: str = "") -> None:
    """Let a task wait again that this process has claimed for a launch, and could not hand over to anybody."""
    unstarted = Task.objects.filter(pk=task.pk, status=Status.PENDING, last_heartbeat_at=None)
    # Another host may have claimed it since, and its claim stands.
    mine = unstarted.filter(Q(launched_at=None) | Q(host=settings.HOST_NAME))
    mine.update(launched_at=None, token_hash="", message=message[:2000])


def fail_lost(heard_since: datetime) -> list[str]:
    """Mark FAILED every task whose heartbeats ended, or which never sent one; returns their ids.

    ``heard_since``: since when heartbeats could be heard without a break. Silence before that says nothing.
    """
    now = timezone.now()
    if now - heard_since < settings.TASK_HEARTBEAT_TIMEOUT:
        return []
    silent = Q(status=Status.RUNNING, last_heartbeat_at__lt=now - settings.TASK_HEARTBEAT_TIMEOUT)
    never_started = Q(status=Status.PENDING, launched_at__lt=now - settings.TASK_START_TIMEOUT)
    lost = []
    for task in Task.objects.active().filter(silent | never_started):
        if end_task(task, error=_lost_message(task, now - (task.last_heartbeat_at or task.created_at))):
            lost.append(task.pk)
    return lost


def _lost_message(task: Task, silence: timedelta) -> str:
    if task.last_heartbeat_at is None:
        return "The application never reported. Its log says why."
    if task.kind == Task.Kind.KILL:
        return (
            "The worker that ran it is gone. The next deletions remove the files that it had released. Submit it again "
            "for the rest."
        )
    return f"The application was lost: no heartbeat for {silence.total_seconds():.0f} s. {loss_note(task)}"


def loss_note(task: Task) -> str:
    """What becomes of what it had not published when it died."""
    if task.is_batch:
        return "Nothing was published; submit the task again."
    if task.kind == Task.Kind.REWIND:
        return "Nothing was changed. Its part is read again."
    return f"What it held is {'in quarantine' if task.kind == Task.Kind.REPLAY else 'delivered'} again."
