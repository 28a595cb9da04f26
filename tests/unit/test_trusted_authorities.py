"""TLS to the site: clients trust the authority that SSL_CERT_FILE names, and say so if they trust none."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from controlplane.operations.doctor.findings import FAIL, OK
from controlplane.operations.doctor.processes import check_web
from controlplane.tasks import heartbeat_gaps
from headgate.client.errors import ClientError
from headgate.client.session import Request, Session
from ingestion.client.errors import TaskOver, Unreachable
from ingestion.client.http import HttpClient
from ingestion.specs.messages.protocol import SettledAnswer
from tests.support.certificates import Identity, authority


class Answers(BaseHTTPRequestHandler):
    """404 to indexers, an empty document to the others."""

    def do_GET(self) -> None:
        body = b"{}"
        self.send_response(404 if self.path.startswith("/internal") else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def signer() -> Identity:
    return authority()


@pytest.fixture(scope="module")
def site(signer: Identity, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a site whose certificate the authority has signed."""
    mine = signer.signs("localhost")
    pem = tmp_path_factory.mktemp("site") / "site.pem"
    pem.write_text(mine.pem + mine.key_pem())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"https://localhost:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def trusted(signer: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "authority.pem").write_text(signer.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))


def asked_as_an_indexer(site: str) -> None:
    HttpClient(site, "/internal", "token").request("GET", "/x", None, SettledAnswer)


def asked_by_the_command(site: str) -> None:
    Session(site, "token", attempts=1).json(Request("GET", "/api/v1/tasks/"))


@pytest.mark.usefixtures("trusted")
def test_a_trusted_authority(site: str, settings: Any) -> None:
    with pytest.raises(TaskOver):  # the site's own answer
        asked_as_an_indexer(site)
    asked_by_the_command(site)
    settings.INTERNAL_URL = site
    assert heartbeat_gaps._web_answers()
    assert next(f for f in check_web() if f.applies).state == OK


def test_an_unknown_authority(site: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
        asked_as_an_indexer(site)
    with pytest.raises(ClientError, match="CERTIFICATE_VERIFY_FAILED"):
        asked_by_the_command(site)
    settings.INTERNAL_URL = site
    finding = next(f for f in check_web() if f.applies)
    assert finding.state == FAIL and "CERTIFICATE_VERIFY_FAILED" in finding.found and "SSL_CERT_FILE" in finding.advice
