"""A connection that does not work says why: each cause is made for real, and named."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.test import Client

from controlplane.connections.kafka import KafkaProblem, topic_names
from controlplane.connections.probe import NeededRights, try_kafka
from controlplane.connections.probe_report import ConnectionReport
from controlplane.connections.registry_probe import try_registry
from ingestion.specs.kafka.addresses import AddressPolicy
from tests.support.broker import Broker
from tests.support.certificates import Identity, authority
from tests.support.secured_kafka import DEAF, PASSWORD, PLAIN, SCRAM, Secured, full_port, login, mutual, read, secured

__all__ = ["secured"]  # a fixture

CANARY = "canary-4711"


def tried(properties: dict[str, Any], topic: str = "") -> ConnectionReport:
    verdict = try_kafka(read(properties), NeededRights(topic))
    assert PASSWORD not in repr(verdict) and CANARY not in repr(verdict)
    assert verdict.ok or (verdict.message and verdict.advice and not verdict.steps[-1].ok)
    return verdict


@pytest.fixture
def silent() -> Iterator[int]:
    """A port where connections are taken and nothing is said."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@pytest.fixture
def full() -> Iterator[int]:
    with full_port() as port:
        yield port


# What works


@pytest.mark.parametrize("listener", ["LOGIN", "LOGINTLS"])
@pytest.mark.parametrize(("mechanism", "jaas"), [("PLAIN", PLAIN), ("SCRAM-SHA-512", SCRAM)])
def test_a_login_that_is_right(secured: Secured, listener: str, mechanism: str, jaas: str) -> None:
    verdict = tried(login(secured, listener, mechanism, jaas), secured.topic)
    assert verdict.ok and verdict.message == "", verdict
    names = [step.name for step in verdict.steps]
    address = secured.addresses[listener]
    assert names[:3] == ["Properties", "DNS localhost", f"TCP {address}"]
    assert (f"TLS {address}" in names) is (listener == "LOGINTLS")
    assert names[-1] == f"Topic {secured.topic}"


def test_a_login_by_certificate(secured: Secured) -> None:
    keys = {"ssl.ca.pem": secured.root.pem, "ssl.certificate.pem": secured.client.pem}
    keys |= {"ssl.key.pem": secured.client.key_pem("pass phrase"), "ssl.key.password": "pass phrase"}
    assert tried(mutual(secured, **keys)).ok


def test_one_of_two_servers_is_enough_and_the_other_is_told_of(secured: Secured) -> None:
    given = login(secured, "LOGIN", "PLAIN", PLAIN)
    verdict = tried({**given, "bootstrap.servers": f"nowhere.invalid:9092,{given['bootstrap.servers']}"})
    assert verdict.ok and "nowhere.invalid has no address" in verdict.message


# What does not, by cause


def test_dns() -> None:
    verdict = tried({"bootstrap.servers": "nowhere.invalid:9092"})
    assert (verdict.cause, verdict.label) == ("dns", "DNS")
    assert "nowhere.invalid has no address" in verdict.message


def test_tcp_refused() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    verdict = tried({"bootstrap.servers": f"127.0.0.1:{port}"})
    assert verdict.cause == "tcp" and "refuses the connection" in verdict.message


def test_tcp_timed_out(full: int) -> None:
    verdict = tried({"bootstrap.servers": f"127.0.0.1:{full}"})
    assert verdict.cause == "tcp" and "does not answer within 3 s" in verdict.message


def test_row_3_a_test_goes_to_no_denied_address(settings: Any) -> None:
    """Row 3 of the security checklist: a test goes to no denied address."""
    settings.ADDRESS_POLICY = AddressPolicy()
    verdict = tried({"bootstrap.servers": "localhost:9092"})
    assert verdict.cause == "address" and "is a loopback address" in verdict.message
    registry = try_registry({"url": "http://localhost:8081"})
    assert registry.cause == "address" and "is a loopback address" in registry.message


