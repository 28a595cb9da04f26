"""A real S3 server on a loopback port, for tests: moto in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from controlplane.embedded.ports import LOOPBACK, choose_port

BUCKET = "headgate-test"
START_S = 60.0
# Any will do while the server does not check them.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIATESTTESTTEST", "AWS_SECRET_ACCESS_KEY": "a-canary-secret-of-the-tests"}


@dataclass(frozen=True)
class S3Server:
    """Holds one empty bucket, ``BUCKET``."""

    process: subprocess.Popen[bytes]
    endpoint: str
    log: Path

    @property
    def address(self) -> str:
        """``host:port``."""
        return self.endpoint.removeprefix("http://")

    def location(self, folder: str = "", bucket: str = BUCKET) -> str:
        """The deep storage in a folder of a bucket here."""
        return f"s3://{bucket}/{folder}?endpoint_override={self.endpoint}&region=us-east-1"

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """A request that needs no signature as long as the server does not check."""
        request = urllib.request.Request(self.endpoint + path, body, {"Content-Type": "text/plain"}, method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            return bytes(response.read())

    def check_credentials(self, wanted: bool) -> None:
        """From now on refuse those that are not known: all."""
        self.ask("POST", "/moto-api/reset-auth", b"0" if wanted else b"1000000000")

    @contextmanager
    def silent(self) -> Iterator[None]:
        """It takes connections and says nothing."""
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)


@contextmanager
def s3_server(folder: Path, port: int | None = None) -> Iterator[S3Server]:
    """The server while it runs."""
    port = choose_port(port)
    log = folder / "s3.log"
    environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "1000000000"}
    command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    server = S3Server(process, f"http://{LOOPBACK}:{port}", log)
    try:
        _await(server)
        server.ask("PUT", f"/{BUCKET}")
        yield server
    finally:
        if psutil.pid_exists(process.pid):
            process.kill()
        process.wait()


def _await(server: S3Server) -> None:
    end = time.monotonic() + START_S
    while True:
        try:
            server.ask("GET", "/moto-api/data.json")
            return
        except OSError:
            if time.monotonic() > end or server.process.poll() is not None:
                raise AssertionError(f"the S3 server did not start: {server.log.read_text()}") from None
            time.sleep(0.05)
