"""What a killed test process leaves ends after it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from controlplane.embedded.home import PROJECT
from controlplane.embedded.waiting import poll_until
from tests.support.undertaker import left_by

TESTS = """
import subprocess, sys, time
from pathlib import Path
from tests.support.undertaker import watch_over
folder = Path(sys.argv[1])
watch_over(folder)
for arguments, environment in (([str(folder / "data")], {}), ([], {"HEADGATE_HOME": str(folder)})):
    command = ["tail", "-f", "/dev/null", *arguments]
    subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
print("up", flush=True)
time.sleep(600)
"""


def two_tails(folder: Path, but: int) -> list[psutil.Process]:
    """What the stack has left but this process, once its two programs run; else nothing."""
    left = [p for p in left_by(str(folder)) if p.pid != but]
    return left if [p.name() for p in left].count("tail") == 2 else []


def test_a_stack_does_not_outlive_the_process_that_started_it(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "data").touch()
    tests = subprocess.Popen([sys.executable, "-c", TESTS, str(folder)], cwd=PROJECT, stdout=subprocess.PIPE)
    with tests:
        assert tests.stdout is not None
        assert tests.stdout.readline() == b"up\n"
        try:  # a process has its parent's name until its program is loaded
            left = poll_until(lambda: two_tails(folder, tests.pid), timeout_s=30)
        finally:
            tests.kill()
    gone, alive = psutil.wait_procs(left, timeout=30)
    assert (len(gone), alive) == (3, [])  # the watch itself, too
