"""Tasks' applications as processes of this machine, which the files of their folders name. Nothing here is Django's.

They outlive who started them, so whoever stops a stack or a worker finds them by these files. A note beside the process
id says that it was stopped so, for whoever finds it dead later: it did not fail.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from controlplane.common.process_identity import Identity, stop_identity

STOP_TIMEOUT_S = 25
SPARES = ".spares"  # a folder of those that wait for a task; no task is called so


def host_name() -> str:
    """What this machine is called: HEADGATE_HOST_NAME, or its own name. Hosts are told apart by it."""
    return os.environ.get("HEADGATE_HOST_NAME", "").strip() or socket.gethostname()


def stop_timeout_s() -> int:
    """HEADGATE_STOP_TIMEOUT, for those who have no Django settings; these refuse what is no number."""
    with suppress(ValueError):
        return int(os.environ.get("HEADGATE_STOP_TIMEOUT", ""))
    return STOP_TIMEOUT_S


def record_process(folder: Path, pid: int) -> None:
    """Name a task's process, which this one has started."""
    record = {"pid": pid, "create_time": psutil.Process(pid).create_time(), "host": host_name()}
    (folder / "pid").write_text(json.dumps(record))


def share_process(folder: Path, application: Path) -> None:
    """Name as a task's process one that serves others, too: that of ``application``'s folder. Raises ``OSError``."""
    record = {**_read_json(application / "pid"), "shared": application.name}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pid.new").write_text(json.dumps(record))
    (folder / "pid.new").rename(folder / "pid")


def is_shared(folder: Path) -> bool:
    """Whether the process that the folder names serves others, too: nobody may signal it for this task's sake."""
    return bool(_read_json(folder / "pid").get("shared"))


def sharing_of(folder: Path) -> str:
    """Which application's process it is, by the name of that one's folder; empty if it is the task's own."""
    name = _read_json(folder / "pid").get("shared")
    return name if isinstance(name, str) else ""


def forget_process(folder: Path) -> None:
    """Before another start: what the files say of an ended one."""
    for name in ("pid", "stopped"):
        (folder / name).unlink(missing_ok=True)


def process_in(folder: Path) -> Identity | None:
    """The process that the folder names, dead or alive; None when it names none, or one of another machine."""
    record = _read_json(folder / "pid")
    return Identity.from_json(record) if record.get("host", host_name()) == host_name() else None


def was_stopped(folder: Path) -> bool:
    """Whether the process that the folder names was told to end by whoever stopped its machine or the stack."""
    stopped = Identity.from_json(_read_json(folder / "stopped"))
    return stopped is not None and stopped == Identity.from_json(_read_json(folder / "pid"))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def running_applications(tasks: Path) -> Iterator[tuple[str, Identity]]:
    """(task id, process) for every folder of a task whose process still runs on this machine.

    Of a spare that waits for a task the name is its folder's below ``tasks``.
    """
    for file in sorted([*tasks.glob("*/pid"), *tasks.glob(f"{SPARES}/*/pid")]):
        identity = None if file.parent.is_symlink() else process_in(file.parent)  # a link leads to a task's folder
        if identity is not None and identity.find():
            yield str(file.parent.relative_to(tasks)), identity


def terminate_applications(tasks: Path) -> list[tuple[str, Identity]]:
    """Tell all of them to end in order, and note it; returns them."""
    running = list(running_applications(tasks))
    for task, identity in running:
        with suppress(OSError):  # on a full disk they end all the same
            shutil.copyfile(tasks / task / "pid", tasks / task / "stopped")
        with suppress(psutil.Error):
            psutil.Process(identity.pid).send_signal(signal.SIGTERM)
    return running


def stop_applications(tasks: Path, timeout_s: float) -> list[str]:
    """Stop them, all asked at once; those that take longer are killed. The ids of their tasks."""
    deadline = time.monotonic() + timeout_s
    running = terminate_applications(tasks)
    for _, identity in running:
        stop_identity(identity, ((signal.SIGTERM, max(0.0, deadline - time.monotonic())),))
    return [task for task, _ in running]
