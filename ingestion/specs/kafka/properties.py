"""Which Kafka client properties a spec may set, under Java's names and librdkafka's, and what clients are made of.

An allow-list: some client properties run commands, load libraries, or read files and URLs, so whatever is not named
here is refused. How they are read from a spec: ``property_reading``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ingestion.specs.kafka import key_stores, msk_login, token_endpoint
from ingestion.specs.kafka.addresses import AddressPolicy, checked_servers, parse_servers
from ingestion.specs.kafka.jaas import parse_login
from ingestion.specs.kafka.pem import CERTIFICATE, KEY, pem_of
from ingestion.specs.kafka.providers import PROVIDER, Value
from ingestion.specs.source_traits import SourceTraits

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", token_endpoint.MECHANISM, msk_login.MECHANISM)
_BYTES = ("org.apache.kafka.common.serialization.ByteArrayDeserializer",)
# Who is spoken to, and how: what a named connection says for all specs that name it.
CONNECTION_PREFIXES = ("bootstrap.servers", "security.protocol", "sasl.", "ssl.", "enable.ssl.", "https.", "aws.")
_HANDLER = "org.apache.kafka.common.security.oauthbearer.{}OAuthBearerLoginCallbackHandler"
MAX_UNPACKED = 256 * 1024 * 1024  # bytes; an executor has less than three times as much
_NO_GROUP = "no consumer group is joined"
_KEPT_HERE = "the metadata store keeps the offsets"


@dataclass(frozen=True)
class Property:
    """What becomes of a property that a spec may set."""

    client_name: str = ""  # librdkafka's name; empty if clients do not get the property as it is
    values: tuple[str, ...] = ()
    secret: bool = False
    no_effect: str = ""  # why it changes nothing here, but for sources of which ``but_for`` is true
    but_for: Callable[[SourceTraits], bool] = lambda traits: False


def _joins_a_group(traits: SourceTraits) -> bool:
    return traits.in_consumer_group


def _same_name(*names: str) -> dict[str, Property]:
    return {name: Property(name) for name in names}


PROPERTIES: dict[str, Property] = {
    **_same_name("bootstrap.servers", "client.id", "client.rack", "check.crcs", "connections.max.idle.ms", "debug"),
    **_same_name("fetch.max.bytes", "fetch.min.bytes", "max.partition.fetch.bytes", "metadata.max.age.ms"),
    **_same_name("reconnect.backoff.max.ms", "reconnect.backoff.ms", "socket.keepalive.enable", "socket.timeout.ms"),
    "fetch.max.wait.ms": Property("fetch.wait.max.ms"),
    "request.timeout.ms": Property("socket.timeout.ms"),
    "receive.buffer.bytes": Property("socket.receive.buffer.bytes"),
    "send.buffer.bytes": Property("socket.send.buffer.bytes"),
    "security.protocol": Property("security.protocol", PROTOCOLS),
    "sasl.mechanism": Property("sasl.mechanisms", MECHANISMS),
    "sasl.mechanisms": Property("sasl.mechanisms", MECHANISMS),
    "sasl.username": Property("sasl.username"),
    "sasl.password": Property("sasl.password", secret=True),
    "sasl.jaas.config": Property(secret=True),
    token_endpoint.CLIENT_ID: Property(token_endpoint.CLIENT_ID),
    token_endpoint.CLIENT_SECRET: Property(token_endpoint.CLIENT_SECRET, secret=True),
    token_endpoint.ENDPOINT: Property(token_endpoint.ENDPOINT),
    token_endpoint.SCOPE: Property(token_endpoint.SCOPE),
    token_endpoint.EXTENSIONS: Property(token_endpoint.EXTENSIONS),
    token_endpoint.METHOD: Property(values=("OIDC",)),
    "sasl.oauthbearer.client.credentials.client.id": Property(token_endpoint.CLIENT_ID),
    "sasl.oauthbearer.client.credentials.client.secret": Property(token_endpoint.CLIENT_SECRET, secret=True),
    "sasl.login.callback.handler.class": Property(values=(_HANDLER.format(""), _HANDLER.format("secured."))),
    "sasl.client.callback.handler.class": Property(values=(msk_login.HANDLER,)),
    **_same_name(msk_login.ACCESS_KEY, msk_login.REGION),
    msk_login.SECRET_KEY: Property(msk_login.SECRET_KEY, secret=True),
    msk_login.SESSION_TOKEN: Property(msk_login.SESSION_TOKEN, secret=True),
    "https.ca.pem": Property("https.ca.pem"),
    "ssl.ca.pem": Property("ssl.ca.pem"),
    "ssl.certificate.pem": Property("ssl.certificate.pem"),
    "ssl.key.pem": Property("ssl.key.pem", secret=True),
    "ssl.key.password": Property("ssl.key.password", secret=True),
    "ssl.truststore.type": Property(values=key_stores.FORMS),
    "ssl.truststore.certificates": Property("ssl.ca.pem"),
    "ssl.truststore.location": Property(),
    "ssl.truststore.password": Property(secret=True),
    "ssl.keystore.type": Property(values=key_stores.FORMS),
    "ssl.keystore.certificate.chain": Property("ssl.certificate.pem"),
    "ssl.keystore.key": Property("ssl.key.pem", secret=True),
    "ssl.keystore.location": Property(),
    "ssl.keystore.password": Property(secret=True),
    "ssl.endpoint.identification.algorithm": Property("ssl.endpoint.identification.algorithm", ("HTTPS", "NONE", "")),
    "enable.ssl.certificate.verification": Property("enable.ssl.certificate.verification", ("TRUE", "FALSE")),
    PROVIDER: Property(),
    "auto.commit.interval.ms": Property(no_effect=_KEPT_HERE),
    "auto.offset.reset": Property(no_effect="ioConfig sets where a new source starts"),
    "enable.auto.commit": Property(no_effect=_KEPT_HERE),
    "group.id": Property(no_effect="ioConfig sets the group"),
    "heartbeat.interval.ms": Property(no_effect=_NO_GROUP, but_for=_joins_a_group),
    "isolation.level": Property(
        values=("READ_COMMITTED", "READ_UNCOMMITTED"),
        no_effect="for a share group use ioConfig.groupConfig.isolationLevel",
        but_for=lambda traits: not traits.in_share_group,
    ),
    "key.deserializer": Property(values=_BYTES, no_effect="ioConfig.inputFormat sets how records are read"),
    "max.poll.interval.ms": Property(no_effect=_NO_GROUP, but_for=_joins_a_group),
    "max.poll.records": Property(
        "max.poll.records", no_effect="only share groups read it", but_for=lambda traits: traits.in_share_group
    ),
    "session.timeout.ms": Property(no_effect=_NO_GROUP, but_for=_joins_a_group),
    "value.deserializer": Property(values=_BYTES, no_effect="ioConfig.inputFormat sets how records are read"),
}
ALLOWED = frozenset(PROPERTIES)
SECRET = frozenset(name for name, known in PROPERTIES.items() if known.secret)
PEM_LABELS = {
    **dict.fromkeys(("ssl.ca.pem", "ssl.certificate.pem", "https.ca.pem"), CERTIFICATE),
    **dict.fromkeys(("ssl.truststore.certificates", "ssl.keystore.certificate.chain"), CERTIFICATE),
    **dict.fromkeys(("ssl.key.pem", "ssl.keystore.key"), KEY),
}


def without_effect(traits: SourceTraits) -> dict[str, str]:
    """What changes nothing for this source, with the reason."""
    return {n: rule.no_effect for n, rule in PROPERTIES.items() if rule.no_effect and not rule.but_for(traits)}


def quick_to_reconnect(properties: Mapping[str, str]) -> dict[str, str]:
    """What clients that go on for long begin with. A broker that is back is spoken to within a second, not ten.

    Where the spec says how soon it is tried again, that holds. A batch may unpack to ``MAX_UNPACKED`` bytes, or to
    more if ``fetch.max.bytes`` is more: by itself librdkafka gives up a partition for good at 100 MB of zstd.
    """
    fetched = properties.get("fetch.max.bytes", "")
    unpacked = max(MAX_UNPACKED, int(fetched) + 512 if fetched.isdecimal() else 0)
    soon = {} if "reconnect.backoff.ms" in properties else {"reconnect.backoff.max.ms": "1000"}
    return {**soon, "receive.message.max.bytes": str(min(unpacked, 2**31 - 1))}


def librdkafka_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties under librdkafka's names, for any client; what it is given once more it leaves as it is.

    Stores that are files must have been read before (see ``key_stores``). Raises ``ValueError``.
    """
    written: dict[str, str] = {}
    for name, value in properties.items():
        rule = PROPERTIES.get(name)
        if rule is None:
            written[name] = value
        elif name == "sasl.jaas.config":
            written |= parse_login(value)
        elif rule.client_name:
            written[rule.client_name] = _FOR_LIBRDKAFKA.get(name, str)(value)
    if token_endpoint.asks_for_tokens(written):
        written[token_endpoint.METHOD] = "oidc"
    return written


