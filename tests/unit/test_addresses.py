"""Which addresses a spec may name: row 3 of the security checklist, and row 4 for registries' addresses."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from controlplane.config import env
from ingestion.specs.kafka.addresses import (
    MAX_SERVERS,
    AddressPolicy,
    AddressRefused,
    AddressUnknown,
    checked_servers,
    parse_servers,
)
from ingestion.specs.kafka.properties import checked_client_config

PRODUCTION = AddressPolicy()


def policy(allowed: str = "", denied: str = "", ports: str = "1-65535") -> AddressPolicy:
    return AddressPolicy.of(allowed.split(), denied.split(), ports.split())


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "this machine"),
        ("0.1.2.3", "this machine"),
        ("::", "this machine"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("169.254.169.254", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("fd20:ce::254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("168.63.129.16", "metadata"),
        ("192.0.0.192", "metadata"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:169.254.169.254", "metadata"),
        ("::127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b:1::a9fe:a9fe", "metadata"),
        ("2002:7f00:1::", "loopback"),
        ("2001:0:a9fe:a9fe::", "metadata"),
    ],
)
def test_row_3_addresses_that_are_refused(address: str, reason: str) -> None:
    """Row 3 of the security checklist: addresses that are refused."""
    assert reason in PRODUCTION.refusal(address, 9092)


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "172.16.3.4", "192.168.1.1", "8.8.8.8", "fd00::1", "2001:db8::1", "::ffff:10.0.0.1"]
)
def test_row_3_private_and_public_addresses_are_allowed(address: str) -> None:
    """Row 3 of the security checklist: private and public addresses are allowed."""
    assert PRODUCTION.refusal(address, 9092) == ""


@pytest.mark.parametrize(
    ("rules", "address", "allowed"),
    [
        ({"allowed": "127.0.0.0/8"}, "127.0.0.1", True),  # as specific as the built-in rule
        ({"allowed": "127.0.0.0/8"}, "::ffff:127.0.0.1", True),
        ({"allowed": "127.0.0.1"}, "127.0.0.2", False),
        ({"allowed": "0.0.0.0/0 ::/0"}, "127.0.0.1", False),  # less specific than the built-in rule
        ({"allowed": "169.254.0.0/16"}, "169.254.7.7", True),
        ({"allowed": "169.254.0.0/16"}, "169.254.169.254", False),
        ({"denied": "10.0.0.0/8"}, "10.1.2.3", False),
        ({"denied": "10.0.0.0/8", "allowed": "10.1.0.0/16"}, "10.1.2.3", True),
        ({"denied": "10.1.0.0/16", "allowed": "10.0.0.0/8"}, "10.1.2.3", False),
        ({"denied": "10.1.0.0/16", "allowed": "10.1.0.0/16"}, "10.1.2.3", False),
        ({"denied": "0.0.0.0/0 ::/0", "allowed": "10.9.0.0/16"}, "10.9.0.1", True),
        ({"denied": "0.0.0.0/0 ::/0", "allowed": "10.9.0.0/16"}, "8.8.8.8", False),
        ({"denied": "0.0.0.0/0 ::/0", "allowed": "10.9.0.0/16"}, "2001:db8::1", False),
        ({"denied": "2001:db8::/32"}, "2001:db8::1", False),
    ],
)
def test_the_most_specific_network_decides(rules: dict[str, str], address: str, allowed: bool) -> None:
    assert (policy(**rules).refusal(address, 9092) == "") is allowed


@pytest.mark.parametrize(("port", "allowed"), [(22, False), (25, False), (80, True), (443, True), (1023, False)])
def test_row_3_ports(port: int, allowed: bool) -> None:
    """Row 3 of the security checklist: ports."""
    assert (PRODUCTION.refusal("10.0.0.1", port) == "") is allowed
    assert PRODUCTION.refusal("10.0.0.1", 9092) == ""


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "localhost", "::1"])
def test_row_3_other_ways_to_write_loopback(host: str) -> None:
    """Row 3 of the security checklist: other ways to write loopback."""
    with pytest.raises(AddressRefused, match="is a loopback address: Headgate may not connect to it"):
        PRODUCTION.resolve(host, 9092)


def test_a_refusal_names_the_setting_that_changes_it() -> None:
    with pytest.raises(AddressRefused) as of_headgate:
        PRODUCTION.check("kafka", "127.0.0.1", 9092)
    assert str(of_headgate.value).endswith("may not connect to it unless HEADGATE_ALLOWED_NETWORKS names its network")
    with pytest.raises(AddressRefused) as of_the_operator:
        policy(denied="10.0.0.0/8").check("kafka", "10.1.2.3", 9092)
    assert str(of_the_operator.value).endswith("HEADGATE_DENIED_NETWORKS denies: Headgate may not connect to it")


def answering(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """A resolver that gives these addresses, one list a question; returns the hosts it is asked for."""
    asked: list[str] = []
    left = list(answers)

    def resolver(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in left.pop(0)]

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    return asked


def test_row_3_all_addresses_of_a_name_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 3 of the security checklist: all addresses of a name are checked."""
    answering(monkeypatch, ["10.0.0.1", "127.0.0.1"])
    with pytest.raises(AddressRefused, match=r"kafka \(127.0.0.1\) is a loopback address"):
        PRODUCTION.resolve("kafka", 9092)


