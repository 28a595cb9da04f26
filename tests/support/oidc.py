"""A provider of the package oidc-provider-mock: a process of its own, which says of people what a test tells it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from django.test import Client

from controlplane.login.provider import Provider

DEADLINE_S = 30
START = "/login/by/oidc/"


@dataclass(frozen=True)
class ProviderProcess:
    """Where it is."""

    url: str

    def settings(self, **more: Any) -> Provider:
        """What Headgate is told of it."""
        return replace(Provider(issuer=self.url, client_id="headgate", secret="a secret", label="Example"), **more)

    def knows(self, sub: str, **claims: Any) -> None:
        """Say from now on this of somebody."""
        requests.put(f"{self.url}/users/{sub}", json=claims, timeout=10).raise_for_status()

    def agrees(self, address: str, sub: str) -> str:
        """What its page sends the browser back to when somebody logs in there."""
        answer = requests.post(address, data={"sub": sub}, allow_redirects=False, timeout=10)
        assert answer.status_code == 302, answer.text
        return answer.headers["Location"]


@contextmanager
def provider_process() -> Iterator[ProviderProcess]:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        _await(f"http://127.0.0.1:{port}/.well-known/openid-configuration", process)
        yield ProviderProcess(f"http://127.0.0.1:{port}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE_S)


def _await(address: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        assert process.poll() is None, "the provider has ended"
        try:
            if requests.get(address, timeout=1).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.05)
    raise AssertionError("the provider does not answer")


def local(address: str) -> str:
    """Path and query."""
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}"


def state_of(address: str) -> str:
    return parse_qs(urlsplit(address).query)["state"][0]


def log_in_by(provider: ProviderProcess, sub: str, client: Client | None = None, after: str = "") -> tuple[Client, Any]:
    """The whole way: to the provider, the login there, and back. The browser, and our last answer."""
    client = client or Client(raise_request_exception=False)
    start = client.get(START, {"next": after})
    assert start.status_code == 302, start.content
    return client, client.get(local(provider.agrees(start.headers["Location"], sub)))
