"""Headgate's own processes: database migrations, web, Celery worker and beat, and the environment they get."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path

import httpx2

from controlplane.common.process_identity import StopSteps
from controlplane.embedded.errors import ServiceFailed
from controlplane.embedded.home import PROJECT, Home
from controlplane.embedded.kafka import Kafka
from controlplane.embedded.ports import LOOPBACK
from controlplane.embedded.postgres import Postgres
from controlplane.embedded.processes import Child, run_to_end
from controlplane.embedded.service import Service
from controlplane.embedded.valkey import Valkey

LOGIN_USER = "admin"
LOGIN_TEAM = "demo"
MANAGE_TIMEOUT_S = 180.0
MANAGE = (sys.executable, "-m", "django")  # what manage.py does, which the wheel does not have

Environment = Mapping[str, str]


def web_address(port: int) -> str:
    return f"http://{LOOPBACK}:{port}"


def environment(
    home: Home, *, postgres: Postgres, valkey: Valkey, kafka: Kafka | None = None, web_port: int
) -> dict[str, str]:
    """What the settings of web, worker, beat and the management commands read. It holds secrets."""
    settings = {
        "DJANGO_SETTINGS_MODULE": "controlplane.config.settings",
        "DATABASE_URL": postgres.dsn,
        "HEADGATE_REDIS_URL": valkey.url,
        "HEADGATE_SECRET_KEY": home.secret("secret_key"),
        "HEADGATE_DEEP_STORAGE": str(home.segments),
        "HEADGATE_TASK_DIR": str(home.tasks),
        "HEADGATE_INTERNAL_URL": web_address(web_port),
        "HEADGATE_ALLOWED_HOSTS": "127.0.0.1,localhost",
        "HEADGATE_DEFAULT_BOOTSTRAP": kafka.bootstrap if kafka else "",
        "HEADGATE_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",  # Kafka is there
        "HEADGATE_DEBUG": "0",
        "HEADGATE_INSECURE_COOKIES": "1",  # plain HTTP on the loopback address
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT),
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    # What would win over these settings, and another Spark's folders, are not handed down.
    hidden = {"SPARK_HOME", "SPARK_CONF_DIR", *(f"{name}_FILE" for name in settings)}
    return {**{name: value for name, value in os.environ.items() if name not in hidden}, **settings}


def _code(env: Environment) -> Path:
    """Where the code is that a process runs: Python looks in its folder first, then in PYTHONPATH."""
    return Path(env["PYTHONPATH"])


def login_password(home: Home) -> str:
    return home.secret("login_password")


def prepare_database(home: Home, env: Environment, cancel: threading.Event | None = None) -> None:
    """Brings the tables up to date, then makes the user `admin` of the team `demo`, with the password of this home.

    One process for both: to start is most of what it does. Raises ServiceFailed, Cancelled.
    """
    with_password = {**env, "HEADGATE_LOGIN_PASSWORD": login_password(home)}
    login = ["--username", LOGIN_USER, "--team", LOGIN_TEAM, "--superuser"]
    _manage(home, with_password, cancel, "ensure_login", "--migrate", *login)


def _manage(home: Home, env: Environment, cancel: threading.Event | None, *arguments: str) -> None:
    log, command, folder = home.log("migrate"), [*MANAGE, *arguments], _code(env)
    try:
        code = run_to_end(command, log, timeout_s=MANAGE_TIMEOUT_S, cancel=cancel, environment=env, folder=folder)
    except TimeoutError:
        raise ServiceFailed(f"manage.py {arguments[0]}", f"took more than {MANAGE_TIMEOUT_S:g} s", log) from None
    if code != 0:
        raise ServiceFailed(f"manage.py {arguments[0]}", f"ended with exit code {code}", log)


def manage(home: Home, ports: Mapping[str, int], arguments: list[str]) -> int:
    """Run a command of manage.py on the stack whose services have these ports; its exit code. It has the terminal."""
    env = environment(
        home,
        postgres=Postgres(home, port=ports["postgres"]),
        valkey=Valkey(home, port=ports["valkey"]),
        kafka=Kafka(home, port=ports["kafka"]),
        web_port=ports["web"],
    )
    return subprocess.run([*MANAGE, *arguments], env=env, cwd=PROJECT, check=False).returncode


class Web(Service):
    """Django on uvicorn."""

    stop_steps: StopSteps = ((signal.SIGTERM, 8.0),)

    def __init__(self, home: Home | Path | str, env: Environment, *, port: int, name: str = "web") -> None:
        super().__init__(home, name)
        self.port = port
        self._environment = env
        # One: to make it takes as long as twenty questions. It closes connections: who closes first keeps the port.
        self._http = httpx2.Client(timeout=5.0, trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0))

    @property
    def url(self) -> str:
        return web_address(self.port)

    def _launch(self) -> Child:
        command = [sys.executable, "-m", "uvicorn", "controlplane.config.asgi:application"]
        command += ["--host", LOOPBACK, "--port", str(self.port), "--timeout-graceful-shutdown", "3"]
        command += ["--no-access-log", "--no-proxy-headers"]
        return Child(command, self.log, environment=self._environment, folder=_code(self._environment))

    def _is_ready(self) -> bool:
        try:
            return self._http.get(f"{self.url}/healthz").status_code == 200
        except httpx2.HTTPError:
            return False


class Celery(Service):
    """A Celery process, ready when its log says the given words."""

    ready_words: str

    def __init__(self, home: Home | Path | str, env: Environment, *, name: str) -> None:
        super().__init__(home, name)
        self._environment = env

    @abstractmethod
    def _arguments(self) -> list[str]:
        """What follows `celery -A …` on the command line."""

    def _launch(self) -> Child:
        command = [sys.executable, "-m", "celery", "-A", "controlplane.config", *self._arguments()]
        return Child(command, self.log, environment=self._environment, folder=_code(self._environment))

    def _is_ready(self) -> bool:
        return self._child is not None and self.ready_words in self._child.output()


class Worker(Celery):
    """Runs background jobs; starts Spark applications, which outlive it."""

    # SIGTERM lets running jobs end, SIGQUIT hands them back to the queue.
    stop_steps: StopSteps = ((signal.SIGTERM, 10.0), (signal.SIGQUIT, 5.0))
    ready_words = " ready"

    def __init__(
        self, home: Home | Path | str, env: Environment, *, concurrency: int = 3, name: str = "worker"
    ) -> None:
        super().__init__(home, env, name=name)
        self._concurrency = concurrency

    def _arguments(self) -> list[str]:
        pool = ["worker", "--pool", "prefork", "--concurrency", str(self._concurrency), "-l", "info"]
        host = self._environment.get("HEADGATE_HOST_NAME") or "%h"
        return [*pool, "-n", f"{self.name}@{host}", "--without-gossip", "--without-mingle", "--without-heartbeat"]


class Beat(Celery):
    """Starts the periodic jobs. One per stack."""

    ready_words = "beat: Starting"

    def __init__(self, home: Home | Path | str, env: Environment, *, name: str = "beat") -> None:
        super().__init__(home, env, name=name)

    def _arguments(self) -> list[str]:
        folder = self.home.path / self.name
        folder.mkdir(exist_ok=True, mode=0o700)
        return ["beat", "-l", "info", "-s", str(folder / "schedule"), "--pidfile="]
