"""What the launcher tells everybody else through `state.json`: its phase, its steps, its children."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from controlplane.common.process_identity import Identity
from controlplane.embedded.files import read_json, write_json

Phase = Literal["starting", "running", "stopping", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class ServiceState:
    """One child. `restarts` counts those after a crash; `state` is starting, running, restarting or stopped."""

    name: str
    state: str = "starting"
    process: Identity | None = None
    port: int | None = None
    restarts: int = 0
    log: str = ""

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ServiceState:
        return cls(**{**value, "process": Identity.from_json(value.get("process"))})


@dataclass(frozen=True, slots=True)
class StackState:
    """`step` is the start-up step under way, the first `steps_done` of `steps_total` are over; `error` says why not."""

    phase: Phase = "stopped"
    launcher: Identity | None = None
    step: str = ""
    steps_done: int = 0
    steps_total: int = 0
    error: str = ""
    url: str = ""
    bootstrap: str = ""
    services: tuple[ServiceState, ...] = field(default=())

    @classmethod
    def read(cls, path: Path) -> StackState:
        """The state of a stopped stack when there is no file, or one we do not understand."""
        value = read_json(path)
        try:
            services = tuple(ServiceState.from_json(entry) for entry in value.pop("services", ()))
            return cls(**{**value, "launcher": Identity.from_json(value.get("launcher")), "services": services})
        except (TypeError, ValueError, AttributeError):
            return cls()

    def write(self, path: Path) -> None:
        write_json(path, asdict(self))

    @property
    def launcher_runs(self) -> bool:
        return self.launcher is not None and self.launcher.find() is not None

    @property
    def all_run(self) -> bool:
        return self.phase == "running" and self.launcher_runs and all(is_up(service) for service in self.services)

    def orphans(self) -> list[ServiceState]:
        """Children that run, or whose process group may, while their launcher does not; the last started first."""
        return [] if self.launcher_runs else [service for service in reversed(self.services) if service.process]


def is_up(service: ServiceState) -> bool:
    return service.state == "running" and service.process is not None and service.process.find() is not None
