"""The embedded stack as a whole, by its commands: start, find, crash, stop, clean.

A start takes ten seconds of processor time, so the tests take over the stack as the one before has left it.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest

from controlplane.embedded.apps import login_password
from controlplane.embedded.files import write_json
from controlplane.embedded.home import PROJECT, Home, temporary_home
from controlplane.embedded.kafka_jars import VERSION
from controlplane.embedded.postgres import Postgres
from controlplane.embedded.processes import Child
from controlplane.embedded.stack import Stack
from controlplane.embedded.state import StackState, is_up
from controlplane.embedded.waiting import poll_until
from tests.support.processes import command_lines

pytestmark = pytest.mark.timeout(900)

SERVICES = ["postgres", "valkey", "kafka", "web", "worker", "beat"]


@pytest.fixture
def home() -> Iterator[Home]:
    with temporary_home() as folder:
        yield folder


def one(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def command(home: Home, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "controlplane.embedded", "--home", str(home.path), *arguments],
        cwd=PROJECT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with temporary_home() as home:
        stack = Stack(home)
        try:
            yield stack
        finally:
            stack.down()


def up(stack: Stack) -> StackState:
    done = command(stack.home, "up")
    assert done.returncode == 0, done.stdout + done.stderr
    state = stack.state()
    assert state.all_run
    assert [service.name for service in state.services] == SERVICES
    return state


def pids(state: StackState) -> list[int]:
    return [service.process.pid for service in state.services if service.process]


def dsn_of(stack: Stack) -> str:
    return Postgres(stack.home, port=port_of(stack.state(), "postgres")).dsn


def port_of(state: StackState, name: str) -> int:
    return next(service.port for service in state.services if service.name == name and service.port)


def wait_until_gone(state: StackState) -> None:
    identities = [service.process for service in state.services if service.process]
    poll_until(lambda: all(identity.find() is None for identity in identities), timeout_s=60)


def test_up_starts_everything_and_a_second_up_finds_it(stack: Stack) -> None:
    state = up(stack)
    assert command(stack.home, "status").returncode == 0
    again = command(stack.home, "up")
    assert again.returncode == 0
    assert "runs already" in again.stdout
    assert state.url in again.stdout
    assert pids(stack.state()) == pids(state)
    assert stack.state().launcher == state.launcher


def test_the_printed_login_gives_a_token(stack: Stack) -> None:
    state = up(stack)
    password = login_password(stack.home)
    basic = base64.b64encode(f"admin:{password}".encode()).decode()
    answer = httpx2.post(f"{state.url}/api/v1/auth/login/", headers={"Authorization": f"Basic {basic}"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["token"]
    logs = "".join(log.read_text() for log in stack.home.logs.glob("*.log"))
    assert password not in logs


def test_no_command_line_shows_a_secret(stack: Stack) -> None:
    state = up(stack)
    secrets = json.loads((stack.home.path / "secrets.json").read_text()).values()
    for service in state.services:
        process = service.process.find() if service.process else None
        assert process is not None
        lines = [line for _, line in command_lines([process, *process.children(recursive=True)])]
        assert any(lines), f"nothing was seen of {service.name}"
        assert not any(secret in line for line in lines for secret in secrets)


@pytest.mark.parametrize("name", ["beat", "web", "postgres"])
def test_a_killed_child_is_started_again(stack: Stack, name: str) -> None:
    before = {service.name: service for service in up(stack).services}
    victim = before[name].process
    assert victim is not None
    os.kill(victim.pid, signal.SIGKILL)

    def back() -> bool:
        now = next(service for service in stack.state().services if service.name == name)
        return is_up(now) and now.process != victim and now.restarts == before[name].restarts + 1

    poll_until(back, timeout_s=60)
    assert stack.state().all_run
    others = [service.process for service in stack.state().services if service.name != name]
    assert others == [service.process for service in before.values() if service.name != name]


def test_a_killed_launcher_leaves_orphans_that_the_next_up_stops(stack: Stack) -> None:
    state = up(stack)
    assert state.launcher is not None
    os.kill(state.launcher.pid, signal.SIGKILL)
    poll_until(lambda: not stack.state().launcher_runs, timeout_s=10)
    status = command(stack.home, "status")
    assert status.returncode == 3
    assert "orphaned" in status.stdout
    assert set(pids(up(stack))).isdisjoint(pids(state))
    wait_until_gone(state)


def application_of(stack: Stack) -> Child:
    """A task's application, as far as whoever stops it knows."""
    made = Child([sys.executable, "-c", "import time; time.sleep(600)"], stack.home.log("application"))
    identity = made.identity
    write_json(stack.home.tasks / "task-1" / "pid", {"pid": identity.pid, "create_time": identity.create_time})
    return made