def test_row_3_a_test_follows_no_broker_to_a_denied_address(secured: Secured) -> None:
    """Row 3 of the security checklist: a test follows no broker to a denied address."""
    verdict = tried({"bootstrap.servers": secured.addresses["ELSEWHERE"]})
    assert verdict.cause == "address"
    assert "advertised at 169.254.169.254:9092" in verdict.message and "advertised.listeners" in verdict.advice


def test_an_advertised_address_that_says_nothing(secured: Secured) -> None:
    verdict = tried({"bootstrap.servers": secured.addresses[DEAF]})
    assert verdict.cause == "tcp" and "advertised.listeners" in verdict.advice
    assert "is advertised at 127.0.0.1:" in verdict.message and "does not answer within 3 s" in verdict.message


def test_something_that_says_nothing(silent: int) -> None:
    verdict = tried({"bootstrap.servers": f"127.0.0.1:{silent}"})
    assert verdict.cause == "protocol" and "sends no answer" in verdict.message


def test_the_port_of_a_controller(broker: Broker) -> None:
    """Kafka's client says of it that a feature is not supported, which is no help."""
    servers = {"bootstrap.servers": f"127.0.0.1:{broker.kafka.controller_port}"}
    verdict = tried(servers)
    assert verdict.cause == "protocol" and "does not answer like a broker" in verdict.message
    assert "may be a controller" in verdict.advice
    with pytest.raises(KafkaProblem, match=r"the port of a controller.*bootstrap\.servers"):
        topic_names(read(servers))


def test_plain_text_on_a_port_with_tls(secured: Secured) -> None:
    verdict = tried({"bootstrap.servers": secured.addresses["LOGINTLS"]})
    assert verdict.cause == "tls" and "speaks TLS, but the connection does not" in verdict.message


def test_tls_on_a_port_without(secured: Secured) -> None:
    given = login(secured, "LOGINTLS", "PLAIN", PLAIN)
    verdict = tried({**given, "bootstrap.servers": secured.addresses["LOGIN"]})
    assert verdict.cause == "tls" and "speaks Kafka without TLS" in verdict.message


@pytest.mark.parametrize("known", [authority("other"), authority()], ids=["another one", "one whose key has changed"])
def test_a_certificate_that_nobody_known_has_signed(secured: Secured, known: Identity) -> None:
    given = {**login(secured, "LOGINTLS", "PLAIN", PLAIN), "ssl.truststore.certificates": known.pem}
    verdict = tried(given)
    assert verdict.cause == "tls" and "not signed by one of the authorities of ssl.ca.pem" in verdict.message


def test_a_certificate_for_another_name(secured: Secured) -> None:
    given = mutual(secured, **{"ssl.ca.pem": secured.root.pem})
    verdict = tried({**given, "bootstrap.servers": secured.addresses["UNNAMED"]})
    assert verdict.cause == "tls" and "not for 127.0.0.2" in verdict.message


def test_a_client_without_the_certificate_that_is_wanted(secured: Secured) -> None:
    verdict = tried(mutual(secured, **{"ssl.ca.pem": secured.root.pem}))
    assert verdict.cause == "tls" and "certificate" in f"{verdict.message} {verdict.advice}"
    assert "ssl.certificate.pem" in verdict.advice


@pytest.mark.parametrize(("mechanism", "jaas"), [("PLAIN", PLAIN), ("SCRAM-SHA-512", SCRAM)])
def test_a_wrong_password(secured: Secured, mechanism: str, jaas: str) -> None:
    verdict = tried(login(secured, "LOGINTLS", mechanism, jaas.replace("4711", CANARY)))
    assert verdict.cause == "login" and "refuses the login of 'me'" in verdict.message


def test_a_mechanism_that_is_not_offered(secured: Secured) -> None:
    verdict = tried(login(secured, "LOGIN", "SCRAM-SHA-256", SCRAM))
    assert verdict.cause == "login" and "does not offer SCRAM-SHA-256" in verdict.message
    assert "PLAIN" in verdict.advice and "SCRAM-SHA-512" in verdict.advice