def _buffer_bytes(value: str) -> str:
    return "0" if value == "-1" else value  # the system's default, in Java and in librdkafka


def _pem_for(name: str) -> Callable[[str], str]:
    return lambda value: pem_of(value, PEM_LABELS[name])


_FOR_LIBRDKAFKA: dict[str, Callable[[str], str]] = {
    **{name: _pem_for(name) for name in PEM_LABELS},
    "receive.buffer.bytes": _buffer_bytes,
    "send.buffer.bytes": _buffer_bytes,
    "sasl.mechanism": str.upper,
    "sasl.mechanisms": str.upper,
    "ssl.endpoint.identification.algorithm": lambda value: value.lower() or "none",
}


def checked_client_config(properties: Mapping[str, str], policy: AddressPolicy) -> dict[str, Any]:
    """A client's configuration, for bootstrap servers whose addresses have all been found allowed. Blocks: it resolves.

    Without TLS the client is given these addresses, and not the names: it connects to what was checked. With TLS it
    needs the names, since the broker's certificate is for them; so it does of a token endpoint. Raises
    ``AddressProblem``, ``ValueError``.
    """
    config = msk_login.with_token(librdkafka_properties(properties))
    if token_endpoint.asks_for_tokens(config):
        policy.resolve(*token_endpoint.parse_endpoint(config.get(token_endpoint.ENDPOINT, "")))
    addresses = checked_servers(parse_servers(config.get("bootstrap.servers", "")), policy)
    if not config.get("security.protocol", "PLAINTEXT").upper().endswith("SSL"):
        config["bootstrap.servers"] = ",".join(addresses)
    return config


