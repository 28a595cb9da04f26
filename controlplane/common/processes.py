"""The processes of the data plane that the control plane starts and speaks to, and the environment of them all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, cast

from django.conf import settings

STOP_S = 30.0
_NAMES = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "TMPDIR",
        "TZ",
        "USER",
        "LD_LIBRARY_PATH",
        "PYSPARK_PYTHON",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
    }
)
# What Hadoop's library needs for hdfs://.
_HADOOP = frozenset({"ARROW_LIBHDFS_DIR", "CLASSPATH", "HADOOP_HOME"})
# The last four: credentials, region and endpoint of deep storage, as their vendors' tools name them.
_PREFIXES = ("LC_", "SPARK_", "JAVA_", "AWS_", "AZURE_", "GOOGLE_", "FSSPEC_")


def passed_environment() -> dict[str, str]:
    """What of this process's environment they get. The control plane's own secrets are not in it."""
    return {k: v for k, v in os.environ.items() if k in _NAMES or k in _HADOOP or k.startswith(_PREFIXES)}


def bare_environment() -> dict[str, str]:
    """The part of ``passed_environment`` for a process that needs no deep storage: it gets no credentials."""
    return {k: v for k, v in os.environ.items() if k in _NAMES or k.startswith("LC_")}


def start_module(module: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a module of the data plane; its standard input and output are pipes of text."""
    return subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=settings.BASE_DIR,
        env={**environment, "PYTHONPATH": str(settings.BASE_DIR)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def conversation(module: str) -> Iterator[tuple[IO[str], IO[str]]]:
    """Speak to a module of the data plane that needs deep storage: its input and its output. It ends afterwards."""
    process = start_module(module, passed_environment())
    stdin, stdout = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
    try:
        yield stdin, stdout
    finally:
        with suppress(BrokenPipeError):
            stdin.close()  # at the end of its input the process ends
        stdout.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def write_line(stdin: IO[str], message: str) -> None:
    """A line, unless nobody listens any more: then nothing is answered either."""
    with suppress(BrokenPipeError):
        stdin.write(message + "\n")
        stdin.flush()
