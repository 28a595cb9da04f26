"""A spec's ``consumerProperties`` as they are read: every fault at its property, never with a value of one.

Java's forms that hold several things are taken apart: a login module into user name and password, Druid's providers
into texts and references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from ingestion.specs.errors import LACKING
from ingestion.specs.kafka import msk_login
from ingestion.specs.kafka.addresses import parse_servers
from ingestion.specs.kafka.jaas import parse_login
from ingestion.specs.kafka.pem import pem_of
from ingestion.specs.kafka.properties import CONNECTION_PREFIXES, MECHANISMS, PEM_LABELS, PROPERTIES, Property
from ingestion.specs.kafka.providers import PROVIDER, EnvironmentVariable, Value, parse_secret, provider_entries
from ingestion.specs.kafka.token_endpoint import ENDPOINT, parse_endpoint
from ingestion.specs.limits import LONGEST_PROPERTY

# Why some are refused; the others simply are not on the list.
_REASONS = (
    (r"sasl\.oauthbearer\..*", "OAUTHBEARER works only with client credentials of a token endpoint, without files"),
    (r"sasl\.login\..*|.*\.callback\.handler\.class", "it makes the client fetch a file or an address, or load code"),
    (r"sasl\.kerberos\..*", "the Kafka client here is built without Kerberos; use SCRAM, OAUTHBEARER or TLS"),
    (
        r"plugin\.library\.paths|ssl\.engine\..*|.*providers?|ssl\.provider|.*\.class(es)?|metric\.reporters",
        "it makes the client load code",
    ),
    (
        r"ssl\.(ca|key|certificate|crl)\.location",
        "files are not read; give the PEM text in ssl.ca.pem, ssl.certificate.pem and ssl.key.pem",
    ),
)

_UNBUILT = {"GSSAPI": ": the Kafka client here is built without Kerberos"}
Place = tuple[str, ...]


class _Faults:
    """What is wrong, by the place in ``consumerProperties``; the empty place is the whole."""

    def __init__(self) -> None:
        self.found: list[tuple[Place, PydanticCustomError]] = []

    def add(self, message: str, *place: str) -> None:
        self.found.append((place, _property_error(message)))

    def add_missing(self, message: str, *place: str) -> None:
        """A property that would have to be there."""
        self.found.append((place, PydanticCustomError(LACKING, "{message}", {"message": message})))

    def attempt(self, do: Callable[[], Any], *place: str) -> Any:
        """What ``do`` gives; its ``ValueError`` is a fault at the place, and gives None."""
        try:
            return do()
        except ValueError as error:
            self.add(str(error), *place)
            return None

    def raise_any(self) -> None:
        if self.found:
            _raise_faults(self.found)


def refuse(faults: Mapping[str, str]) -> None:
    """Raise ``ValidationError`` if there are any: property → what is wrong. For validators of an ioConfig."""
    if faults:
        _raise_faults([(("consumerProperties", name), _property_error(message)) for name, message in faults.items()])


def refuse_at(*place: str, message: str) -> None:
    """Raise ``ValidationError`` for the field at a place below the one that is validated."""
    _raise_faults([(place, _property_error(message))])


def _property_error(message: str) -> PydanticCustomError:
    return PydanticCustomError("kafka_property", "{message}", {"message": message})


def _raise_faults(faults: Iterable[tuple[Place, PydanticCustomError]]) -> None:
    lines = [InitErrorDetails(type=kind, loc=place, input=None) for place, kind in faults]
    raise ValidationError.from_exception_data("consumerProperties", lines)


class Absent(dict[str, Any]):
    """Stands where a spec has no ``consumerProperties``: needed, unless it names a connection."""


def read_properties(written: Any, info: ValidationInfo) -> Any:
    """Kafka's properties as a spec keeps them: texts, and references for secrets; one login, no provider.

    Beside a ``connection`` they say nothing of it. Raises ``ValidationError`` with every fault at its property, without
    any value of one.
    """
    if not isinstance(written, dict):
        return written
    connection = (info.data or {}).get("connection")
    if isinstance(written, Absent) and connection is None:
        raise PydanticCustomError("missing", "required field is missing")
    faults = _Faults()
    properties: dict[str, Value] = {}
    for place, name, raw in _entries(written, faults):
        value = _value(name, raw, place, faults)
        if name in properties:
            faults.add("is given twice: in the provider and outside of it", *place)
        elif value is not None:
            properties[name] = value
    _take_login_apart(properties, faults)
    if connection is None:
        _check_servers(properties, faults)
    else:
        _check_beside(connection, written, faults)
    _check_together(properties, faults)
    faults.raise_any()
    return properties


KafkaProperties = Annotated[dict[str, Value], BeforeValidator(read_properties)]


def _entries(written: dict[str, Any], faults: _Faults) -> Iterator[tuple[Place, str, Any]]:
    """Every property with its place, including those of Druid's dynamic provider."""
    for name, raw in written.items():
        if name != PROVIDER:
            yield (name,), name, raw
            continue
        try:
            inside, entries = provider_entries(raw)
        except ValueError as error:
            faults.add(str(error), name)
        else:
            yield from (((name, inside, inner), inner, value) for inner, value in entries.items())


