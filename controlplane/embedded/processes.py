"""Child processes that are watched and stopped in order."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from controlplane.common.process_identity import GENTLE, Identity, StopSteps
from controlplane.embedded.waiting import poll_until

ROTATE_LOG_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Account:
    """The operating-system user a child runs as."""

    user: str
    group: str


class Child:
    """A process we started, in a session and process group of its own, its output appended to a log file."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        account: Account | None = None,
    ) -> None:
        self._log = log
        with _open_log(log) as output:
            self._log_start = output.tell()
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if environment is None else dict(environment),
                cwd=folder,
                start_new_session=True,
                **_as_account(account),
            )
        self.identity = Identity.of(self._process.pid)
        self.started_at_s = time.monotonic()
        self._owner = os.getpid()
        atexit.register(self._kill_at_exit)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number when a signal ended it."""
        return self._process.poll()

    @property
    def running(self) -> bool:
        return self.exit_code is None

    def output(self) -> str:
        """What this process has written to its log so far."""
        with self._log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", "replace")

    def send(self, number: signal.Signals) -> None:
        """A signal to the process itself; nothing happens when it has ended."""
        if self.running:
            self._process.send_signal(number)

    def stop(self, steps: StopSteps = GENTLE) -> int:
        """Each signal in turn with its grace in seconds, SIGKILL for the whole group at the end. The exit code."""
        for number, grace_s in steps:
            self.send(number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
                break
        return self.kill()

    def kill(self) -> int:
        """SIGKILL for the process and its group, what a dead leader left of it included. The exit code."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        code = self._process.wait()
        atexit.unregister(self._kill_at_exit)
        return code

    def _kill_at_exit(self) -> None:
        if os.getpid() == self._owner and self.running:
            self.kill()


def run_to_end(
    command: Sequence[str],
    log: Path,
    *,
    timeout_s: float,
    cancel: threading.Event | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    account: Account | None = None,
) -> int:
    """Runs a program that ends by itself; its exit code. It is killed when TimeoutError or Cancelled is raised."""
    child = Child(command, log, environment=environment, folder=folder, account=account)
    try:
        poll_until(lambda: not child.running, timeout_s=timeout_s, cancel=cancel)
    finally:
        code = child.kill()
    return code


def _open_log(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if path.stat().st_size > ROTATE_LOG_BYTES:
            path.replace(path.with_name(path.name + ".1"))
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")


def _as_account(account: Account | None) -> dict[str, Any]:
    return {} if account is None else {"user": account.user, "group": account.group, "extra_groups": []}
