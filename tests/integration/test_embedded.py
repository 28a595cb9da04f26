"""The embedded stack's services and commands, run for real in temporary homes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest
import redis
from confluent_kafka import KafkaError, KafkaException, Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from redis.backoff import NoBackoff
from redis.retry import Retry

from controlplane.embedded import Home, Kafka, Postgres, Valkey, temporary_home
from controlplane.embedded.accounts import can_run, runnable_copy, server_account
from controlplane.embedded.apps import login_password
from controlplane.embedded.demo.produce import ensure_topic, produce, records_by_partition
from controlplane.embedded.demo.records import EXAMPLE_RECORDS
from controlplane.embedded.errors import DemoFailed
from controlplane.embedded.files import write_json
from controlplane.embedded.home import PROJECT
from controlplane.embedded.postgres import installation
from controlplane.embedded.processes import Child
from controlplane.embedded.stack import Stack
from controlplane.embedded.state import StackState, is_up
from controlplane.embedded.waiting import poll_until

pytestmark = pytest.mark.timeout(300)

SERVICES = ["postgres", "valkey", "kafka", "web", "worker", "beat"]


# single services


@pytest.fixture
def home() -> Iterator[Home]:
    with temporary_home() as folder:
        yield folder


def one(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def test_postgres_keeps_rows_over_stop_and_kill(home: Home) -> None:
    with Postgres(home) as postgres:
        with psycopg.connect(postgres.dsn) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
        port = postgres.port
        postgres.kill()
        postgres.start().wait_ready()
        postgres.restart()
        assert (postgres.port, one(postgres.dsn, "SELECT number FROM kept")) == (port, 1)
    assert not postgres.running
    with Postgres(home) as again:
        assert (again.port, again.dsn) == (port, postgres.dsn)
        assert one(again.dsn, "SELECT number FROM kept") == 1


def test_postgres_is_private(home: Home) -> None:
    with Postgres(home, settings={"fsync": "off"}) as postgres:
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(postgres.dsn.replace(postgres.password, "wrong"))
        assert one(postgres.dsn, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        assert one(postgres.dsn, "SHOW fsync") == "off"
        assert one(postgres.dsn, "SHOW listen_addresses") == "127.0.0.1"
        assert one(postgres.superuser_dsn, "SHOW unix_socket_directories") == ""
        assert postgres.password not in home.log("postgres").read_text()


def test_postgres_starts_after_a_crash_whose_pid_somebody_else_has_now(home: Home) -> None:
    with Postgres(home) as postgres:
        data = Path(str(one(postgres.superuser_dsn, "SHOW data_directory")))
        pid_file = (data / "postmaster.pid").read_text()
        postgres.kill()
        lines = [str(os.getpid()), *pid_file.splitlines()[1:]]
        (data / "postmaster.pid").write_text("\n".join(lines))
        postgres.start().wait_ready()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user for PostgreSQL")
def test_as_root_a_closed_parent_folder_is_left_alone() -> None:
    with tempfile.TemporaryDirectory() as closed:
        os.chmod(closed, 0o700)
        home = Home(Path(closed) / "project" / ".headgate")
        with Postgres(home) as postgres:
            assert one(postgres.dsn, "SELECT 1") == 1
            assert str(one(postgres.superuser_dsn, "SHOW data_directory")).startswith(str(home.outside))
        assert os.stat(closed).st_mode & 0o777 == 0o700
        home.remove()
        assert not home.outside.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user for PostgreSQL")
def test_as_root_programs_in_a_closed_folder_are_copied(home: Home, tmp_path: Path) -> None:
    account = server_account()
    assert account is not None
    tmp_path.chmod(0o700)
    closed = tmp_path / "pginstall18"
    shutil.copytree(installation(), closed, symlinks=True)
    programs = runnable_copy(home, closed, "postgres", account)
    assert programs == home.outside / "pginstall18" / "bin"
    assert can_run(account, programs / "postgres")
    home.remove()
    assert not home.outside.exists()


def test_valkey_keeps_keys_over_stop_and_kill(home: Home) -> None:
    with Valkey(home) as valkey:
        client = redis.Redis.from_url(valkey.url)
        client.set("kept", "1")
        valkey.restart()
        assert client.get("kept") == b"1"
        client.set("kept", "2")
        valkey.kill()
        valkey.start().wait_ready()
        assert client.get("kept") == b"2"
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=valkey.port, retry=Retry(NoBackoff(), 0)).ping()


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    with temporary_home() as folder, Kafka(folder, {"group.share.min.record.lock.duration.ms": "1000"}) as kafka:
        yield kafka


def make_topic(kafka: Kafka, topic: str, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})  # a client that is let go cancels its requests
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(records):
        producer.produce(topic, str(number).encode(), partition=number % 2)
    assert producer.flush(30) == 0


def set_group(kafka: Kafka, group: str, **settings: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)


def read_share_group(kafka: Kafka, topic: str, group: str, count: int) -> set[bytes]:
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": group, "share.acknowledgement.mode": "implicit"}
    consumer = ShareConsumer(settings)
    consumer.subscribe([topic])
    values: set[bytes] = set()

    def all_there() -> bool:
        values.update(message.value() or b"" for message in consumer.poll(timeout=1.0) if message.error() is None)
        return len(values) >= count

    try:
        poll_until(all_there, timeout_s=60)
        consumer.commit_sync()
    finally:
        consumer.close()
    return values


def test_kafka_has_share_groups_with_the_settings_asked_for(broker: Kafka) -> None:
    make_topic(broker, "shared", 20)
    # Brokers refuse less than 15 s unless they are told otherwise.
    set_group(broker, "group-1", share_record_lock_duration_ms="1000", share_auto_offset_reset="earliest")
    assert read_share_group(broker, "shared", "group-1", 20) == {str(number).encode() for number in range(20)}


def test_kafka_keeps_records_over_stop_and_kill(broker: Kafka) -> None:
    make_topic(broker, "kept", 10)
    port = broker.port
    broker.restart()
    broker.kill()
    broker.start().wait_ready()
    assert broker.port == port
    set_group(broker, "group-2", share_auto_offset_reset="earliest")
    assert len(read_share_group(broker, "kept", "group-2", 10)) == 10


def test_kafka_does_not_make_topics_by_itself(broker: Kafka) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 2000})
    delivered: list[bool] = []
    producer.produce("nobody-made-this", b"x", on_delivery=lambda error, _: delivered.append(error is None))
    producer.flush(30)
    assert delivered == [False]


def test_the_demo_adds_only_the_records_that_are_missing(broker: Kafka) -> None:
    ensure_topic(broker.bootstrap, "demo")
    ensure_topic(broker.bootstrap, "demo")
    told: list[int] = []
    produce(broker.bootstrap, "demo", EXAMPLE_RECORDS[:2], 2, told.append)
    produce(broker.bootstrap, "demo", EXAMPLE_RECORDS, 5, told.append)
    produce(broker.bootstrap, "demo", EXAMPLE_RECORDS, 5, told.append)
    assert told == [2, 5, 5]
    assert records_by_partition(broker.bootstrap, "demo") == [2, 1, 1, 1]
    with pytest.raises(DemoFailed, match="holds 5 records instead of the demo's 3"):
        produce(broker.bootstrap, "demo", EXAMPLE_RECORDS[:3], 3, told.append)
    make_topic(broker, "two-partitions", 0)
    with pytest.raises(DemoFailed, match="has 2 partitions"):
        ensure_topic(broker.bootstrap, "two-partitions")


def test_a_download_that_fails_says_so_and_leaves_nothing_behind(home: Home, tmp_path: Path) -> None:
    nowhere = {"JAVA_TOOL_OPTIONS": "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1"}
    done = command(home, "up", HEADGATE_CACHE_DIR=str(tmp_path), **nowhere)
    assert done.returncode == 1
    assert "could not be downloaded" in done.stderr
    assert str(home.log("kafka-download")) in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["kafka-4.3.0.lock"]


def test_kafka_can_be_without_share_groups(home: Home) -> None:
    with Kafka(home, share_groups=False) as kafka:
        make_topic(kafka, "plain", 1)
        consumer = ShareConsumer({"bootstrap.servers": kafka.bootstrap, "group.id": "group-3"})
        consumer.subscribe(["plain"])
        with pytest.raises(KafkaException) as refusal:
            poll_until(lambda: consumer.poll(timeout=0.5), timeout_s=30)
        consumer.close()
        assert refusal.value.args[0].code() == KafkaError.UNSUPPORTED_VERSION


# the whole stack


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
        for member in (process, *process.children(recursive=True)):
            assert not any(secret in " ".join(member.cmdline()) for secret in secrets)


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


def test_sigterm_stops_every_child_also_after_a_crash_and_the_data_stays(stack: Stack) -> None:
    state = up(stack)
    with psycopg.connect(dsn_of(stack)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept_by_stack (number int)")
        connection.execute("INSERT INTO kept_by_stack VALUES (1)")
    valkey = next(service.process for service in state.services if service.name == "valkey")
    assert valkey is not None
    assert state.launcher is not None
    os.kill(valkey.pid, signal.SIGKILL)
    poll_until(lambda: any(service.state == "restarting" for service in stack.state().services), timeout_s=10)
    os.kill(state.launcher.pid, signal.SIGTERM)
    wait_until_gone(state)
    poll_until(lambda: not stack.state().launcher_runs, timeout_s=60)
    assert stack.state().phase == "stopped"
    assert command(stack.home, "status").returncode == 3
    up(stack)
    assert one(dsn_of(stack), "SELECT count(*) FROM kept_by_stack") == 1


def test_down_stops_spark_applications(stack: Stack) -> None:
    up(stack)
    application = Child([sys.executable, "-c", "import time; time.sleep(600)"], stack.home.log("application"))
    identity = application.identity
    write_json(stack.home.tasks / "task-1" / "pid", {"pid": identity.pid, "create_time": identity.create_time})
    assert command(stack.home, "down").returncode == 0
    assert application.exit_code == -signal.SIGTERM


def test_a_port_that_is_busy_is_chosen_around_and_told(stack: Stack) -> None:
    stack.down()
    busy = stack.home.ports.all()["web"]
    with socket.socket() as other:
        other.bind(("127.0.0.1", busy))
        other.listen()
        state = up(stack)
    assert port_of(state, "web") != busy
    assert str(port_of(state, "web")) in command(stack.home, "up").stdout
    assert httpx2.get(f"{state.url}/healthz").status_code == 200


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