def test_row_3_rebinding_a_client_without_tls_connects_to_what_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 3 of the security checklist: rebinding a client without TLS connects to what was checked."""
    asked = answering(monkeypatch, ["10.0.0.1", "10.0.0.2", "fd00::1"], ["127.0.0.1"])
    config = checked_client_config({"bootstrap.servers": "kafka:9092"}, PRODUCTION)
    assert config["bootstrap.servers"] == "10.0.0.1:9092,10.0.0.2:9092,[fd00::1]:9092"
    assert asked == ["kafka"]
    with pytest.raises(AddressRefused):
        checked_client_config({"bootstrap.servers": "kafka:9092"}, PRODUCTION)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_row_3_a_client_with_tls_keeps_the_name_that_the_certificate_is_for(
    monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """Row 3 of the security checklist: a client with TLS keeps the name that the certificate is for."""
    answering(monkeypatch, ["10.0.0.1"], ["127.0.0.1"])
    properties = {"bootstrap.servers": "kafka:9092", "security.protocol": protocol}
    assert checked_client_config(properties, PRODUCTION)["bootstrap.servers"] == "kafka:9092"
    with pytest.raises(AddressRefused):
        checked_client_config(properties, PRODUCTION)


def test_names_that_nobody_knows() -> None:
    with pytest.raises(AddressUnknown, match=r"nowhere.invalid can't be resolved"):
        PRODUCTION.resolve("nowhere.invalid", 9092)
    with pytest.raises(AddressUnknown):
        PRODUCTION.resolve("a" * 64, 9092)
    with pytest.raises(AddressUnknown, match=r"nowhere.invalid .*; nobody.invalid"):
        checked_servers([("nowhere.invalid", 1), ("nobody.invalid", 1)], PRODUCTION)
    assert checked_servers([("nowhere.invalid", 9092), ("10.0.0.1", 9092)], PRODUCTION) == ["10.0.0.1:9092"]


def test_servers() -> None:
    assert parse_servers("a:1, b-1.example.org:65535,[::1]:9092,") == [
        ("a", 1),
        ("b-1.example.org", 65535),
        ("::1", 9092),
    ]


@pytest.mark.parametrize(
    "text",
    [
        *["", " , ", "kafka", "kafka:0", "kafka:65536", "kafka:x", "PLAINTEXT://kafka:9092", "user@kafka:9092"],
        *["kafka:9092/x", "kafka:9092;b:1", "::1:9092", "[::1%lo]:9092", "ka fka:9092", "kafka:9092\nb:1", "ä:1"],
        ",".join(f"k{i}:1" for i in range(MAX_SERVERS + 1)),
    ],
)
def test_what_is_no_list_of_servers(text: str) -> None:
    with pytest.raises(ValueError, match=r"is required|must be host:port|at most"):
        parse_servers(text)


@pytest.mark.parametrize(
    ("allowed", "denied", "ports"),
    [
        (["127.0.0.1/8"], [], []),
        (["kafka"], [], []),
        ([], ["10.0.0.0/33"], []),
        ([], [], ["0"]),
        ([], [], ["70000"]),
        ([], [], ["9-1"]),
        ([], [], ["http"]),
    ],
)
def test_a_policy_that_makes_no_sense_is_told(allowed: list[str], denied: list[str], ports: list[str]) -> None:
    with pytest.raises(env.EnvironmentProblem, match="HEADGATE_ALLOWED_NETWORKS"):
        env.address_policy(allowed, denied, ports)


def test_a_policy_travels_as_json() -> None:
    written = policy("127.0.0.0/8 ::1", "10.0.0.0/8", "443 1024-2048")
    assert AddressPolicy.model_validate_json(written.model_dump_json()) == written
