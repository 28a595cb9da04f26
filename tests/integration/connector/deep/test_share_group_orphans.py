"""A process of readers whose source process is gone ends by itself, also where nothing lets its readers go."""

from __future__ import annotations

import subprocess
import sys
from multiprocessing import Pipe

import psutil
import pytest

from tests.support.house import lives
from tests.support.waiting import wait_for

SOURCE = """
import os, subprocess, sys
fd = sys.argv[1]
command = [sys.executable, "-m", "headgate.sharegroup.reader_process", str(os.getpid()), fd]
print(subprocess.Popen(command, pass_fds=[int(fd)], stdout=subprocess.DEVNULL).pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("gone", ["before it is up", "while it reads"])
def test_readers_end_after_their_source_process(gone: str) -> None:
    """The pipe stays open in this process, so a reader waits for what it is to do as one whose client hangs."""
    here, there = Pipe()
    with here, there, _source(there.fileno()) as source:
        assert source.stdout is not None
        readers = psutil.Process(int(source.stdout.readline()))
        if gone == "while it reads":
            wait_for("a thread that watches its source", lambda: readers.num_threads() > 1, 30)
        source.kill()
        assert source.wait(10)
        assert lives(readers)
        wait_for("the readers have ended", lambda: not lives(readers), 30)


def _source(descriptor: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SOURCE, str(descriptor)]
    return subprocess.Popen(command, pass_fds=[descriptor], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
