"""A driver of its own that streams from ``kafka-sharegroup`` in one query or several, and its end by SIGKILL."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from controlplane.embedded.home import PROJECT
from controlplane.embedded.spark_classes import submit_options
from tests.support.processes import command_lines
from tests.support.s3 import CREDENTIALS
from tests.support.spark_session import STREAMING, committed_rows
from tests.support.waiting import wait_for

APPLICATION = PROJECT / "tests" / "support" / "spark_share_group_app.py"


@contextmanager
def application(
    folder: Path, master: str, queries: Mapping[str, Mapping[str, str]], **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A driver that streams into Parquet until it is killed, which it is at the end.

    ``queries``: the options of each, by the name of its folder. They begin one after the other.
    """
    code = Path(shutil.make_archive(str(folder / "headgate"), "zip", PROJECT, "headgate"))
    job = {"master": master, "conf": STREAMING, "queries": queries, "folder": str(folder), "code": str(code)}
    (folder / "job.json").write_text(json.dumps(job))
    command = [sys.executable, str(APPLICATION), str(folder / "job.json")]
    env = {
        **os.environ,
        **submit_options(),
        **CREDENTIALS,
        **environment,
        "PYTHONPATH": str(PROJECT),
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / "driver.log").open("ab") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=folder, start_new_session=True)
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes], paused: Iterable[Path] = ()) -> None:
    """SIGKILL for the driver and its JVM; the source processes and the readers are to notice.

    ``paused``: files that go once it is dead, so that what is paused goes on without a driver.
    """
    if process.poll() is None:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for one, line in command_lines(family):
            if "java" in line.split(" ")[0] or one.pid == process.pid:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
        process.wait()
        for file in paused:
            file.unlink()
        wait_for("what the driver started is gone", lambda: not any(map(_runs, family)), 30)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def numbers(folder: Path) -> list[int]:
    """``n`` of each row that was committed, sorted."""
    return sorted(json.loads(row["value"])["n"] for row in committed_rows(folder / "rows"))
