"""The hosts on which workers run, told apart by HEADGATE_HOST_NAME.

1. A worker holds a lease of its host's name in the metadata store, and renews it every two seconds. Another host with
   the same name is refused: its processes and logs would be taken for the first one's.
2. A host is known again by its folder of tasks, its boot and its container, so workers of one host share the lease.
3. A host whose lease is over has no worker. Its applications may still run: their heartbeats say so.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.core.cache import cache

from controlplane.common.database import clock_lead, cursor, refuse_clock
from controlplane.tasks.models import Host

logger = logging.getLogger(__name__)
MARK = ".host"  # a file in the folder of tasks, which names the folder
KEPT_DAYS = 30  # so long the logs of a host that is gone can be asked for, if it comes back
_WAIT_S = 1.0
_REFUSED, _REFUSED_S = "tasks.host.refused", 60  # of hosts that could not start an application

# The store's clock: one for all hosts. The row count says whether the name is ours.
_RENEW = """
    INSERT INTO tasks_host (name, folder, identity, seen_at) VALUES (%s, %s, %s, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET folder = EXCLUDED.folder, identity = EXCLUDED.identity, seen_at = EXCLUDED.seen_at
    WHERE tasks_host.identity = EXCLUDED.identity OR tasks_host.seen_at < clock_timestamp() - %s
"""
_ALIVE = "SELECT name FROM tasks_host WHERE seen_at >= clock_timestamp() - %s AND name <> %s"
_GONE = "SELECT name FROM tasks_host WHERE seen_at < clock_timestamp() - %s"


class NameTaken(Exception):
    """Another host has this one's name."""

    def __init__(self) -> None:
        super().__init__(
            f"Another host is called {settings.HOST_NAME!r}, and a worker runs there. Set HEADGATE_HOST_NAME to "
            "another name on one of the two, and start this worker again."
        )


def folder_mark(create: bool = False) -> str:
    """What the folder of tasks is known by on all hosts that have it; empty where it has no mark. Raises ``OSError``
    if one can't be made."""
    path = Path(settings.TASK_DIR) / MARK
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), path.open("x") as file:
            file.write(uuid.uuid4().hex)
    try:
        return path.read_text()[:64]
    except OSError:
        return ""


def renew() -> bool:
    """Hold the name for another ``TASK_HEARTBEAT_TIMEOUT``; False if it is another host's."""
    mark = folder_mark(create=True)
    lease = settings.TASK_HEARTBEAT_TIMEOUT
    with cursor() as c:
        return bool(c.execute(_RENEW, (settings.HOST_NAME, mark, f"{mark}/{_machine()}", lease)).rowcount)


def hold() -> None:
    """Like ``renew``. Raises ``NameTaken``, and ``ClocksDiffer``: by this host's clock no task may be judged."""
    refuse_clock(clock_lead())
    if not renew():
        raise NameTaken


def claim() -> None:
    """Hold the name from now on, once the lease of a worker that was killed is over. Raises as ``hold``."""
    refuse_clock(clock_lead())
    first = _seen_at()
    until = time.monotonic() + settings.TASK_HEARTBEAT_TIMEOUT.total_seconds() + 2 * _WAIT_S
    while not renew():
        if _seen_at() != first or time.monotonic() > until:
            raise NameTaken
        logger.warning("waiting for the lease of the host name %s to end", settings.HOST_NAME)
        time.sleep(_WAIT_S)
    with cursor() as c:
        c.execute("DELETE FROM tasks_host WHERE seen_at < now() - make_interval(days => %s)", (KEPT_DAYS,))


def release() -> None:
    """The worker ends: another host may take the name at once. Other workers of this one renew the lease."""
    with cursor() as c:
        c.execute(
            "UPDATE tasks_host SET seen_at = clock_timestamp() - %s WHERE name = %s AND identity = %s",
            (settings.TASK_HEARTBEAT_TIMEOUT, settings.HOST_NAME, f"{folder_mark()}/{_machine()}"),
        )


def gone() -> set[str]:
    """The names of hosts that have no worker any more."""
    with cursor() as c:
        return {name for (name,) in c.execute(_GONE, (settings.TASK_HEARTBEAT_TIMEOUT,)).fetchall()}


def another_may_start() -> bool:
    """Whether a host other than this one, which could not start an application, has a worker and could lately.

    A host with a full disk fails at once, so it would take one task after another from those that start them.
    """
    cache.set(f"{_REFUSED}.{settings.HOST_NAME}", True, timeout=_REFUSED_S)
    with cursor() as c:
        alive = c.execute(_ALIVE, (settings.TASK_HEARTBEAT_TIMEOUT, settings.HOST_NAME)).fetchall()
    return len(cache.get_many([f"{_REFUSED}.{name}" for (name,) in alive])) < len(alive)


def shares_folder(name: str) -> bool:
    """Whether this process sees the files of that host's tasks. The empty name: of a task that no host has begun."""
    if not name:
        return True
    folder = Host.objects.filter(pk=name).values_list("folder", flat=True).first()
    return folder == folder_mark() if folder else name == settings.HOST_NAME


def _seen_at() -> datetime | None:
    return Host.objects.filter(pk=settings.HOST_NAME).values_list("seen_at", flat=True).first()


def _machine() -> str:
    """Another one after each boot, and in each container: process ids mean nothing there."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""
