"""One service under watch: when it crashes it is started again, later and later."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from controlplane.embedded.errors import EmbeddedError
from controlplane.embedded.service import Service
from controlplane.embedded.state import ServiceState

BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
STABLE_AFTER_S = 60.0


def back_off_s(crashes: int) -> float:
    """How long to wait before the next start after so many crashes in a row (one or more)."""
    return BACK_OFF_S[min(crashes, len(BACK_OFF_S)) - 1]


def log_message(message: str) -> None:
    """To the launcher's log."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {message}", flush=True)


@dataclass
class WatchedService:
    """A service and what the watch knows of it. Times are of the monotonic clock, in seconds."""

    service: Service
    port: int | None = None
    state: str = "starting"
    restarts: int = 0
    crashes_in_a_row: int = 0
    start_at_s: float | None = None
    started_at_s: float = field(default_factory=time.monotonic)

    def check(self, now_s: float) -> bool:
        """Notices a crash; starts it again when its back-off is over. True when something changed."""
        if self.start_at_s is not None:
            return now_s >= self.start_at_s and self._start_again(now_s)
        if not self.service.running:
            return self._plan_restart(f"ended with exit code {self.service.exit_code}", now_s)
        if self.crashes_in_a_row and now_s - self.started_at_s > STABLE_AFTER_S:
            self.crashes_in_a_row = 0
        return False

    def _plan_restart(self, how: str, now_s: float) -> bool:
        self.service.kill()  # what it may have left of its process group
        self.crashes_in_a_row += 1
        pause_s = back_off_s(self.crashes_in_a_row)
        self.state, self.start_at_s = "restarting", now_s + pause_s
        log_message(f"{self.service.name} {how}; starting it again in {pause_s:g} s")
        return True

    def _start_again(self, now_s: float) -> bool:
        self.restarts += 1
        self.started_at_s, self.start_at_s = now_s, None
        try:
            self.service.start()
        except EmbeddedError as error:
            return self._plan_restart(f"could not be started: {error}", now_s)
        self.state = "running"
        return True

    def stop(self) -> None:
        self.service.stop()
        self.state, self.start_at_s = "stopped", None

    def describe(self) -> ServiceState:
        service = self.service
        process = service.identity if service.running else None
        return ServiceState(service.name, self.state, process, self.port, self.restarts, str(service.log))
