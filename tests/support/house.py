"""All real services of the product in a folder of their own, on free ports, and hands to use them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx2
import psutil
import psycopg
from psycopg_pool import ConnectionPool

from controlplane.common.applications import STOP_TIMEOUT_S, running_applications, stop_applications
from controlplane.embedded import apps
from controlplane.embedded.home import PROJECT, Home
from controlplane.embedded.kafka import Kafka
from controlplane.embedded.postgres import Postgres
from controlplane.embedded.spark_classes import submit_options
from controlplane.embedded.valkey import Valkey
from tests.support import quick_kafka, undertaker
from tests.support.broker import BROKER, Broker
from tests.support.fault_proxy import FaultProxy
from tests.support.migrated import prepare
from tests.support.services import start_all, stop_all
from tests.support.waiting import PATIENCE, wait_for

T = TypeVar("T")
METRICS_TOKEN = "a-token-that-nobody-guesses"
_ACTIVE = "SELECT id, status, goal, message FROM tasks_task WHERE status IN ('PENDING', 'RUNNING')"
# Those made by another end with it.
_SUPERVISORS = (
    "SELECT id FROM supervisors_supervisor WHERE terminated_at IS NULL AND parent_id IS NULL AND fills_id IS NULL"
)
_SAID = "SELECT status, error, message, observation FROM tasks_task WHERE id = %s"


def lives(process: psutil.Process) -> bool:
    """Not so of one that has ended and that its parent has not asked for."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@dataclass(frozen=True)
class Elsewhere:
    """A service that runs already and is left alone."""

    dsn: str = ""
    bootstrap: str = ""

    def start(self) -> None: ...

    def wait_ready(self) -> None: ...

    def stop(self) -> None: ...


