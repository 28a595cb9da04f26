"""Kafka's properties in a spec: what is taken, what becomes of it for librdkafka, what is refused and where."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer

from ingestion.specs.errors import SpecError
from ingestion.specs.kafka.properties import (
    SECRET,
    insecure,
    missing,
    quick_to_reconnect,
    without_effect,
)
from ingestion.specs.kafka.providers import EnvironmentVariable
from ingestion.specs.source_traits import SHARE_GROUP
from tests.support.kafka_properties import BEARER, CANARY, ENDPOINT, PLAIN, by_pointer, faults, for_client, read

BODY = "QUJD" * 40
CERTIFICATE = f"-----BEGIN CERTIFICATE-----\n{BODY[:64]}\n{BODY[64:128]}\n{BODY[128:]}\n-----END CERTIFICATE-----\n"
KEY = CERTIFICATE.replace("CERTIFICATE", "PRIVATE KEY")


# Translation


def test_java_names_become_librdkafkas() -> None:
    assert for_client(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "scram-sha-512",
            "fetch.max.wait.ms": 100,
            "request.timeout.ms": 1000,
            "receive.buffer.bytes": -1,
            "send.buffer.bytes": "131072",
            "check.crcs": True,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": CERTIFICATE.replace("\n", " "),
            "ssl.keystore.type": "pem",
            "ssl.keystore.certificate.chain": f"Bag Attributes\n{CERTIFICATE}{CERTIFICATE}",
            "ssl.keystore.key": KEY.replace("\n", ""),
            "ssl.key.password": "x",
            "ssl.endpoint.identification.algorithm": "HTTPS",
        }
    ) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "fetch.wait.max.ms": "100",
        "socket.timeout.ms": "1000",
        "socket.receive.buffer.bytes": "0",
        "socket.send.buffer.bytes": "131072",
        "check.crcs": "true",
        "ssl.ca.pem": CERTIFICATE,
        "ssl.certificate.pem": CERTIFICATE * 2,
        "ssl.key.pem": KEY,
        "ssl.key.password": "x",
        "ssl.endpoint.identification.algorithm": "https",
    }


def test_what_druids_specs_carry_and_a_reader_of_ours_does_not_need() -> None:
    given = {
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "auto.commit.interval.ms": 1000,
        "group.id": "g",
        "isolation.level": "read_committed",
        "key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
        "value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
        "max.poll.interval.ms": 300_000,
        "session.timeout.ms": 45_000,
        "heartbeat.interval.ms": 3_000,
    }
    assert for_client(given) == {}
    assert set(given) == set(without_effect(SHARE_GROUP))


# Refusals

ROW_1 = [
    *["plugin.library.paths", "ssl.engine.location", "ssl.engine.id", "ssl.providers", "sasl.kerberos.kinit.cmd"],
    *["security.providers", "ssl.provider", "ssl.engine.factory.class", "interceptor.classes", "metric.reporters"],
    *["sasl.login.class", "sasl.server.callback.handler.class"],
    *["ssl.ca.location", "ssl.key.location", "ssl.certificate.location", "ssl.crl.location", "config.providers"],
    *["opaque", "default_topic_conf", "error_cb", "log_level", "statistics.interval.ms", "builtin.features", ""],
    *["SASL.JAAS.CONFIG", " sasl.password", "ssl.keystore.location ", "test.mock.num.brokers", "broker.address.family"],
]
ROW_2 = [
    *["sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.config", "sasl.oauthbearer.assertion.file"],
    *["sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.grant.type", "https.ca.location"],
    *["sasl.oauthbearer.metadata.authentication.type", "enable.sasl.oauthbearer.unsecure.jwt"],
]


VALUES = [CANARY, True, None, {"type": "default", "password": CANARY}, [CANARY]]


def test_rows_1_and_2_what_is_not_on_the_list_is_refused() -> None:
    """Row 1 of the security checklist: what is not on the list is refused.

    Row 2 of the security checklist: the same list.
    """
    given = [(name, value) for name in (*ROW_1, *ROW_2) for value in VALUES]
    taken = [f"{name}={value!r}" for name, value in given if not is_refused_by_name(name, value)]
    assert not taken, "\n".join(["these are not refused by their name alone:", *taken])


def is_refused_by_name(name: str, value: Any) -> bool:
    """Whether the property is the only fault, is called not allowed, and its value is not in the message."""
    try:
        read(**{name: value})
    except SpecError as error:
        found = by_pointer(error)
        return list(found) == [f"/{name}"] and "is not allowed" in found[f"/{name}"] and CANARY not in str(error)
    return False


@pytest.mark.parametrize(
    ("given", "pointer", "message"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "/sasl.mechanism", "is built without Kerberos"),
        ({"sasl.mechanism": "DIGEST-MD5"}, "/sasl.mechanism", "must be one of PLAIN"),
        ({"sasl.login.callback.handler.class": "x.Y"}, "/sasl.login.callback.handler.class", "others load code"),
        ({ENDPOINT: "login.example.org"}, f"/{ENDPOINT}", "must be the token endpoint's address"),
        ({ENDPOINT: "file:///etc/passwd"}, f"/{ENDPOINT}", "must be the token endpoint's address"),
        ({ENDPOINT: f"https://me:{CANARY}@x/token"}, f"/{ENDPOINT}", "must contain no login"),
        ({ENDPOINT: "https://x:port/token"}, f"/{ENDPOINT}", "must be the token endpoint's address"),
        ({ENDPOINT: "https://x/to\r\nken"}, f"/{ENDPOINT}", "must be the token endpoint's address"),
        (
            {"sasl.oauthbearer.client.secret": {"path": CANARY}},
            "/sasl.oauthbearer.client.secret",
            "must be text, or of",
        ),
        ({"sasl.jaas.config": f'{BEARER} required clientId="a";'}, "/sasl.jaas.config", "or neither"),
        ({"sasl.jaas.config": f'{BEARER} required x="{CANARY}";'}, "/sasl.jaas.config", "options other than"),
        (
            {
                "sasl.jaas.config": f'{BEARER} required clientId="a" clientSecret="b";',
                "sasl.oauthbearer.client.id": "c",
            },
            "/sasl.oauthbearer.client.id",
            "is already in sasl.jaas.config",
        ),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{BEARER} required;"},
            "/sasl.jaas.config",
            "the login module is for OAUTHBEARER",
        ),
        ({"sasl.mechanism": "GSSAPI"}, "/sasl.mechanism", "must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"security.protocol": "SASL_SSL"}, "/sasl.mechanism", "sasl.mechanism is required with SASL_SSL"),
        ({"ssl.keystore.type": "JKS"}, "/ssl.keystore.type", "needs ssl.keystore.location"),
        ({"ssl.truststore.type": "jceks"}, "/ssl.truststore.type", "must be one of PEM, PKCS12, JKS"),
        ({"ssl.truststore.certificates": CERTIFICATE}, "/ssl.truststore.certificates", "needs ssl.truststore.type PEM"),
        ({"ssl.keystore.type": "PKCS12"}, "/ssl.keystore.type", "needs ssl.keystore.location"),
        ({"ssl.ca.pem": CANARY}, "/ssl.ca.pem", "must be PEM text"),
        ({"ssl.ca.pem": KEY}, "/ssl.ca.pem", "must be PEM text: -----BEGIN CERTIFICATE"),
        ({"ssl.key.pem": KEY.replace("QUJD", "Proc-Type: 4,ENCRYPTED", 1)}, "/ssl.key.pem", "PKCS #8"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": CERTIFICATE}, "/ssl.keystore.key", "BEGIN PRIVATE KEY"),
        ({"isolation.level": "read_uncommitted"}, "/isolation.level", "ioConfig.groupConfig.isolationLevel"),
        ({"key.deserializer": "com.example.Mine"}, "/key.deserializer", "ioConfig.inputFormat"),
        ({"ssl.endpoint.identification.algorithm": "x"}, "/ssl.endpoint.identification.algorithm", "must be one of"),
        ({"socket.timeout.ms": 1, "request.timeout.ms": 2}, "/request.timeout.ms", "contradicts socket.timeout.ms"),
        ({"bootstrap.servers": "kafka"}, "/bootstrap.servers", "must be host:port"),
        ({"bootstrap.servers": "http://kafka:9092"}, "/bootstrap.servers", "must be host:port"),
        ({"client.id": None}, "/client.id", "must be text"),
        ({"client.id": {"type": "environment", "variable": "SPEC_SECRET_X"}}, "/client.id", "only passwords and keys"),
        ({"sasl.password": "******"}, "/sasl.password", "is the mask of a secret"),
        ({"sasl.password": {"type": "environment", "variable": "A B"}}, "/sasl.password", "must be text, or of type"),
        ({"sasl.password": {"type": "vault", "path": CANARY}}, "/sasl.password", "must be text, or of type"),
        ({"sasl.password": {"password": CANARY}}, "/sasl.password", "must be text, or of type"),
        ({"druid.dynamic.config.provider": {"type": "x"}}, "/druid.dynamic.config.provider", "must be of type"),
    ],
)
def test_what_is_refused_and_where(given: dict[str, Any], pointer: str, message: str) -> None:
    found = faults(**given)
    assert list(found) == [pointer]
    assert message in found[pointer]


def test_every_fault_is_told_at_once() -> None:
    assert set(faults(**{"debug": "all", "plugin.library.paths": "x", "ssl.ca.pem": "x", "sasl.mechanism": "y"})) == {
        "/plugin.library.paths",
        "/ssl.ca.pem",
        "/sasl.mechanism",
    }


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"debug": "security"}, {"debug"}),
        ({"debug": ""}, set()),
        ({"enable.ssl.certificate.verification": False}, {"enable.ssl.certificate.verification"}),
        ({"enable.ssl.certificate.verification": "TRUE"}, set()),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm"}),
        ({"ssl.endpoint.identification.algorithm": "NONE"}, {"ssl.endpoint.identification.algorithm"}),
        ({"ssl.endpoint.identification.algorithm": "https"}, set()),
    ],
)
def test_row_10_what_only_an_administrator_can_allow(given: dict[str, Any], names: set[str]) -> None:
    """Row 10 of the security checklist: what only an administrator can allow."""
    assert set(insecure(read(**given))) == names


# Druid's providers


def test_row_6_druids_providers_become_texts_and_references() -> None:
    """Row 6 of the security checklist: Druid's providers become texts and references."""
    found = read(
        **{
            "sasl.username": "me",
            "sasl.password": {"type": "default", "password": "x"},
            "ssl.key.password": {"type": "environment", "variable": "SPEC_SECRET_KEY_PASSWORD"},
            "druid.dynamic.config.provider": {
                "type": "environment",
                "variables": {"ssl.keystore.password": "SPEC_SECRET_STORE"},
            },
        }
    )
    assert found["sasl.password"] == "x"
    assert found["ssl.key.password"] == EnvironmentVariable(type="environment", variable="SPEC_SECRET_KEY_PASSWORD")
    assert found["ssl.keystore.password"] == EnvironmentVariable(type="environment", variable="SPEC_SECRET_STORE")
    assert "druid.dynamic.config.provider" not in found


