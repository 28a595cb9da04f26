"""The whole stack as seen from outside: start a detached launcher, find it, stop it, clear up after a dead one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from controlplane.common.applications import stop_applications, stop_timeout_s
from controlplane.common.process_identity import GENTLE, stop_identity
from controlplane.embedded import apps
from controlplane.embedded.errors import EmbeddedError, HomeRefused, ServiceFailed
from controlplane.embedded.files import try_lock
from controlplane.embedded.home import PROJECT, Home
from controlplane.embedded.kafka import Kafka
from controlplane.embedded.postgres import Postgres
from controlplane.embedded.service import Service
from controlplane.embedded.state import ServiceState, StackState
from controlplane.embedded.waiting import poll_until

UP_TIMEOUT_S = 1200.0  # the first start downloads Kafka
DOWN_TIMEOUT_S = 120.0  # beside what applications may take
JOBS = ("worker", "beat")
SERVICES: dict[str, type[Service]] = {
    "postgres": Postgres,
    "kafka": Kafka,
    "web": apps.Web,
    "worker": apps.Worker,
    "beat": apps.Beat,
}

OnState = Callable[[StackState], None]


class Stack:
    """Commands for the stack of one home. They may be given by any process, at any time."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._log = home.log("launcher")

    def state(self) -> StackState:
        return StackState.read(self.home.state_file)

    def up(self, on_state: OnState = lambda _: None) -> bool:
        """Returns when every service runs: True when this call started them, False when they ran already.

        `on_state` is told every change meanwhile. Raises HomeRefused, ServiceFailed. When this process is
        interrupted, what it started is stopped.
        """
        self.home.create()
        with (self.home.path / "up.lock").open("a") as lock:
            _wait_for_other_commands(lock)
            if self.state().launcher_runs and self.state().phase == "stopping":
                self._wait_for_end()
            if self.state().launcher_runs:
                self._follow(on_state, lambda: self.state().launcher_runs)
                return False
            self._clear_orphans()
            self._start_launcher(on_state)
            return True

    def _start_launcher(self, on_state: OnState) -> None:
        StackState(phase="starting").write(self.home.state_file)
        launcher = _detached_launcher(self.home, self._log)
        try:
            self._follow(on_state, lambda: launcher.poll() is None)
        except BaseException:
            with suppress(OSError):
                launcher.terminate()
            with suppress(subprocess.TimeoutExpired):
                launcher.wait(DOWN_TIMEOUT_S + stop_timeout_s())
            raise

    def _follow(self, on_state: OnState, alive: Callable[[], bool]) -> None:
        """Until the launcher says that all run. Raises EmbeddedError with its reason when they do not."""

        def finished() -> bool:
            still_there = alive()  # asked first: what it wrote before it ended counts
            on_state(self.state())
            return self.state().phase in ("running", "failed") or not still_there

        try:
            poll_until(finished, timeout_s=UP_TIMEOUT_S)
        except TimeoutError:
            raise ServiceFailed("The launcher", f"was not ready after {UP_TIMEOUT_S:g} s", self._log) from None
        state = self.state()
        if state.phase == "failed":
            raise EmbeddedError(state.error)
        if state.phase != "running":
            raise ServiceFailed("The launcher", "ended before all services ran", self._log)

    def down(self) -> bool:
        """Stops everything, Spark applications included. True when something ran."""
        launcher = self.state().launcher
        ran = launcher is not None and launcher.find() is not None
        if ran and launcher is not None and (process := launcher.find()):
            process.send_signal(signal.SIGTERM)
            self._wait_for_end()
        return self._clear_orphans() or ran

    def _wait_for_end(self) -> None:
        """Until the launcher has ended; after a long time it is killed."""
        launcher = self.state().launcher
        with suppress(TimeoutError):
            poll_until(lambda: not self.state().launcher_runs, timeout_s=DOWN_TIMEOUT_S + stop_timeout_s())
        if launcher is not None and launcher.find():
            stop_identity(launcher, ())

    def _clear_orphans(self) -> bool:
        """Stops what a launcher that was killed has left behind. True when there was something."""
        orphans = self.state().orphans()
        stopped = [_stop_orphan(orphan) for orphan in orphans if orphan.name in JOBS]
        stopped.append(bool(stop_applications(self.home.tasks, stop_timeout_s())))
        stopped += [_stop_orphan(orphan) for orphan in orphans if orphan.name not in JOBS]
        if orphans:
            StackState().write(self.home.state_file)
        return any(stopped)

    def clean(self) -> None:
        """Stops everything and deletes the home, downloads aside. Raises HomeRefused when it is not ours."""
        if self.home.path.exists() and not self.home.is_ours:
            raise HomeRefused(f"{self.home.path} was not made by Headgate; nothing was deleted.")
        self.down()
        self.home.remove()


def _wait_for_other_commands(lock: IO[str]) -> None:
    try:
        poll_until(lambda: try_lock(lock), timeout_s=UP_TIMEOUT_S)
    except TimeoutError:
        raise EmbeddedError("Another command is still starting the stack; try again later.") from None


def _detached_launcher(home: Home, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "controlplane.embedded", "--home", str(home.path), "run"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"}
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _stop_orphan(orphan: ServiceState) -> bool:
    if orphan.process is None:
        return False
    kind = SERVICES.get(orphan.name)
    return stop_identity(orphan.process, kind.stop_steps if kind else GENTLE)
