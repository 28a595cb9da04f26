"""A broker with logins and TLS, and properties as they are written for Java to come in."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from controlplane.embedded.home import temporary_home
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.certificates import Identity, as_jks, authority
from tests.support.quick_kafka import Kafka
from tests.unit.test_specs import changed

PASSWORD = 'p"4711\\, ;=x'
ESCAPED = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
ELSEWHERE = "ELSEWHERE://169.254.169.254:9092"  # what one listener says of itself
DEAF = "DEAF"  # the listener that is advertised at a port that neither takes connections nor refuses them
# Where each listens. The broker's certificate is for the first host, not for the second.
HOSTS = dict.fromkeys(("LOGIN", "LOGINTLS", "TLS", "ELSEWHERE", DEAF, "TOKEN"), "localhost") | {"UNNAMED": "127.0.0.2"}
MODULES = "org.apache.kafka.common.security"
BEARER = f"{MODULES}.oauthbearer.OAuthBearerLoginModule"
PLAIN = f'{MODULES}.plain.PlainLoginModule required username="me" password="{ESCAPED}";'
SCRAM = f'{MODULES}.scram.ScramLoginModule required\n  username="me"\n  password="{ESCAPED}";'


@dataclass(frozen=True)
class Secured:
    """The broker's addresses by listener, and who may come in."""

    addresses: dict[str, str]
    root: Identity
    client: Identity
    topic: str


@contextmanager
def full_port() -> Iterator[int]:
    """A port that takes no further connection and refuses none: its queue is full."""
    with ExitStack() as held:
        server = held.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port: int = server.getsockname()[1]
        for _ in range(4):
            line = held.enter_context(socket.socket())
            line.setblocking(False)
            line.connect_ex(("127.0.0.1", port))
        yield port


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    root = authority()
    client = root.signs("the signer", authority=True).signs("me")  # with an authority between
    with temporary_home() as home, full_port() as deaf:
        broker = Kafka(home)
        addresses = {name: f"{host}:{home.ports.assign(name)}" for name, host in HOSTS.items()}
        broker.extra_properties = _properties(broker, addresses, root, deaf)
        with broker:
            yield Secured(addresses, root, client, _topic_for_a_user(broker.bootstrap))


def _properties(broker: Kafka, addresses: dict[str, str], root: Identity, deaf: int) -> dict[str, str]:
    identity, pem, trusted = root.signs("broker"), broker.home.path / "broker.pem", broker.home.path / "root.pem"
    pem.write_text(identity.key_pem() + identity.pem)
    trusted.write_text(root.pem)
    listeners = ",".join([f"PLAINTEXT://{broker.bootstrap}", *(f"{n}://{a}" for n, a in addresses.items())])
    advertised = listeners.replace(f"ELSEWHERE://{addresses['ELSEWHERE']}", ELSEWHERE)
    advertised = advertised.replace(f"{DEAF}://{addresses[DEAF]}", f"{DEAF}://127.0.0.1:{deaf}")
    plain = f'{MODULES}.plain.PlainLoginModule required user_me="{ESCAPED}";'.replace("\\", "\\\\")
    scram = f"{MODULES}.scram.ScramLoginModule required;"
    protocols = (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT,LOGINTLS:SASL_SSL,TLS:SSL,ELSEWHERE:PLAINTEXT,"
        "DEAF:PLAINTEXT,UNNAMED:SSL,TOKEN:SASL_PLAINTEXT"
    )
    return {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{broker.controller_port}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": protocols,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        **{f"listener.name.{n}.plain.sasl.jaas.config": plain for n in ("login", "logintls")},
        **{f"listener.name.{n}.scram-sha-512.sasl.jaas.config": scram for n in ("login", "logintls")},
        # Without a validator of its own it takes tokens that nobody has signed.
        "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.token.oauthbearer.sasl.jaas.config": f"{BEARER} required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(pem),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "listener.name.tls.ssl.client.auth": "required",
    }


def _topic_for_a_user(bootstrap: str) -> str:
    """The name of a topic with ten records; a user who may log in with SCRAM is made too."""
    admin, topic = AdminClient({"bootstrap.servers": bootstrap}), f"topic-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    for future in admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("me", info, PASSWORD.encode())]
    ).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce(topic, value=str(number).encode())
    assert producer.flush(30) == 0
    return topic


def read(properties: dict[str, Any]) -> dict[str, Any]:
    """Properties in the form that a spec keeps."""
    return parse_task_spec(changed(("ioConfig/consumerProperties", properties))).spec.ioConfig.consumerProperties


def login(secured: Secured, listener: str, mechanism: str, jaas: Any) -> dict[str, Any]:
    found = {"bootstrap.servers": secured.addresses[listener], "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    if listener == "LOGIN":
        return {**found, "security.protocol": "SASL_PLAINTEXT"}
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": secured.root.pem.replace("\n", " ")}
    return {**found, **trust, "security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": "https"}


def mutual(secured: Secured, **store: Any) -> dict[str, Any]:
    return {"bootstrap.servers": secured.addresses["TLS"], "security.protocol": "SSL", **store}


def in_folder(secured: Secured, folder: Path, kind: str) -> dict[str, str]:
    """The client's stores in this form, written into a folder, and the properties that name them."""
    key, trust = _stores(secured, kind)
    (folder / "key").write_bytes(key)
    (folder / "trust").write_bytes(trust)
    passwords = {"ssl.keystore.password": "pass one", "ssl.truststore.password": "pass two"}
    passwords |= {"ssl.key.password": "pass key"} if kind == "JKS" else {}
    return {
        "ssl.keystore.type": kind,
        "ssl.keystore.location": "key",
        "ssl.truststore.type": kind,
        "ssl.truststore.location": str(folder / "trust"),
        **(passwords if kind != "PEM" else {}),
    }


def _stores(secured: Secured, kind: str) -> tuple[bytes, bytes]:
    client, root = secured.client, secured.root
    if kind == "PEM":
        return (client.key_pem() + client.pem).encode(), root.pem.encode()
    trust = root.trust_store("pass two")
    if kind == "PKCS12":
        return client.pkcs12("pass one"), trust
    return client.jks("pass one", "pass key"), as_jks(trust, "pass two", "pass two")
