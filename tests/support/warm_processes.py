"""Processes of the data plane that start at once: forked by a server that has loaded what their modules need.

The control plane starts one for each order. Most of its processor time goes into loading libraries. A fork is a process
of its own, with the streams, environment, limits and death of one that was started with ``python -m``. That they start
so, too, is shown by the tests with the fixture ``cold_processes`` and by the lanes with a real stack.
"""

from __future__ import annotations

import importlib
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn

from tests.support import warm_start

if TYPE_CHECKING:
    import pytest  # the server does not need it

# The modules of the control plane that start processes.
_STARTERS = ("controlplane.common.processes", "controlplane.tasks.checking")


@contextmanager
def warm_processes(folder: Path) -> Iterator[str]:
    """While this lasts there is such a server. Gives what to start instead of ``sys.executable``."""
    place, start = folder / "warm", folder / "python"
    start.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {warm_start.__file__} {place} "$@"\n')
    start.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        command = [sys.executable, "-m", __name__, str(listening.fileno())]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads is not to be forked
        files = [listening.fileno()]
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, pass_fds=files) as server:
            try:
                yield str(start)
            finally:
                server.communicate()  # at the end of its input it ends


def start_warm(patch: pytest.MonkeyPatch, python: str) -> None:
    """The control plane starts its processes with this."""
    for module in _STARTERS:
        patch.setattr(f"{module}.sys", SimpleNamespace(executable=python))


def start_cold(patch: pytest.MonkeyPatch) -> None:
    """The control plane starts its processes as it does everywhere else."""
    start_warm(patch, sys.executable)


def _serve(listening: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks that keep watch
    while listening in select.select([listening, sys.stdin], [], [])[0]:
        connection, _ = listening.accept()
        with connection:
            order, streams, _, _ = socket.recv_fds(connection, warm_start.PIECE, 3)
            module, folder, *variables = order.decode().split("\0")
            _load(module)
            if os.fork() == 0:
                listening.close()
                _keep_watch(connection, streams, module, folder, variables)
            for stream in streams:
                os.close(stream)


def _load(module: str) -> None:
    """All that it imports; the module itself is run by the fork."""
    importlib.import_module(module)
    del sys.modules[module]


def _keep_watch(
    connection: socket.socket, streams: list[int], module: str, folder: str, variables: list[str]
) -> NoReturn:
    """Fork once more, tell how that ended, and kill it when who asked was killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    life, ends = os.pipe()
    child = os.fork()
    if child == 0:
        connection.close()
        os.close(life)
        _run(streams, module, folder, variables)
    for descriptor in (ends, *streams):
        os.close(descriptor)
    if life not in select.select([connection.fileno(), life], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with suppress(OSError):
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}".encode())
    os._exit(0)


def _run(streams: list[int], module: str, folder: str, variables: list[str]) -> NoReturn:
    """The module, as ``python -m`` runs it."""
    code: object = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update({name: value for name, _, value in (variable.partition("=") for variable in variables)})
        os.chdir(folder)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(BrokenPipeError):
            sys.stdout.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
