"""A process that has loaded all that an order takes, and waits: the one of samples, and the one of SQL.

Its standard input is a socket, on which each message brings another one: a connection for one order and its answer. For
each it forks, so that nothing is left to load; the fork takes the order, answers and ends. No order is ever read in the
process that waits, so none can leave anything behind for the next. A connection that is closed ends its fork, and the
end of standard input ends all: whoever asks may be killed, and leaves no process.

A fork that ends without an answer has its exit code written to its connection, negative for a signal, without an end of
line: an answer has one.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from ingestion.without_pandas import keep_pandas_out

Answer = Callable[[socket.socket], None]


@dataclass(frozen=True)
class _Fork:
    pid: int
    life: int  # a pipe's end that is closed when it ends
    connection: socket.socket


class ForkServer:
    """Forks for each connection that comes over ``orders``. One thread, and none of a library's own."""

    def __init__(self, orders: socket.socket, answer: Answer) -> None:
        self._orders = orders
        self._answer = answer
        self._forks: dict[int, _Fork] = {}  # by life
        self._poll = select.poll()
        self._poll.register(orders, select.POLLIN)

    def serve(self) -> None:
        """Until nobody can ask any more."""
        while self._handle_event():
            pass
        for fork in [*self._forks.values()]:
            os.kill(fork.pid, signal.SIGKILL)
            self._reap(fork)

    def _handle_event(self) -> bool:
        """One event: what is done for it may close, and open anew, the number that another one names."""
        descriptor, _ = self._poll.poll()[0]
        if descriptor == self._orders.fileno():
            return self._take()
        if descriptor in self._forks:
            self._reap(self._forks[descriptor])
        else:
            self._abandon(descriptor)
        return True

    def _take(self) -> bool:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._orders, 1, 1)
        except OSError:
            return False
        for descriptor in descriptors:
            self._fork(socket.socket(fileno=descriptor))
        return bool(message)

    def _fork(self, connection: socket.socket) -> None:
        life, ends = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(life)
            self._close_inherited()
            self._answer_connection(connection)
        os.close(ends)
        self._forks[life] = _Fork(pid, life, connection)
        self._poll.register(life, select.POLLIN)
        self._poll.register(connection, 0)  # its end alone: what comes over it is the fork's

    def _answer_connection(self, connection: socket.socket) -> NoReturn:
        code = 1
        try:
            self._answer(connection)
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

    def _close_inherited(self) -> None:
        """In a fork: leave what is the process's that waits, and what is other forks'."""
        for other in self._forks.values():
            os.close(other.life)
            other.connection.close()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, self._orders.fileno())
        os.close(nothing)

    def _abandon(self, descriptor: int) -> None:
        """Nobody waits for its answer any more."""
        self._poll.unregister(descriptor)
        for fork in self._forks.values():
            if fork.connection.fileno() == descriptor:
                os.kill(fork.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own

    def _reap(self, fork: _Fork) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])
        with suppress(KeyError):
            self._poll.unregister(fork.connection)
        self._poll.unregister(fork.life)
        del self._forks[fork.life]
        os.close(fork.life)
        if code:
            with suppress(OSError):
                fork.connection.send(str(code).encode(), socket.MSG_DONTWAIT)
        fork.connection.close()


def serve_forks(answer: Answer) -> None:
    """Wait on standard input until it ends. ``answer``: what each fork does with its connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's is for who asks; the end of the input tells
    keep_pandas_out()
    os.dup2(2, 1)
    ForkServer(socket.socket(fileno=0), answer).serve()
