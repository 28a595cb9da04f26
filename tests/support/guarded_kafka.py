"""A broker that asks its authorizer, and a login that may do nothing until it is given a right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from controlplane.embedded.home import temporary_home
from tests.support.broker import BROKER, Broker
from tests.support.quick_kafka import Kafka
from tests.support.waiting import wait_for

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class Guarded(Broker):
    """Its own producer and admin may do all; ``me`` has the rights that were given."""

    def __init__(self, kafka: Kafka, address: str) -> None:
        super().__init__(kafka)
        self.address = address

    @property
    def properties(self) -> dict[str, str]:
        """The login in the words of a spec."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_MODULE} username="me" password="a password";',
        }

    @property
    def client(self) -> dict[str, str]:
        """The login in librdkafka's words."""
        login = {"sasl.mechanisms": "PLAIN", "sasl.username": "me", "sasl.password": "a password"}
        return {"bootstrap.servers": self.address, "security.protocol": "SASL_PLAINTEXT", **login}

    def give(self, kind: str, name: str, *operations: str) -> None:
        """Rights of ``me``: as TOPIC, orders, READ."""
        for operation in operations:
            what = (getattr(ResourceType, kind), name, ResourcePatternType.LITERAL, "User:me", "*")
            of_it = (*what, getattr(AclOperation, operation), AclPermissionType.ALLOW)
            right, same = AclBinding(*of_it), AclBindingFilter(*of_it)
            self.admin.create_acls([right])[right].result(30)
            # The controller answers before the broker obeys.
            wait_for(f"{operation} on {name}", lambda f=same: self.admin.describe_acls(f).result(30), 30)

    def take(self, kind: str, name: str, operation: str) -> None:
        what = (getattr(ResourceType, kind), name, ResourcePatternType.LITERAL, "User:me", "*")
        right = AclBindingFilter(*what, getattr(AclOperation, operation), AclPermissionType.ALLOW)
        assert self.admin.delete_acls([right])[right].result(30)
        wait_for(f"no {operation} on {name}", lambda: not self.admin.describe_acls(right).result(30), 30)


@contextmanager
def guarded_kafka(**more: Any) -> Iterator[Guarded]:
    """``more``: properties of the broker."""
    with temporary_home() as home:
        kafka = Kafka(home)
        address = f"127.0.0.1:{home.ports.assign('LOGIN')}"
        listeners = f"PLAINTEXT://{kafka.bootstrap},LOGIN://{address}"
        kafka.extra_properties = {
            **BROKER,
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{kafka.controller_port}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": f'{_MODULE} user_me="a password";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            **more,
        }
        with kafka:
            yield Guarded(kafka, address)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with guarded_kafka() as broker:
        yield broker
