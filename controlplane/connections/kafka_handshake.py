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
_FINALIZED_FEATURES = 2  # the number of their tag in the answer
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


def hello(sock: socket.socket) -> None:
    """Ask which requests are understood; a broker says so before any login.

    Raises ``NotKafka``, ``OSError`` (``ssl.SSLError`` among them).
    """
    _request(sock, API_VERSIONS, 0, b"")


def features(sock: socket.socket) -> dict[str, int]:
    """The cluster's finalized features with their levels, such as ``share.version``; a broker says so before any login.

    Empty of brokers before Kafka 2.4, which know no such question. Raises as ``hello``.
    """
    name = bytes([len(_CLIENT) + 1]) + _CLIENT
    answer = _request(sock, API_VERSIONS, 3, b"\0" + name + b"\x021\0")
    if struct.unpack_from(">h", answer) != (0,):
        return {}
    reader = _Compact(answer, 2)
    for _ in range(reader.number() - 1):
        reader.offset += 6
        reader.skip_tags()
    reader.offset += 4
    found: dict[str, int] = {}
    for _ in range(reader.number()):
        tag, size = reader.number(), reader.number()
        end = reader.offset + size
        if tag == _FINALIZED_FEATURES:
            for _ in range(reader.number() - 1):
                feature = reader.text()
                (found[feature],) = struct.unpack_from(">h", answer, reader.offset)
                reader.offset += 4
                reader.skip_tags()
        reader.offset = end
    return found


@dataclass
class _Compact:
    """Kafka's compact encoding, read from an offset on."""

    data: bytes
    offset: int

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.offset]
            self.offset += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self) -> str:
        size = self.number() - 1
        self.offset += size
        return self.data[self.offset - size : self.offset].decode("utf-8", "replace")

    def skip_tags(self) -> None:
        for _ in range(self.number()):
            self.number()
            self.offset += self.number()


def handshake(sock: socket.socket, mechanism: str) -> Handshake:
    """Begin a login, without a name or a password. Raises as ``hello``."""
    answer = _request(sock, SASL_HANDSHAKE, 1, _encode_text(mechanism))
    error, count = struct.unpack_from(">hi", answer)
    names, offset = [], 6
    for _ in range(min(max(count, 0), 100)):
        (length,) = struct.unpack_from(">h", answer, offset)
        names.append(answer[offset + 2 : offset + 2 + length].decode("ascii", "replace"))
        offset += 2 + length
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
        with socket.create_connection(address, seconds) as sock:
            hello(sock)
            return True
    except (OSError, NotKafka):
        return False


def _request(sock: socket.socket, key: int, version: int, body: bytes) -> bytes:
    message = struct.pack(">hhi", key, version, 1) + _encode_text(_CLIENT.decode()) + body
    sock.sendall(struct.pack(">i", len(message)) + message)
    head = _read_exactly(sock, 4)
    if head[:2] == b"\x15\x03":
        raise NotKafka("TLS")
    if head == b"HTTP":
        raise NotKafka("HTTP")
    (size,) = struct.unpack(">i", head)
    if not 6 <= size <= LONGEST_ANSWER:
        raise NotKafka("something else")
    answer = _read_exactly(sock, size)
    if answer[:4] != struct.pack(">i", 1):
        raise NotKafka("something else")
    return answer[4:]


def _read_exactly(sock: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = sock.recv(count - len(received))
        if not part:
            raise ConnectionResetError("it closes the connection")
        received += part
    return received


def _encode_text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data
