"""Choosing TCP ports on the loopback address."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterable
from pathlib import Path

from controlplane.embedded.errors import EmbeddedError
from controlplane.embedded.files import read_json, write_json

LOOPBACK = "127.0.0.1"
NEIGHBOURS = 40
# Below the ports the kernel lends to outgoing connections (32768 and up on Linux, 49152 and up on macOS): a client that
# keeps reconnecting to a stopped service could otherwise be lent that very port, and the service could not come back.
RANDOM_PORTS = range(15_000, 32_000)


def is_free(port: int) -> bool:
    """Whether a service could listen on 127.0.0.1:port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return not is_listening(port)


def is_listening(port: int) -> bool:
    """Whether something accepts connections on 127.0.0.1:port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((LOOPBACK, port)) == 0


# Ports that this process holds, each for one home, by sockets for UDP of the same numbers, which nobody here uses.
# The kernel gives each number to one process, whoever starts it, and takes it back when that ends.
_reserved: dict[int, tuple[Path, socket.socket]] = {}


def reserve_port(port: int, book: Path) -> bool:
    """Keep a port for the services of a book's home as long as this process lives; False when another home has it.

    A port that is free now is bound seconds later: until then another stack must not choose it, too.
    """
    if port in _reserved:
        return _reserved[port][0] == book
    udp_socket = _bind_udp(port)
    if udp_socket is not None:
        _reserved[port] = (book, udp_socket)
    return udp_socket is not None


def _bind_udp(port: int) -> socket.socket | None:
    """A socket for UDP of this number; None where another process holds it."""
    udp_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        udp_socket.bind((LOOPBACK, port))
    except OSError:
        udp_socket.close()
        return None
    return udp_socket


def _is_reserved_elsewhere(port: int) -> bool:
    if port in _reserved:
        return False
    udp_socket = _bind_udp(port)
    if udp_socket is not None:
        udp_socket.close()
    return udp_socket is None


def choose_port(preferred: int | None, taken: Iterable[int] = ()) -> int:
    """The preferred port, else a neighbour above it, else any free one. Ports in `taken` are passed over."""
    near = [] if preferred is None else range(preferred, preferred + NEIGHBOURS)
    anywhere = random.sample(RANDOM_PORTS, 200)
    for port in (*near, *anywhere):
        if port not in taken and is_free(port) and not _is_reserved_elsewhere(port):
            return port
    raise EmbeddedError("No free TCP port was found on 127.0.0.1.")


class PortBook:
    """Remembers in a file which port each service of one home had, so that it gets the same again.

    What was given out is held: no other home is given it as long as this process lives. The file at ``path`` is for
    others to read: it is there while the services answer at these ports.
    """

    def __init__(self, path: Path) -> None:
        self._announced_path = path.resolve()
        self._path = self._announced_path.with_suffix(".chosen.json")

    def announce(self) -> None:
        """The services answer: others may read where."""
        write_json(self._announced_path, self.all())

    def withdraw(self) -> None:
        """They do not, or no longer."""
        if self._path.exists():
            self._announced_path.unlink(missing_ok=True)
        elif self._announced_path.exists():  # of an earlier version, which had this file alone
            self._announced_path.rename(self._path)

    def assign(self, name: str, preferred: int | None = None) -> int:
        """The port the service had before if that is free, else another one, which is then remembered."""
        book = self.all()
        taken = {port for service, port in book.items() if service != name}
        while not reserve_port(port := choose_port(book.get(name, preferred), taken), self._path):
            taken.add(port)
        if book.get(name) != port:
            write_json(self._path, {**book, name: port})
        return port

    def all(self) -> dict[str, int]:
        return {name: port for name, port in read_json(self._path).items() if isinstance(port, int)}
