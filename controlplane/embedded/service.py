"""What every part of the stack can do: start, say when it is ready, stop, be killed, come back with its data."""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from controlplane.common.process_identity import GENTLE, Identity, StopSteps
from controlplane.embedded.errors import ServiceFailed
from controlplane.embedded.home import Home
from controlplane.embedded.processes import Child
from controlplane.embedded.waiting import poll_until


class Service(ABC):
    """One child process with a log file. Not thread-safe.

    As a context manager it starts, waits until it is ready, and stops at the end.
    """

    stop_steps: StopSteps = GENTLE
    ready_timeout_s: float = 120.0

    def __init__(self, home: Home | Path | str, name: str) -> None:
        self.home = home if isinstance(home, Home) else Home(home)
        self.home.create()
        self.name = name
        self.log = self.home.log(name)
        self._child: Child | None = None

    @abstractmethod
    def _launch(self) -> Child:
        """Prepares what is missing (data folder, configuration) and starts the process."""

    @abstractmethod
    def _is_ready(self) -> bool:
        """Asked repeatedly, must not block for more than a second or two."""

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    @property
    def exit_code(self) -> int | None:
        """None before the first start and while it runs."""
        return None if self._child is None else self._child.exit_code

    @property
    def identity(self) -> Identity | None:
        return None if self._child is None else self._child.identity

    @property
    def pid(self) -> int:
        """Raises ServiceFailed when it was never started."""
        if self._child is None:
            raise ServiceFailed(self.name, "was not started", self.log)
        return self._child.pid

    def start(self) -> Self:
        """Starts the process unless it runs already. Raises ServiceFailed."""
        if not self.running:
            if self._child is not None:
                self._child.kill()  # what a crashed one may have left of its process group
            try:
                self._child = self._launch()
            except OSError as error:
                raise ServiceFailed(self.name, f"could not be started: {error}", self.log) from error
        return self

    def wait_ready(self, timeout_s: float | None = None, cancel: threading.Event | None = None) -> Self:
        """Returns when it answers. Raises ServiceFailed when it ends or the time is over, Cancelled."""
        limit_s = self.ready_timeout_s if timeout_s is None else timeout_s
        try:
            poll_until(self._ready_or_dead, timeout_s=limit_s, cancel=cancel)
        except TimeoutError:
            raise ServiceFailed(self.name, f"did not answer within {limit_s:g} seconds", self.log) from None
        if not self.running:
            raise ServiceFailed(self.name, f"ended with exit code {self.exit_code} while starting", self.log)
        return self

    def _ready_or_dead(self) -> bool:
        return not self.running or self._is_ready()

    def stop(self) -> None:
        """The service's own orderly stop; SIGKILL when it takes too long."""
        if self._child is not None:
            self._child.send(signal.SIGCONT)
            self._child.stop(self.stop_steps)

    def kill(self) -> None:
        """SIGKILL for it and its process group, as a crash would."""
        if self._child is not None:
            self._child.kill()

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        if self._child is not None:
            self._child.send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        if self._child is not None:
            self._child.send(signal.SIGCONT)

    def restart(self) -> Self:
        """Stops it if it runs, starts it with the same port and data, and waits until it is ready."""
        self.stop()
        return self.start().wait_ready()

    def __enter__(self) -> Self:
        try:
            return self.start().wait_ready()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
