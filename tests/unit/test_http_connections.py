"""Lines to servers of the web: they end in time, by TLS too, and what breaks off is no end."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ingestion.batch import http_files
from ingestion.batch.errors import InputUnreachable
from ingestion.batch.files import InputFile
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.task.http_connections import open_http
from tests.support.certificates import authority

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"  # no length: the body ends with the line
HERE = AddressPolicy.of(["127.0.0.1/32"], [], ["1024-65535"])
GIVES_UP_S = 30.0  # the server, where the client does not
Answer = Callable[[ssl.SSLSocket], None]


@pytest.fixture
def server_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Of a server for ``localhost`` whose authority is trusted."""
    root = authority()
    (tmp_path / "root.pem").write_text(root.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "root.pem"))
    own = root.signs("localhost")
    (tmp_path / "own.pem").write_text(own.key_pem() + own.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "own.pem")
    return context


@contextmanager
def served(context: ssl.SSLContext, answer: Answer) -> Iterator[str]:
    """A server's address; it gives the answer to whoever asks."""

    def serve() -> None:
        while True:
            try:
                line, _ = listening.accept()
                with context.wrap_socket(line, server_side=True) as one:
                    while not one.recv(4096).endswith(b"\r\n\r\n"):
                        pass
                    answer(one)
            except OSError:
                if listening.fileno() < 0:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield f"https://localhost:{listening.getsockname()[1]}/x.json"


def fetched(url: str, into: Path) -> bytes:
    with into.open("w+b") as file:
        http_files.fetch(InputFile(url, 1, 0), HERE, file)
    return into.read_bytes()


@pytest.mark.parametrize("begin", [HEAD[:-2] + b"X: ", HEAD], ids=["head", "body"])
def test_what_trickles_in_over_tls_comes_to_an_end(
    server_side: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    monkeypatch.setattr(http_files, "TIMEOUT_S", 0.5)
    until = time.monotonic() + GIVES_UP_S

    def drip(one: ssl.SSLSocket) -> None:
        one.sendall(begin)
        while time.monotonic() < until:
            one.sendall(b" ")
            threading.Event().wait(0.05)

    with served(server_side, drip) as url, pytest.raises(InputUnreachable, match="it takes too long"):
        fetched(url, tmp_path / "file")
    assert time.monotonic() < until


def test_a_part_that_came_until_the_time_was_over_is_not_taken_for_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_files, "TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            line, _ = listening.accept()
            with line:
                line.sendall(HEAD + b'{"t": 1}\n')
                while line.recv(4096):  # the request; then nothing, until the client hangs up
                    pass

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(InputUnreachable, match="it takes too long"):
            fetched(f"http://127.0.0.1:{listening.getsockname()[1]}/x.json", tmp_path / "file")


@pytest.mark.parametrize("says_so", [True, False])
def test_a_line_of_tls_that_breaks_off_has_not_ended(
    server_side: ssl.SSLContext, tmp_path: Path, says_so: bool
) -> None:
    def answer(one: ssl.SSLSocket) -> None:
        one.sendall(HEAD + b'{"t": 1}\n')
        if says_so:
            one.unwrap()
        else:
            socket.socket.shutdown(one, socket.SHUT_WR)

    with served(server_side, answer) as url:
        if says_so:
            assert fetched(url, tmp_path / "file") == b'{"t": 1}\n'
        else:
            with pytest.raises(InputUnreachable, match="no whole answer came"):
                fetched(url, tmp_path / "file")


@pytest.mark.parametrize(
    ("url", "host"), [("https://localhost/x", "localhost"), ("https://localhost:8443/x", "localhost:8443")]
)
def test_the_usual_port_is_not_named(server_side: ssl.SSLContext, url: str, host: str) -> None:
    """Signed addresses are signed with their host's name as it is sent."""
    ours, theirs = socket.socketpair()
    asked: list[bytes] = []

    def answer() -> None:
        with server_side.wrap_socket(theirs, server_side=True) as one:
            asked.append(one.recv(4096))
            one.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    serving = threading.Thread(target=answer)
    serving.start()
    with open_http(ours, urlsplit(url), time.monotonic() + GIVES_UP_S) as connection:
        connection.request("GET", "/x")
        assert connection.getresponse().status == 204
    serving.join(GIVES_UP_S)
    assert f"Host: {host}\r\n".encode() in asked[0]