def test_down_stops_every_child_also_after_a_crash_and_spark_applications(stack: Stack) -> None:
    """And what was stopped has its data when it is started again, around a port that is busy by then."""
    state = up(stack)
    with psycopg.connect(dsn_of(stack)) as connection:
        connection.execute("CREATE TABLE kept_by_stack AS SELECT 1 AS number")
    application = application_of(stack)
    valkey = next(service.process for service in state.services if service.name == "valkey")
    assert valkey is not None
    os.kill(valkey.pid, signal.SIGKILL)
    poll_until(lambda: any(service.state == "restarting" for service in stack.state().services), timeout_s=10)
    done = command(stack.home, "down")
    assert done.stdout.splitlines() == ["Tasks that run: 1. They end in order, within 25 s …", "Stopped."]
    assert application.exit_code == -signal.SIGTERM
    wait_until_gone(state)
    assert not stack.state().launcher_runs
    assert stack.state().phase == "stopped"
    told = [(service.name, service.state, service.process) for service in stack.state().services]
    assert told == [(name, "stopped", None) for name in SERVICES], "the launcher did it: it left no orphans"
    assert command(stack.home, "status").returncode == 3
    check_that_it_starts_again_around_a_busy_port(stack)
    assert one(dsn_of(stack), "SELECT count(*) FROM kept_by_stack") == 1


def check_that_it_starts_again_around_a_busy_port(stack: Stack) -> None:
    busy = stack.home.ports.all()["web"]
    with socket.socket() as other:
        other.bind(("127.0.0.1", busy))
        other.listen()
        state = up(stack)
    assert port_of(state, "web") != busy
    assert str(port_of(state, "web")) in command(stack.home, "up").stdout
    assert httpx2.get(f"{state.url}/healthz").status_code == 200


def test_down_clears_up_after_a_killed_launcher_and_worker(stack: Stack) -> None:
    state = up(stack)
    assert state.launcher is not None
    worker = next(service.process for service in state.services if service.name == "worker")
    assert worker is not None
    process = worker.find()
    assert process is not None
    pool = process.children()
    assert pool
    os.kill(state.launcher.pid, signal.SIGKILL)
    os.kill(worker.pid, signal.SIGKILL)
    assert command(stack.home, "down").stdout.strip() == "Stopped."
    wait_until_gone(state)
    poll_until(lambda: not any(member.is_running() for member in pool), timeout_s=10)
    assert command(stack.home, "down").stdout.strip() == "Nothing was running."


def test_a_service_that_does_not_start_is_named_with_its_log(stack: Stack) -> None:
    stack.down()
    (stack.home.path / "kafka" / "data" / "meta.properties").write_text("version=99\n")
    done = command(stack.home, "up")
    assert done.returncode == 1
    assert "kafka ended with exit code" in done.stderr
    assert str(stack.home.log("kafka")) in done.stderr
    assert command(stack.home, "status").returncode == 3
    assert not any(service.process for service in stack.state().services)


def test_clean_deletes_the_home(stack: Stack) -> None:
    assert command(stack.home, "clean").returncode == 0
    assert not stack.home.is_ours
    assert not (stack.home.path / "postgres").exists()


def test_without_java_nothing_starts(home: Home, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    done = command(home, "up", PATH=f"{tmp_path}:{os.environ['PATH']}", JAVA_HOME="")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "sudo apt-get install openjdk-17-jre-headless" in done.stderr
    assert not home.state_file.exists()


def test_a_download_that_fails_says_so_and_leaves_nothing_behind(home: Home, tmp_path: Path) -> None:
    nowhere = {"JAVA_TOOL_OPTIONS": "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1"}
    done = command(home, "up", HEADGATE_CACHE_DIR=str(tmp_path), **nowhere)
    assert done.returncode == 1
    assert "could not be downloaded" in done.stderr
    assert str(home.log("kafka-download")) in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == [f"kafka-{VERSION}.lock"]
