"""The embedded stack's services alone, run for real in temporary homes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from confluent_kafka import KafkaError, KafkaException, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic
from redis.backoff import NoBackoff
from redis.retry import Retry

from controlplane.embedded.accounts import can_run, runnable_programs, server_account
from controlplane.embedded.demo.produce import ensure_topic, produce, records_by_partition
from controlplane.embedded.demo.records import EXAMPLE_RECORDS
from controlplane.embedded.errors import DemoFailed
from controlplane.embedded.home import Home, temporary_home
from controlplane.embedded.kafka import Kafka
from controlplane.embedded.postgres import Postgres, installation
from controlplane.embedded.valkey import Valkey
from controlplane.embedded.waiting import poll_until
from tests.support.broker import Broker

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def home() -> Iterator[Home]:
    with temporary_home() as folder:
        yield folder


def one(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


@pytest.fixture(scope="module")
def postgres_home() -> Iterator[Home]:
    """Where the first test has PostgreSQL's data made."""
    with temporary_home() as folder:
        yield folder


def test_postgres_keeps_rows_over_stop_and_kill(postgres_home: Home) -> None:
    home = postgres_home
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


def test_postgres_is_private(postgres_home: Home) -> None:
    with Postgres(postgres_home, settings={"fsync": "off"}) as postgres:
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(postgres.dsn.replace(postgres.password, "wrong"))
        assert one(postgres.dsn, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        assert one(postgres.dsn, "SHOW fsync") == "off"
        assert one(postgres.dsn, "SHOW listen_addresses") == "127.0.0.1"
        assert one(postgres.superuser_dsn, "SHOW unix_socket_directories") == ""
        assert postgres.password not in postgres_home.log("postgres").read_text()


def test_postgres_starts_after_a_crash_whose_pid_somebody_else_has_now(postgres_home: Home) -> None:
    with Postgres(postgres_home) as postgres:
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
    package = installation().parent
    libraries = package.with_name(f"{package.name}.libs")
    closed = tmp_path / package.name / installation().name
    shutil.copytree(installation(), closed, symlinks=True)
    shutil.copytree(libraries, tmp_path / libraries.name, symlinks=True)
    programs = runnable_programs(home, closed, account)
    assert programs.is_relative_to(home.outside)
    assert all(can_run(account, programs / program) for program in ("initdb", "postgres", "pg_ctl"))
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
    Broker(broker).configure_group("group-1", share_record_lock_duration_ms=1000, share_auto_offset_reset="earliest")
    assert read_share_group(broker, "shared", "group-1", 20) == {str(number).encode() for number in range(20)}


def test_kafka_keeps_records_over_stop_and_kill(broker: Kafka) -> None:
    make_topic(broker, "kept", 10)
    port = broker.port
    broker.restart()
    broker.kill()
    broker.start().wait_ready()
    assert broker.port == port
    Broker(broker).configure_group("group-2", share_auto_offset_reset="earliest")
    assert len(read_share_group(broker, "kept", "group-2", 10)) == 10


def test_what_kafka_keeps_is_private(broker: Kafka) -> None:
    """Row 28 of the security checklist: as root the home itself lets others pass through."""
    folder = broker.home.path / "kafka"
    assert [f.stat().st_mode & 0o777 for f in (folder, folder / "data")] == [0o700, 0o700]


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


def test_a_topic_that_the_broker_has_not_heard_of_yet_is_waited_for(broker: Kafka) -> None:
    """It is made by the controller; of twenty, ten or so are not known to the broker that is asked at once."""
    for number in range(20):
        ensure_topic(broker.bootstrap, f"just-made-{number}")


def test_kafka_can_be_without_share_groups(home: Home) -> None:
    with Kafka(home, share_groups=False) as kafka:
        make_topic(kafka, "plain", 1)
        consumer = ShareConsumer({"bootstrap.servers": kafka.bootstrap, "group.id": "group-3"})
        consumer.subscribe(["plain"])
        with pytest.raises(KafkaException) as refusal:
            poll_until(lambda: consumer.poll(timeout=0.5), timeout_s=30)
        consumer.close()
        assert refusal.value.args[0].code() == KafkaError.UNSUPPORTED_VERSION
