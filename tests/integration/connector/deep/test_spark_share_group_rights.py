"""``kafka-sharegroup`` with a login that may not read: the query ends and says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from controlplane.embedded.home import temporary_home
from controlplane.embedded.kafka import Kafka
from tests.support.spark_session import spark_session, stopped
from tests.support.waiting import wait_for

TOPIC, GROUP = "orders", "readers"
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_me="a password";'


@pytest.fixture
def guarded() -> Iterator[str]:
    """The address of a broker with a login, ``me``, that may read the topic, and no group."""
    with temporary_home() as home:
        broker = Kafka(home)
        address = f"127.0.0.1:{home.ports.assign('LOGIN')}"
        listeners = f"PLAINTEXT://{broker.bootstrap},LOGIN://{address}"
        broker.extra_properties = {
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{broker.controller_port}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": LOGIN,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        with broker:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(30)
            what = (ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, "User:me", "*")
            for made in admin.create_acls([AclBinding(*what, AclOperation.READ, AclPermissionType.ALLOW)]).values():
                made.result(30)
            yield address


def test_a_group_that_the_login_may_not_read_ends_the_query(guarded: str, tmp_path: Path) -> None:
    options = {
        "kafka.bootstrap.servers": guarded,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "me",
        "kafka.sasl.password": "a password",
        "subscribe": TOPIC,
        "shareGroupId": GROUP,
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }
    with spark_session(tmp_path) as spark:
        rows = spark.readStream.format("kafka-sharegroup").options(**options).load()
        writer = rows.writeStream.format("noop").option("checkpointLocation", options["checkpointLocation"])
        with stopped(writer.start()) as query:
            wait_for("the query has ended", query.exception, 60, lambda: query.lastProgress)
            assert "this login may not read the share group" in str(query.exception())
