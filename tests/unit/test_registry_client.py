"""The schema registry's client against servers that mean no good: row 4 of the security checklist."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ingestion.decode.errors import RegistryUnreachable
from ingestion.specs.formats.input_format import RegistryDecoder
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.task import schema_registry as client
from ingestion.task.schema_registry import ConfluentRegistry
from tests.support.certificates import Identity, authority
from tests.support.formats import HERE

GOOD = json.dumps({"schema": '"string"', "schemaType": "AVRO"}).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Answer = Callable[[socket.socket], None]


class Server:
    """Answers each connection with ``answer``, which gets the socket once the request's head has been read."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[str] = []
        self.ended = threading.Event()
        self._answer, self._tls = answer, tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            try:
                with connection if self._tls is None else self._tls.wrap_socket(connection, server_side=True) as one:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        head += one.recv(4096)
                    self.requests.append(head.decode())
                    self._answer(one)
            except OSError:
                self.ended.set()  # the client has hung up

    def close(self) -> None:
        """The thread ends, too: an accept that is under way would go on with whatever has the descriptor next."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def serving(answer: Answer | bytes, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server(answer if callable(answer) else lambda s: s.sendall(answer), tls)
    try:
        yield server
    finally:
        server.close()


def whole(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


def asked(server: Server, policy: AddressPolicy = HERE, **more: Any) -> str:
    spec = {"type": "schema_registry", "url": f"http://127.0.0.1:{server.port}/prefix/", **more}
    return ConfluentRegistry(RegistryDecoder.model_validate(spec), policy).schema(7, "AVRO").text


def test_a_good_answer() -> None:
    with serving(whole(GOOD)) as server:
        assert asked(server) == '"string"'
    assert server.requests[0].startswith("GET /prefix/schemas/ids/7 HTTP/1.1\r\n")
    assert "authorization" not in server.requests[0].lower()


@pytest.mark.parametrize(
    ("access", "header"),
    [
        (
            {"config": {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "fred:a:b"}},
            f"Authorization: Basic {b64encode(b'fred:a:b').decode()}",
        ),
        ({"config": {"bearer.auth.token": "abc"}}, "Authorization: Bearer abc"),
        ({"config": {"schema.registry.basic.auth.user.info": "a:b"}}, "Authorization: Basic YTpi"),
        ({"headers": {"X-Key": "abc def"}}, "X-Key: abc def"),
    ],
)
def test_a_login_and_headers_are_sent(access: dict[str, Any], header: str) -> None:
    with serving(whole(GOOD)) as server:
        asked(server, **access)
    assert f"{header}\r\n" in server.requests[0]


def test_row_4_no_connection_to_what_the_policy_denies() -> None:
    """Row 4 of the security checklist: no connection to what the policy denies."""
    with serving(whole(GOOD)) as server:
        with pytest.raises(RegistryUnreachable, match="is a loopback address: Headgate may not connect to it"):
            asked(server, AddressPolicy(ports=((1, 65535),)))
        assert server.requests == []


def test_row_4_rebinding_it_connects_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 4 of the security checklist: rebinding it connects to the address that was checked."""
    real, names = socket.getaddrinfo, []

    def resolver(host: str, port: int, *rest: Any, **more: Any) -> Any:
        names.append(host)
        return real("127.0.0.1" if host == "registry.example" else host, port, *rest, **more)

    with serving(whole(GOOD)) as server:
        monkeypatch.setattr(socket, "getaddrinfo", resolver)
        asked(server, url=f"http://registry.example:{server.port}")
    assert names.count("registry.example") == 1
    assert f"Host: registry.example:{server.port}\r\n" in server.requests[0]


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_row_4_no_redirect_is_followed(status: str) -> None:
    """Row 4 of the security checklist: no redirect is followed."""
    with (
        serving(whole(GOOD)) as elsewhere,
        serving(whole(GOOD, status, f"Location: http://127.0.0.1:{elsewhere.port}/x\r\n")) as server,
    ):
        with pytest.raises(RegistryUnreachable, match=f"answers with status {status[:3]}"):
            asked(server, headers={"X-Key": "secret"})
        assert elsewhere.requests == []


def test_row_4_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 4 of the security checklist: a proxy of the environment is not asked."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with serving(whole(GOOD)) as server:
        assert asked(server) == '"string"'


def drip(head: bytes, piece: bytes) -> Answer:
    """The head, and then a piece at a time for as long as the client listens."""

    def answer(one: socket.socket) -> None:
        one.sendall(head)
        while True:
            one.sendall(piece)
            threading.Event().wait(0.05)  # slower than the client would wait for the whole

    return answer


def silence(one: socket.socket) -> None:
    while one.recv(1):
        pass
    raise OSError


@pytest.mark.parametrize(
    "answer",
    [silence, drip(b"HTTP/1.1 200 OK\r\nX: ", b"x"), drip(HEAD + b"Content-Length: 99999\r\n\r\n", b" ")],
    ids=["nothing", "slow head", "slow body"],
)
def test_row_4_slow_answers_come_to_an_end(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    """Row 4 of the security checklist: slow answers come to an end."""
    monkeypatch.setattr(client, "TIMEOUT_S", 0.4)
    with serving(answer) as server:
        with pytest.raises(RegistryUnreachable, match="does not answer"):
            asked(server)
        assert server.ended.wait(30)


@pytest.mark.parametrize(
    "answer",
    [
        whole(b" " * (client.MAX_BYTES + 1)),
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"100000\r\n" + b" " * 0x100000 + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        whole(b"\x1f\x8b\x08garbage", more="Content-Encoding: gzip\r\n"),
        whole(b"[" * 100_000),
        whole(b"[]"),
        whole(b'{"error_code": "x"}', "404 Not Found"),
        b"hello\r\n\r\n",
        b"",
    ],
    ids=["huge", "blank", "long head", "many heads", "gzip", "deep", "list", "no code", "no http", "empty"],
)
def test_row_4_odd_answers_are_no_answers(answer: bytes) -> None:
    """Row 4 of the security checklist: odd answers are no answers."""
    with serving(answer) as server, pytest.raises(RegistryUnreachable, match=r"does not answer|answers with status"):
        asked(server)


@pytest.mark.parametrize("known", [True, False])
def test_the_certificate_is_for_the_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, known: bool) -> None:
    root = authority()
    (tmp_path / "root.pem").write_text((root if known else authority()).pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "root.pem"))
    with serving(whole(GOOD), _context(root.signs("localhost"), tmp_path)) as server:
        if known:
            assert asked(server, url=f"https://localhost:{server.port}") == '"string"'
        else:
            with pytest.raises(RegistryUnreachable, match="SSLCertVerificationError"):
                asked(server, url=f"https://localhost:{server.port}")


def _context(identity: Identity, folder: Path) -> ssl.SSLContext:
    pem = folder / "server.pem"
    pem.write_text(identity.key_pem() + identity.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context
