"""The first words that are said to a Kafka broker, on a socket: enough to tell who listens there and what it wants.

Clients say no more than that a connection was lost, whatever the reason. Here the reason is looked for, before any
password is sent.
"""

from __future__ import annotations

import socket
import ssl
import struct
from dataclasses import dataclass

API_VERSIONS, SASL_HANDSHAKE = 18, 17
UNSUPPORTED_MECHANISM, ILLEGAL_STATE = 33, 34
LONGEST_ANSWER = 256 * 1024
_CLIENT = b"headgate-test"


class NotKafka(Exception):
    """What answers is no Kafka broker that speaks like this. ``speaks``: what it seems to be."""

    def __init__(self, speaks: str) -> None:
        self.speaks = speaks
        super().__init__(speaks)


@dataclass(frozen=True)
class Handshake:
    """What a broker says to a login: its error's number, and the mechanisms that it offers."""

    error: int
    mechanisms: tuple[str, ...]


def hello(line: socket.socket) -> None:
    """Ask which requests are understood; a broker says so before any login.

    Raises ``NotKafka``, ``OSError`` (``ssl.SSLError`` among them).
    """
    _asked(line, API_VERSIONS, 0, b"")


def handshake(line: socket.socket, mechanism: str) -> Handshake:
    """Begin a login, without a name or a password. Raises as ``hello``."""
    told = _asked(line, SASL_HANDSHAKE, 1, _text(mechanism))
    error, count = struct.unpack_from(">hi", told)
    names, at = [], 6
    for _ in range(min(max(count, 0), 100)):
        (length,) = struct.unpack_from(">h", told, at)
        names.append(told[at + 2 : at + 2 + length].decode("ascii", "replace"))
        at += 2 + length
    return Handshake(error, tuple(names))


def speaks_tls(address: tuple[str, int], seconds: float) -> bool:
    """Whether a TLS server listens there; its certificate is not looked at, and nothing is said to it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(address, seconds) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return "ALERT" in str(error.reason)  # it refuses in TLS
    except OSError:
        return False


def speaks_plainly(address: tuple[str, int], seconds: float) -> bool:
    """Whether a broker without TLS listens there."""
    try:
        with socket.create_connection(address, seconds) as line:
            hello(line)
            return True
    except (OSError, NotKafka):
        return False


def _asked(line: socket.socket, key: int, version: int, body: bytes) -> bytes:
    message = struct.pack(">hhi", key, version, 1) + _text(_CLIENT.decode()) + body
    line.sendall(struct.pack(">i", len(message)) + message)
    head = _read(line, 4)
    if head[:2] == b"\x15\x03":
        raise NotKafka("TLS")
    if head == b"HTTP":
        raise NotKafka("HTTP")
    (size,) = struct.unpack(">i", head)
    if not 6 <= size <= LONGEST_ANSWER:
        raise NotKafka("something else")
    told = _read(line, size)
    if told[:4] != struct.pack(">i", 1):
        raise NotKafka("something else")
    return told[4:]


def _read(line: socket.socket, count: int) -> bytes:
    held = b""
    while len(held) < count:
        part = line.recv(count - len(held))
        if not part:
            raise ConnectionResetError("it closes the connection")
        held += part
    return held


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data