def test_no_login_where_one_is_wanted(secured: Secured) -> None:
    verdict = tried({"bootstrap.servers": secured.addresses["LOGIN"]})
    assert verdict.cause == "login" and "asks for a login" in verdict.message
    assert "SASL_PLAINTEXT" in verdict.advice


def test_a_topic_that_there_is_not(secured: Secured) -> None:
    verdict = tried(login(secured, "LOGIN", "PLAIN", PLAIN), "no-such-topic")
    assert verdict.cause == "authorisation" and "no topic 'no-such-topic'" in verdict.message


# Registries


@pytest.fixture
def registry() -> Iterator[dict[str, Any]]:
    """A server that answers as it is told: ``status`` and ``body``; it keeps the login that it was sent."""
    told: dict[str, Any] = {"status": 200, "body": b'["orders-value"]'}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told["login"], told["path"] = self.headers.get("Authorization"), self.path
            self.send_response(told["status"])
            self.end_headers()
            self.wfile.write(told["body"])

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    told["url"] = f"http://127.0.0.1:{server.server_address[1]}"
    yield told
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (200, b'["orders-value"]', ""),
        (401, b"", "login"),
        (403, b"", "authorisation"),
        (404, b"", "protocol"),
        (302, b"", "protocol"),
        (200, b"<html>", "protocol"),
    ],
)
def test_a_registry(registry: dict[str, Any], status: int, body: bytes, cause: str) -> None:
    registry.update(status=status, body=body)
    login = {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": f"fred:{CANARY}"}
    verdict = try_registry({"url": registry["url"], "config": login})
    assert verdict.cause == cause and verdict.ok is (cause == ""), verdict
    assert registry["login"].startswith("Basic ") and registry["path"] == "/subjects"
    assert CANARY not in repr(verdict)


def test_https_at_a_registry_without(registry: dict[str, Any]) -> None:
    verdict = try_registry({"url": registry["url"].replace("http:", "https:")})
    assert verdict.cause == "tls"


# For users


def test_who_may_test(clients: dict[str, Client]) -> None:
    """The cast's connection leads to where nobody listens."""
    address = "/api/v1/connections/alpha/orders-schemas/test/"
    for role, status in (("owner", 200), ("operator", 200), ("viewer", 403), ("outsider", 404)):
        assert clients[role].post(address, {}, content_type="application/json").status_code == status
    said = clients["operator"].post(address, {}, content_type="application/json").json()
    assert (said["ok"], said["cause"]) == (False, "tcp") and said["message"] and said["advice"]
    assert said["steps"][-1]["ok"] is False


def test_a_draft_is_tested_with_the_secrets_that_are_stored(secured: Secured, clients: dict[str, Client]) -> None:
    given = {**login(secured, "LOGIN", "PLAIN", None), "sasl.username": "me"}
    del given["sasl.jaas.config"]
    body = {"name": "mine", "kind": "kafka", "properties": {**given, "sasl.password": PASSWORD}}
    answer = clients["owner"].post("/api/v1/connections/", json.dumps(body), content_type="application/json")
    assert answer.status_code == 201, answer.content
    draft = {"kind": "kafka", "properties": {**given, "client.id": "other"}, "like": "mine"}
    address = "/api/v1/connections/-/test/"

    def said(document: Any, role: str = "owner") -> Any:
        return clients[role].post(address, json.dumps(document), content_type="application/json")

    assert said(draft).json()["ok"] is True
    elsewhere = {**draft, "properties": {**given, "bootstrap.servers": "localhost:1024"}}
    assert said(elsewhere).status_code == 400  # the password would go to somebody else
    assert said({**draft, "like": "none"}).status_code == 404
    registry = {"kind": "schema_registry", "properties": {"url": "http://127.0.0.1:1"}, "like": "mine"}
    assert said(registry).status_code == 400
    assert said(draft, "operator").status_code == 403
