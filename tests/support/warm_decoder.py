"""A decoder's child process that is there at once: forked by a server that has loaded what a decoder needs.

``IsolatedDecoder`` starts this module, which hands its standard streams to the server and ends as the fork does.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CHILD = "tests.support.warm_decoder"
_ADDRESS = "HEADGATE_TESTS_WARM_DECODER"


@contextmanager
def warm_decoders(folder: str) -> Iterator[None]:
    """While this lasts, decoders with ``child_module=CHILD`` may be made; only one at a time."""
    import subprocess  # not at the top: each child would wait for it

    place = f"{folder}/warm"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        number = listening.fileno()
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads is not to be forked
        command = [sys.executable, "-m", CHILD, str(number)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, pass_fds=[number]) as server:
            os.environ[_ADDRESS] = place
            try:
                yield
            finally:
                del os.environ[_ADDRESS]
                server.communicate()  # at the end of its input it ends


def _serve(listening: socket.socket) -> None:
    from ingestion.decode.child_process import main
    from ingestion.task.schema_registry import ConfluentRegistry

    while listening in select.select([listening, sys.stdin], [], [])[0]:
        connection, _ = listening.accept()
        with connection:
            _, streams, _, _ = socket.recv_fds(connection, 1, 3)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    for number, stream in enumerate(streams):
                        os.dup2(stream, number)
                        os.close(stream)
                    code = main(ConfluentRegistry)
                finally:
                    os._exit(code)
            for stream in streams:
                os.close(stream)
            _, status = os.waitpid(child, 0)
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}".encode())


def _hand_over() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(os.environ[_ADDRESS])
        socket.send_fds(server, [b"+"], [0, 1, 2])
        os.close(0)
        os.close(1)
        code = int(server.recv(16) or b"1")
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _serve(socket.socket(fileno=int(sys.argv[1])))
    else:
        _hand_over()
