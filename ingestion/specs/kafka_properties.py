"""Which Kafka client properties a spec may set: an allow-list.

Some client properties run commands, load libraries, or read files and URLs (``sasl.jaas.config``,
``plugin.library.paths``, ``sasl.oauthbearer.token.endpoint.url``): whatever is not named here is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

ALLOWED = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "client.rack",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "max.partition.fetch.bytes",
        "max.poll.records",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "security.protocol",
        "socket.keepalive.enable",
        "socket.timeout.ms",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
        "ssl.ca.pem",
    }
)
SECRET = frozenset({"sasl.password"})
# Java's name → librdkafka's; None: has no counterpart and is left out.
_FOR_LIBRDKAFKA: dict[str, str | None] = {
    "request.timeout.ms": "socket.timeout.ms",
    "max.poll.records": None,
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "sasl.mechanism": "sasl.mechanisms",
}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MASK = "******"


def check_kafka_properties(properties: Mapping[str, str]) -> None:
    """Raise ``ValueError`` with every property that is refused, or when there is no ``bootstrap.servers``."""
    refused = sorted(set(properties) - ALLOWED)
    faults = [f"property {name!r} is not allowed" for name in refused]
    if not properties.get("bootstrap.servers", "").strip():
        faults.append("'bootstrap.servers' is required, for example kafka-broker:9092")
    protocol = properties.get("security.protocol")
    if protocol is not None and protocol.upper() not in _PROTOCOLS:
        faults.append(f"'security.protocol' must be one of {', '.join(_PROTOCOLS)}")
    if faults:
        raise ValueError("; ".join(faults))


def librdkafka_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties under librdkafka's names, for any client made from a spec."""
    named = {_FOR_LIBRDKAFKA.get(k, k): v for k, v in properties.items()}
    return {k: v for k, v in named.items() if k is not None}


def masked(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with secrets hidden, fit for an answer or a page."""
    return {k: MASK if k in SECRET else v for k, v in properties.items()}