def insecure(properties: Mapping[str, Value]) -> dict[str, str]:
    """The properties that only an installation which allows it may use, each with the reason."""
    values = {name: value.lower() for name, value in properties.items() if isinstance(value, str)}
    faults: dict[str, str] = {}
    if values.get("debug"):
        faults["debug"] = "it can log what is sent, including secrets"
    if values.get("enable.ssl.certificate.verification") == "false":
        faults["enable.ssl.certificate.verification"] = "without it anyone can impersonate the broker"
    if values.get("ssl.endpoint.identification.algorithm") in ("", "none"):
        faults["ssl.endpoint.identification.algorithm"] = (
            "without it any holder of a certificate can impersonate the broker"
        )
    return faults


def missing(properties: Mapping[str, Value]) -> dict[str, str]:
    """What must be there beside what is, once the secrets that are kept apart have been added; with the reason."""
    missing: dict[str, str] = {}
    if msk_login.is_msk_login(properties):
        missing |= dict.fromkeys(
            msk_login.missing_properties(properties), "AWS_MSK_IAM needs it: Headgate uses no keys of the machine"
        )
    elif str(properties.get("security.protocol", "")).upper().startswith("SASL_"):
        missing |= dict.fromkeys(_login_needs(properties), "a SASL login needs it")
    for name, needed in _NEEDS.items():
        if name in properties and needed not in properties:
            missing[needed] = f"{name} needs it"
    sealed = "ssl.keystore.location" in properties and key_stores.store_form(properties, "ssl.keystore") != "PEM"
    if sealed and "ssl.keystore.password" not in properties:
        missing["ssl.keystore.password"] = "the key store can't be opened without it"
    return missing


def _login_needs(properties: Mapping[str, Value]) -> list[str]:
    """What a login still lacks. A login module, which may be a reference, has it all but the token endpoint."""
    module = "sasl.jaas.config" in properties
    if token_endpoint.asks_for_tokens(properties):
        present = {PROPERTIES[name].client_name for name in properties if name in PROPERTIES}
        return [n for n in token_endpoint.NEEDED if n not in present and not (module and n != token_endpoint.ENDPOINT)]
    return [] if module else sorted({"sasl.username", "sasl.password"} - set(properties))


_NEEDS = {
    "ssl.certificate.pem": "ssl.key.pem",
    "ssl.key.pem": "ssl.certificate.pem",
    "ssl.keystore.certificate.chain": "ssl.keystore.key",
    "ssl.keystore.key": "ssl.keystore.certificate.chain",
}
