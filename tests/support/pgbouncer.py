"""A real PgBouncer before a PostgreSQL server: Debian's package, unpacked into the cache folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from controlplane.embedded.home import Home, default_cache
from controlplane.embedded.ports import LOOPBACK
from controlplane.embedded.processes import Child
from controlplane.embedded.service import Service
from controlplane.embedded.waiting import file_lock

_PACKAGES = ("pgbouncer", "libevent-2.1-7*", "libc-ares2*")  # Debian's names have a suffix since its 13
_LONGEST_DOWNLOAD_S = 300.0


class PgBouncer(Service):
    """``mode``: session or transaction."""

    def __init__(self, home: Home, mode: str, *, host: str, port: int, user: str, password: str) -> None:
        super().__init__(home, f"pgbouncer-{mode}")
        self.port = home.ports.assign(self.name)
        self._folder = Path(tempfile.mkdtemp(prefix="headgate-pgbouncer-"))  # its own user reads it
        self._folder.chmod(0o755)
        logins, self._configuration = self._folder / "logins", self._folder / "pgbouncer.ini"
        logins.write_text(f'"{user}" "{password}"\n')
        self._configuration.write_text(
            f"[databases]\n* = host={host} port={port}\n[pgbouncer]\nlisten_addr = {LOOPBACK}\n"
            f"listen_port = {self.port}\nauth_type = plain\nauth_file = {logins}\npool_mode = {mode}\n"
            "unix_socket_dir =\nignore_startup_parameters = options\n"
        )

    def _launch(self) -> Child:
        installed = shutil.which("pgbouncer")
        folder = None if installed else _unpacked()
        program = [installed or f"{folder}/usr/sbin/pgbouncer"]
        if os.getuid() == 0:
            program += ["-u", "nobody"]
        libraries = ":".join(map(str, folder.glob("usr/lib/*"))) if folder else ""
        return Child([*program, str(self._configuration)], self.log, environment={"LD_LIBRARY_PATH": libraries})

    def _is_ready(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self.port), 1).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self._folder)


def _unpacked() -> Path:
    folder = default_cache() / "pgbouncer"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.with_name("pgbouncer.lock"), _LONGEST_DOWNLOAD_S, None):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as made:
                subprocess.run(["apt-get", "download", "-qq", *_PACKAGES], cwd=made, check=True)
                for package in Path(made).glob("*.deb"):
                    subprocess.run(["dpkg", "-x", str(package), f"{made}/root"], check=True)
                Path(made, "root").rename(folder)
    return folder
