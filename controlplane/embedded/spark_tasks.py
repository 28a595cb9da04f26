"""Spark applications are started by the Celery worker and outlive it; the pid files of their tasks name them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

from controlplane.embedded.files import read_json
from controlplane.embedded.processes import Identity, StopSteps, stop_identity

STEPS: StopSteps = ((signal.SIGTERM, 10.0),)


def running_applications(tasks: Path) -> Iterator[tuple[str, Identity]]:
    """(task id, process) for every `<tasks>/<task id>/pid` whose process still runs."""
    for file in sorted(tasks.glob("*/pid")):
        identity = Identity.from_json(read_json(file))
        if identity is not None and identity.find():
            yield file.parent.name, identity


def stop_applications(tasks: Path) -> list[str]:
    """Stops them, all asked at once, then waits for each. The ids of their tasks."""
    found = list(running_applications(tasks))
    for _, identity in found:
        ask_to_stop(identity)
    for _, identity in found:
        stop_identity(identity, STEPS)
    return [task for task, _ in found]


def ask_to_stop(identity: Identity) -> None:
    if process := identity.find():
        process.send_signal(signal.SIGTERM)