def test_a_map_of_strings_is_read_like_what_stands_beside_it() -> None:
    held = {"sasl.jaas.config": f'{PLAIN} required username="me" password="x";', "client.id": "c"}
    provider = {"type": "mapString", "config": held}
    assert for_client({"druid.dynamic.config.provider": provider}) == {
        "sasl.username": "me",
        "sasl.password": "x",
        "client.id": "c",
    }
    assert faults(**{"druid.dynamic.config.provider": provider, "client.id": CANARY}) == {
        "/client.id": "is given twice: in the provider and outside of it"
    }


def test_row_7_a_reference_outside_of_a_secret_is_refused_at_its_place() -> None:
    """Row 7 of the security checklist: a reference outside of a secret is refused at its place."""
    provider = {"type": "environment", "variables": {"client.id": "DATABASE_URL", "plugin.library.paths": "X"}}
    assert set(faults(**{"druid.dynamic.config.provider": provider})) == {
        "/druid.dynamic.config.provider/variables/client.id",
        "/druid.dynamic.config.provider/variables/plugin.library.paths",
    }


# What must be there


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"security.protocol": "SASL_PLAINTEXT"}, {"sasl.username", "sasl.password"}),
        ({"security.protocol": "SASL_SSL", "sasl.username": "a", "sasl.password": "b"}, set()),
        ({"security.protocol": "SASL_SSL", "sasl.jaas.config": "x"}, set()),
        ({"ssl.certificate.pem": "x"}, {"ssl.key.pem"}),
        ({"ssl.keystore.key": "x"}, {"ssl.keystore.certificate.chain"}),
        ({"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "x"}, {"ssl.keystore.password"}),
        ({"ssl.keystore.location": "x.jks"}, {"ssl.keystore.password"}),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.location": "x"}, set()),
        ({"ssl.truststore.type": "PKCS12", "ssl.truststore.location": "x"}, set()),
        ({"ssl.truststore.location": "x.jks"}, set()),
    ],
)
def test_what_is_missing(given: dict[str, str], names: set[str]) -> None:
    assert set(missing(given)) == names


def test_secrets_are_what_they_should_be() -> None:
    assert {
        *("aws.secretAccessKey", "aws.sessionToken"),
        "sasl.jaas.config",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.password",
    } == SECRET


@pytest.mark.parametrize("given", [{}, {"reconnect.backoff.ms": "5000"}, {"reconnect.backoff.max.ms": "20000"}])
def test_a_broker_that_is_back_is_soon_spoken_to_unless_the_spec_says_when(given: dict[str, str]) -> None:
    config = {**quick_to_reconnect(given), **given}
    Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, **config}).close()
    del config["receive.message.max.bytes"]
    assert config == (given or {"reconnect.backoff.max.ms": "1000"})


@pytest.mark.parametrize(("given", "unpacked"), [({}, 256 * 2**20), ({"fetch.max.bytes": "1000000000"}, 1_000_000_512)])
def test_how_much_a_batch_may_unpack_to(given: dict[str, str], unpacked: int) -> None:
    config = {**quick_to_reconnect(given), **given}
    Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, **config}).close()
    assert int(config["receive.message.max.bytes"]) == unpacked
