"""Hosts of one installation: each has a name, services, a folder of tasks and an environment of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from controlplane.common.applications import SPARES
from controlplane.common.process_identity import Identity
from controlplane.embedded import apps
from controlplane.embedded.service import Service
from tests.support.house import House
from tests.support.waiting import PATIENCE


@dataclass
class Host:
    """Its services, and what its worker has launched."""

    name: str
    folder: Path  # of its tasks
    services: Sequence[Service]

    @property
    def worker(self) -> apps.Worker:
        return next(service for service in self.services if isinstance(service, apps.Worker))

    def start(self) -> None:
        """All services at once. Raises ``ServiceFailed``."""
        for service in self.services:
            service.start()
        for service in self.services:
            service.wait_ready()

    def tasks(self) -> Iterator[str]:
        """Those whose applications run here."""
        for folder in sorted(self.folder.glob("*")):
            if self.family(folder):
                yield folder.name

    def family(self, folder: Path) -> list[psutil.Process]:
        """The driver that a task's or a spare's folder names and all that it has started, as long as it lives."""
        with suppress(OSError, ValueError, psutil.Error):
            identity = Identity.from_json(json.loads((folder / "pid").read_text()))
            process = identity and identity.find()
            return [process, *process.children(recursive=True)] if process else []
        return []

    def kill_applications(self) -> None:
        """Also those that wait for a task."""
        for folder in [*self.folder.glob("*"), *self.folder.glob(f"{SPARES}/*")]:
            for process in self.family(folder):
                with suppress(psutil.Error):
                    process.kill()

    def kill(self) -> None:
        """The whole host, as when its power fails."""
        for service in self.services:
            service.kill()
        self.kill_applications()

    def stop(self) -> None:
        """Its services in order; its applications are killed."""
        for service in self.services:
            service.stop()
        self.kill_applications()


def new_host(house: House, name: str, *, web: bool = False, beat: bool = False, worker: bool = True) -> Host:
    """One beside the house's own processes, which runs these. Nothing is started."""
    home, folder = house.home, house.home.path / f"tasks-{name}"
    folder.mkdir(exist_ok=True)
    environment = {**house.environment, "HEADGATE_HOST_NAME": name, "HEADGATE_TASK_DIR": str(folder)}
    services: list[Service] = []
    if web:
        port = home.ports.assign(f"web-{name}")
        services.append(apps.Web(home, environment, port=port, name=f"web-{name}"))
    if worker:
        services.append(apps.Worker(home, environment, concurrency=2, name=f"worker-{name}"))
    if beat:
        services.append(apps.Beat(home, environment, name=f"beat-{name}"))
    for service in services:
        service.ready_timeout_s *= PATIENCE  # it starts while Spark does
    return Host(name, folder, services)