def _value(name: str, written: Any, place: Place, faults: _Faults) -> Value | None:
    """A property's value as it is kept; None after a fault."""
    rule = PROPERTIES.get(name)
    if rule is None or name == PROVIDER:
        reason = next((why for pattern, why in _REASONS if re.fullmatch(pattern, name)), "")
        faults.add(f"property {name[:200]!r} is not allowed" + (f": {reason}" if reason else ""), *place)
        return None
    raw = written
    if rule.secret:
        raw = faults.attempt(lambda: parse_secret(written), *place)
        if raw is None or isinstance(raw, EnvironmentVariable):
            return raw
    text = str(raw).lower() if isinstance(raw, bool) else str(raw) if isinstance(raw, int | float) else raw
    if not isinstance(text, str):
        faults.add("must be text: only passwords and keys may use a password provider", *place)
        return None
    if len(text) > LONGEST_PROPERTY:
        faults.add(f"has {len(text)} characters; {LONGEST_PROPERTY} at most", *place)
        return None
    _check_value(name, rule, text, place, faults)
    return text


def _check_value(name: str, rule: Property, text: str, place: Place, faults: _Faults) -> None:
    if rule.values and text.upper() not in {v.upper() for v in rule.values}:
        faults.add(_wrong_choice(name, rule, text), *place)
    elif name in PEM_LABELS:
        faults.attempt(lambda: pem_of(text, PEM_LABELS[name]), *place)
    elif name == "bootstrap.servers":
        faults.attempt(lambda: parse_servers(text), *place)
    elif name == ENDPOINT:
        faults.attempt(lambda: parse_endpoint(text), *place)
    elif name == msk_login.REGION:
        faults.attempt(lambda: msk_login.checked_region(text), *place)
    elif "\0" in text:
        faults.add("must not contain a NUL character", *place)


def _wrong_choice(name: str, rule: Property, text: str) -> str:
    choices = ", ".join(v for v in rule.values if v)
    if name.startswith("sasl.mechanism"):
        return f"must be one of {choices}{_UNBUILT.get(text.upper(), '')}"
    if name == "sasl.login.callback.handler.class":
        return "must be Kafka's own OAuthBearerLoginCallbackHandler, or left out: others load code"
    if name == "sasl.client.callback.handler.class":
        return "must be IAMClientCallbackHandler of Amazon MSK, or left out: others load code"
    if name.endswith(".deserializer"):
        return f"must be {choices}, or left out: ioConfig.inputFormat sets how records are read"
    return f"{name!r} must be one of {choices}"


def _take_login_apart(properties: dict[str, Value], faults: _Faults) -> None:
    written = properties.get("sasl.jaas.config")
    login: dict[str, str] | None = None
    if isinstance(written, str):
        mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", ""))
        login = faults.attempt(lambda: parse_login(written, str(mechanism)), "sasl.jaas.config")
        del properties["sasl.jaas.config"]
    inside = ("sasl.username", "sasl.password") if login is None else tuple(login)
    for name in properties if written is not None else ():
        if PROPERTIES[name].client_name in inside:
            faults.add("is already in sasl.jaas.config: give one of the two", name)
    properties |= login or {}


def _check_servers(properties: dict[str, Value], faults: _Faults) -> None:
    if "bootstrap.servers" not in properties and not any(p == ("bootstrap.servers",) for p, _ in faults.found):
        faults.add("'bootstrap.servers' is required, for example kafka-broker:9092")


def _check_beside(connection: str, written: dict[str, Any], faults: _Faults) -> None:
    for name in written:
        if name.startswith(CONNECTION_PREFIXES) or name == PROVIDER:
            faults.add(f"belongs to the connection {connection!r}: change it there, or name no connection", name)


def _check_together(properties: dict[str, Value], faults: _Faults) -> None:
    protocol = str(properties.get("security.protocol", "PLAINTEXT")).upper()
    if protocol.startswith("SASL_") and not {"sasl.mechanism", "sasl.mechanisms"} & set(properties):
        faults.add_missing(f"sasl.mechanism is required with {protocol}: {', '.join(MECHANISMS)}", "sasl.mechanism")
    if not msk_login.is_msk_login(properties):
        for name in sorted(set(msk_login.LOGIN_PROPERTIES) & set(properties)):
            faults.add(f"needs sasl.mechanism {msk_login.MECHANISM}", name)
    named: dict[str, str] = {}
    for name, value in properties.items():
        target = PROPERTIES[name].client_name
        if target and properties.get(named.setdefault(target, name)) != value:
            faults.add(f"contradicts {named[target]}, which means the same", name)
    for store, inline in (("truststore", "certificates"), ("keystore", "certificate.chain")):
        _check_store(properties, f"ssl.{store}", inline, faults)


def _check_store(properties: Mapping[str, Value], store: str, inline: str, faults: _Faults) -> None:
    kind = str(properties.get(f"{store}.type", "")).upper()
    texts = {f"{store}.{inline}", f"{store}.key"} & set(properties)
    location = f"{store}.location"
    if texts and kind != "PEM":
        faults.add(f"needs {store}.type PEM", min(texts))
    if location in properties and texts:
        faults.add(f"give either the file, or {min(texts)}", location)
    if kind in ("PKCS12", "JKS") and location not in properties:
        faults.add(f"needs {location}", f"{store}.type")
