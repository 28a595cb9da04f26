"""The process that owns every child of a stack: starts them in order, restarts what crashes, stops all in reverse."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

from controlplane.common.applications import stop_applications, stop_timeout_s
from controlplane.common.process_identity import Identity
from controlplane.embedded import apps
from controlplane.embedded.errors import Cancelled
from controlplane.embedded.files import try_lock
from controlplane.embedded.home import Home
from controlplane.embedded.kafka import Kafka
from controlplane.embedded.kafka_jars import kafka_jars
from controlplane.embedded.postgres import Postgres
from controlplane.embedded.service import Service
from controlplane.embedded.spark_classes import prepare_classes, submit_options
from controlplane.embedded.state import StackState
from controlplane.embedded.valkey import Valkey
from controlplane.embedded.watched_service import WatchedService, log_message

PREFERRED_PORTS = {"web": 8000, "postgres": 5433, "valkey": 6380, "kafka": 9092, "kafka_controller": 9093}
WATCH_INTERVAL_S = 0.25
OTHER_DEFAULTS = {"HEADGATE_SPARE_APPLICATIONS": "1"}  # who tries it out waits for the first row

Step = tuple[str, Callable[[], object]]


class Launcher:
    """Runs one stack until SIGTERM or SIGINT."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._cancel = threading.Event()
        self._watched: list[WatchedService] = []
        self._state = StackState(phase="starting", launcher=Identity.of(os.getpid()))

    def run(self) -> int:
        """0 after an orderly stop, 1 when something did not start, 2 when another launcher has this home."""
        self._home.create()
        with (self._home.path / "launcher.lock").open("a") as lock:
            if not try_lock(lock):
                log_message(f"another launcher runs in {self._home.path}")
                return 2
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._on_signal)
            return self._run_locked()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._cancel.set()

    def _run_locked(self) -> int:
        error = ""
        try:
            self._home.ports.withdraw()
            self._start_all()
            self._watch_until_cancelled()
        except Cancelled:
            log_message("told to stop while starting")
        except Exception as failure:  # whatever it is: the children are stopped, and the reason is told
            error = str(failure) or repr(failure)
            log_message(error)
        self._publish(phase="stopping", error=error)
        self._home.ports.withdraw()
        self._stop_all()
        self._publish(phase="failed" if error else "stopped", launcher=None)
        return 1 if error else 0

    def _start_all(self) -> None:
        steps = self._steps()
        for number, (label, action) in enumerate(steps):
            log_message(label)
            self._publish(step=label, steps_done=number, steps_total=len(steps))
            action()
            if self._cancel.is_set():
                raise Cancelled("stopped while starting")
        self._home.ports.announce()
        self._publish(phase="running", step="", steps_done=len(steps))
        log_message("all services run")

    def _steps(self) -> list[Step]:
        """Kafka and the three of Headgate's own start side by side; each is waited for."""
        home, cancel = self._home, self._cancel
        ports = {name: home.ports.assign(name, preferred) for name, preferred in PREFERRED_PORTS.items()}
        postgres = Postgres(home, port=ports["postgres"])
        valkey = Valkey(home, port=ports["valkey"])
        kafka = Kafka(home, port=ports["kafka"])
        env = apps.environment(home, postgres=postgres, valkey=valkey, kafka=kafka, web_port=ports["web"])
        env = OTHER_DEFAULTS | env
        web = apps.Web(home, env, port=ports["web"])
        worker, beat = apps.Worker(home, env), apps.Beat(home, env)
        self._state = replace(self._state, url=web.url, bootstrap=kafka.bootstrap)
        return [
            ("Kafka: jars (downloaded the first time)", lambda: kafka_jars(home.log("kafka-download"), cancel)),
            ("Spark: classes (made the first time)", lambda: self._prepare_spark(env)),
            ("PostgreSQL", lambda: self._start_and_wait(postgres, ports["postgres"])),
            ("Valkey", lambda: self._start_and_wait(valkey, ports["valkey"])),
            ("Kafka: start", lambda: self._start(kafka, ports["kafka"])),
            ("Database tables and login", lambda: apps.prepare_database(home, env, cancel)),
            ("Kafka: answer", lambda: self._wait(kafka)),
            ("Web, worker and beat: start", lambda: self._start_own(web, worker, beat)),
            ("Web", lambda: self._wait(web)),
            ("Worker", lambda: self._wait(worker)),
            ("Beat", lambda: self._wait(beat)),
        ]

    def _prepare_spark(self, env: dict[str, str]) -> None:
        prepare_classes(self._home.log("spark-classes"), self._cancel)
        env.update(submit_options())  # before worker, which hands it on, is started with it

    def _start_own(self, web: apps.Web, *jobs: apps.Celery) -> None:
        self._start(web, web.port)
        for job in jobs:
            self._start(job)

    def _start_and_wait(self, service: Service, port: int) -> None:
        self._start(service, port)
        self._wait(service)

    def _start(self, service: Service, port: int | None = None) -> None:
        self._watched.append(WatchedService(service, port))
        service.start()
        self._publish()

    def _wait(self, service: Service) -> None:
        service.wait_ready(cancel=self._cancel)
        next(watched for watched in self._watched if watched.service is service).state = "running"
        self._publish()

    def _watch_until_cancelled(self) -> None:
        while not self._cancel.wait(WATCH_INTERVAL_S):
            changes = [watched.check(time.monotonic()) for watched in self._watched]
            if any(changes):
                self._publish()
        log_message("told to stop")

    def _stop_all(self) -> None:
        """First those that start Spark applications, then these, which need the rest to end in order; then the rest.

        The last started first.
        """
        jobs = [watched for watched in self._watched if isinstance(watched.service, apps.Celery)]
        others = [watched for watched in self._watched if watched not in jobs]
        self._stop(jobs)
        for task in stop_applications(self._home.tasks, stop_timeout_s()):
            log_message(f"stopped the Spark application of task {task}")
        self._stop(others)

    def _stop(self, group: list[WatchedService]) -> None:
        for watched in reversed(group):
            log_message(f"stopping {watched.service.name}")
            try:
                watched.stop()
            except OSError as error:  # the others are stopped all the same
                log_message(f"{watched.service.name} could not be stopped: {error}")
            self._publish()

    def _publish(self, **changes: Any) -> None:
        services = tuple(watched.describe() for watched in self._watched)
        self._state = replace(self._state, services=services, **changes)
        try:
            self._state.write(self._home.state_file)
        except OSError as error:  # a full disk must not keep us from stopping the children
            log_message(f"the state could not be written: {error}")
