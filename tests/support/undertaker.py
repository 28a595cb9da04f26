"""Ends what a killed test process leaves: its stack would go on for ever, and take the processor from others.

``python -m tests.support.undertaker PID FOLDER`` waits for the end of ``PID``, then kills whatever still names
``FOLDER``, the stack's home, among its arguments or in its environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from controlplane.embedded.home import PROJECT


def watch_over(folder: Path) -> subprocess.Popen[bytes]:
    """The watch over this process; ``kill`` it when the stack has been stopped in order."""
    command = [sys.executable, "-m", "tests.support.undertaker", str(os.getpid()), str(folder)]
    return subprocess.Popen(command, cwd=PROJECT, start_new_session=True)  # what ends the tests does not end it


def left_by(folder: str) -> Iterator[psutil.Process]:
    """The processes that name the folder, but for this one."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            texts = [*process.cmdline(), *process.environ().values()]
            if process.pid != os.getpid() and any(folder in text for text in texts):
                yield process


def main(pid: int, folder: str) -> None:
    with suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait()
    for _ in range(3):  # a parent that dies may have started another one meanwhile
        for process in left_by(folder):
            with suppress(psutil.Error):
                process.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