class House(Broker):
    """PostgreSQL, Valkey, Kafka, web, worker, beat; a proxy that can fail stands between applications and web."""

    def __init__(
        self,
        home: Home,
        broker: Mapping[str, str] = BROKER,
        bootstrap: str | None = None,
        database: str | None = None,
        with_proxy: bool = True,
        code: Path = PROJECT,
        kafka: Kafka | None = None,
    ) -> None:
        """``kafka`` runs already, and outlives the house."""
        self.home = home
        self._undertaker = undertaker.watch_over(home.path)
        self.postgres = cast(Postgres, Elsewhere(dsn=database)) if database else Postgres(self.home)
        self.valkey = Valkey(self.home)
        self._own_kafka: list[Kafka] = []
        if kafka is None:
            kafka = cast(Kafka, Elsewhere(bootstrap=bootstrap)) if bootstrap else quick_kafka.Kafka(self.home, broker)
            self._own_kafka = [kafka]
        start_all(self.postgres, self.valkey, *self._own_kafka)
        super().__init__(kafka)
        port = self.home.ports.assign("web")
        self.proxy = FaultProxy(port)
        self.failpoints = self.home.path / "failpoints.json"
        self.failpoints.write_text("{}")
        self.input = self.home.path / "input"
        self.input.mkdir()
        self.environment = {
            **apps.environment(self.home, postgres=self.postgres, valkey=self.valkey, kafka=self.kafka, web_port=port),
            "HEADGATE_INTERNAL_URL": self.proxy.url if with_proxy else apps.web_address(port),
            "HEADGATE_FAILPOINTS": str(self.failpoints),
            "HEADGATE_LOCAL_INPUT_FOLDERS": str(self.input),
            "HEADGATE_METRICS_TOKEN": METRICS_TOKEN,
            "HEADGATE_REPAIR_PERIOD": "2",
            "HEADGATE_REPAIR_MARGIN": "15",
            "HEADGATE_TASK_HEARTBEAT_TIMEOUT": "12",
            "HEADGATE_RESTART_LONGEST_DELAY": "4",
            "HEADGATE_STOP_TIMEOUT": str(int(PATIENCE * STOP_TIMEOUT_S)),
            **submit_options(),
            "PYTHONPATH": str(code),
        }
        if code == PROJECT:
            prepare(self.home, self.postgres.dsn, self.environment)
        else:
            apps.prepare_database(self.home, self.environment)
        self.web = apps.Web(self.home, self.environment, port=port)
        self.worker = apps.Worker(self.home, self.environment)
        self.beat = apps.Beat(self.home, self.environment)
        self._rests = self._stands_still = False
        start_all(self.web, self.worker, self.beat)
        self.username, self.password = apps.LOGIN_USER, apps.login_password(self.home)
        self._http = httpx2.Client(base_url=self.web.url, timeout=30.0, trust_env=False)
        answer = self._http.post("/api/v1/auth/login/", auth=(self.username, self.password)).raise_for_status()
        self._http.headers["Authorization"] = f"Bearer {answer.json()['token']}"
        # A connection costs more than a look, and tests look all the time. The store may have restarted meanwhile.
        check = ConnectionPool.check_connection
        self._store = ConnectionPool(self.postgres.dsn, min_size=0, max_size=4, timeout=10, check=check, open=True)

    @contextmanager
    def set_up_with(self, **settings: str) -> Iterator[None]:
        """The control plane's processes with other settings, for a while; nothing runs meanwhile nor afterwards."""
        before = dict(self.environment)
        self._rest_with({**before, **settings})
        self.start_again()
        try:
            yield
        finally:
            self._rest_with(before)

    def _rest_with(self, environment: dict[str, str]) -> None:
        """They start with the next test, or at once with other settings."""
        if not self._rests:
            self.rest()
            for application, _ in running_applications(self.home.tasks):  # one that serves all, or is a cluster's
                self.kill_application(application)
            stop_all(self.web, self.worker, self.beat)
        self._rests = True
        self.environment.clear()
        self.environment.update(environment)  # theirs too: they hold this very one

    def start_again(self) -> list[str]:
        """Starts those of the control plane's processes that have ended; the names of those that did not only rest."""
        ended = [app for app in (self.web, self.worker, self.beat) if not app.running]
        start_all(*ended)
        rested, self._rests = self._rests, False
        return [] if rested else [app.name for app in ended]

    @property
    def url(self) -> str:
        self.wake()
        return self.web.url

    def wake(self) -> None:
        """Start what rests between two settings, or go on after ``stand_still``."""
        self.go_on()
        if self._rests:
            self.start_again()

    def stand_still(self) -> None:
        """Web, worker and beat of a house that nobody uses would take a tenth of a processor."""
        if not self._rests and not self._stands_still:
            self._stands_still = True
            for app in (self.web, self.worker, self.beat):
                app.pause()

    def go_on(self) -> None:
        """After ``stand_still``; what rests between two settings stays so."""
        if self._stands_still:
            for app in (self.web, self.worker, self.beat):
                app.resume()
        self._stands_still = False

    def switch_web(self, web: apps.Web) -> None:
        """From now on this one is asked. The one before gets a second for what it was asked last, then it ends."""
        web.start().wait_ready()
        before, self.web = self.web, web
        self.proxy.upstream_port, self._http.base_url = web.port, web.url
        time.sleep(1)
        before.stop()

    def spread_over(self, *others: apps.Web) -> None:
        """From now on requests go to this web process and to others in turn, as a load balancer does it."""
        self.proxy.other_ports = [web.port for web in others]
        self._http.base_url = self.proxy.url

    def close(self) -> None:
        self._store.close()
        for task, _ in running_applications(self.home.tasks):  # by their files: the store may be away
            self.kill_application(task)
        for service in (self.beat, self.worker, self.web, *self._own_kafka, self.valkey, self.postgres):
            service.stop()
        self.proxy.close()
        self._undertaker.kill()
        self._undertaker.wait()

    def manage(self, *arguments: str) -> str:
        """What a command of manage.py says, run as the control plane is; fails when it does."""
        command = [sys.executable, "manage.py", *arguments]
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    # REST and SQL

    @property
    def token(self) -> str:
        """An API token of the login that tests have."""
        return str(self._http.headers["Authorization"]).removeprefix("Bearer ")

    def api(self, method: str, path: str, json: Any = None, expect: int | None = None) -> Any:
        """The answer's JSON; fails on an unexpected status (by default: any from 400)."""
        self.wake()
        response = self._http.request(method, path, json=json, headers={"X-Headgate-Team": "demo"})
        wrong = response.status_code >= 400 if expect is None else response.status_code != expect
        assert not wrong, f"{method} {path}: {response.status_code} {response.text[:2000]}"
        return response.json() if response.content else None

    def sql(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows straight from the metadata store."""
        with self._store.connection() as connection:
            return connection.execute(query, values).fetchall()

    def sql_at_once(self, value: Any, *queries: str) -> list[list[tuple[Any, ...]]]:
        """Rows of several queries with the same value, all as of one moment."""
        with psycopg.connect(self.postgres.dsn) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            return [connection.execute(query, (value,)).fetchall() for query in queries]

    # Tasks

    def supervise(self, spec: dict[str, Any]) -> str:
        """Submit a supervisor; returns its id."""
        return str(self.api("POST", "/druid/indexer/v1/supervisor", spec)["id"])

    def submit(self, spec: dict[str, Any]) -> str:
        """Submit a task; returns its id."""
        return str(self.api("POST", "/druid/indexer/v1/task", spec)["task"])

    def totals(self, datasource: str) -> dict[str, Any]:
        found: dict[str, Any] = self.api("GET", f"/api/v1/datasources/{datasource}/")["totals"]
        return found

    def status(self, task: str) -> str:
        return str(self.api("GET", f"/druid/indexer/v1/task/{task}/status")["status"]["status"])

    def ended(self, task: str, how: str = "SUCCESS", seconds: float = 90.0) -> None:
        """Wait until the task has ended, and fail unless it has so: that it died is noticed by the watch, and later."""

        def status() -> str | None:
            found = self.status(task)
            return found if found in ("SUCCESS", "FAILED") else None

        found = wait_for(f"{task} has ended", status, seconds, lambda: self.sql(_SAID, task))
        assert found == how, self.sql(_SAID, task)

    def running_task(self, datasource: str) -> str:
        """The datasource's running task, repairs and replays aside, once an indexer of it reads."""

        def reading() -> str | None:
            rows = self.sql(
                "SELECT t.id FROM tasks_task t JOIN datasources_datasource d ON d.id = t.datasource_id"
                " JOIN tasks_indexer i ON i.task_id = t.id"
                " WHERE d.name = %s AND t.kind NOT IN ('repair', 'replay')"
                " AND t.status = 'RUNNING' AND i.state = 'reading'"
                " ORDER BY t.created_at DESC",
                datasource,
            )
            return str(rows[0][0]) if rows else None

        return wait_for(f"a running task of {datasource}", reading, 90, lambda: self.logs(datasource))

    def rest(self) -> None:
        """Terminate every supervisor, stop every task, and wait until all have ended."""
        self.wake()
        for (supervisor,) in self.sql(_SUPERVISORS):
            self.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/terminate")
        for task, *_ in self.sql(_ACTIVE):
            self._http.post(f"/druid/indexer/v1/task/{task}/shutdown")  # it may have ended meanwhile
        wait_for("all tasks have ended", lambda: not self.sql(_ACTIVE), 180, lambda: self.sql(_ACTIVE))

    def let_go(self) -> None:
        """End everything as quickly as can be: nothing is waited for, and what is held is lost to its test."""
        self.wake()
        for (supervisor,) in self.sql(_SUPERVISORS):
            self.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/terminate")
        for task, *_ in self.sql(_ACTIVE):
            self._http.post(f"/druid/indexer/v1/task/{task}/shutdown")  # one that is just being launched ends by this
            self.kill_application(task)

    def indexer_pids(self, task: str) -> dict[int, int]:
        """Indexer number → process id of its Python worker, of those that run."""
        rows = self.sql(
            "SELECT number, pid FROM tasks_indexer WHERE task_id = %s AND pid > 0 AND state <> 'stopped'", task
        )
        return {number: pid for number, pid in rows if psutil.pid_exists(pid)}

    def application_pid(self, task: str) -> int | None:
        """The application's first process, if it lives; also one of a host with a folder of its own."""
        for file in self.home.path.glob(f"tasks*/{task}/pid"):
            with suppress(OSError, psutil.Error):
                known = json.loads(file.read_text())
                process = psutil.Process(known["pid"])
                if abs(process.create_time() - known["create_time"]) < 2 and lives(process):
                    return process.pid
        return None

    def kill_application(self, task: str) -> bool:
        """SIGKILL for the JVM, the driver and every Python worker of a task; False when none was left."""
        pid = self.application_pid(task)
        if pid is None:
            return False
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for process in family:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        wait_for("the killed processes are gone", lambda: not any(map(lives, family)), 20)
        return True

    def stop_applications(self) -> list[str]:
        """All of them, as whoever stops the stack does; the ids of their tasks."""
        return stop_applications(self.home.tasks, int(self.environment["HEADGATE_STOP_TIMEOUT"]))

    def fail_at(self, datasource: str, **places: str) -> None:
        """Switch failpoints on for a datasource's next applications, repairs aside; none: off.

        Its repairs go by ``<datasource>/repair``.
        """
        wanted = json.loads(self.failpoints.read_text())
        wanted[datasource] = places
        self.failpoints.write_text(json.dumps(wanted))

    def logs(self, datasource: str) -> str:
        """The newest application's last lines, for a failure's explanation."""
        rows = self.sql(
            "SELECT t.id, t.status, t.error, t.message, t.observation FROM tasks_task t"
            " JOIN datasources_datasource d ON d.id = t.datasource_id"
            " WHERE d.name = %s ORDER BY t.created_at DESC LIMIT 3",
            datasource,
        )
        out = []
        for row in rows:
            log = self.home.tasks / row[0] / "spark.log"
            tail = log.read_text(errors="replace")[-3000:] if log.exists() else "(no log)"
            out.append(f"{row}\n{tail}")
        return "\n----\n".join(out)
