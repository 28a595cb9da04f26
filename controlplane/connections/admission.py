"""May Headgate connect to what a spec names? One call, before anything is stored or tried.

It is asked of every spec that is submitted or checked. What it let through is judged again by whoever connects, since
a name may lead elsewhere by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooSlow
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from controlplane.common.errors import invalid_spec
from controlplane.connections.client_properties import PropertyProblem, client_properties, kafka_values, resolve
from controlplane.connections.kafka import check_configuration
from ingestion.specs.errors import SpecError, issue_at
from ingestion.specs.formats.input_format import InputFormat, RegistryDecoder, registries_of
from ingestion.specs.inputs.connection import Kind
from ingestion.specs.kafka.addresses import AddressRefused, AddressUnknown, parse_servers
from ingestion.specs.kafka.properties import insecure, missing
from ingestion.specs.kafka.providers import Value
from ingestion.specs.kafka.token_endpoint import ENDPOINT, parse_endpoint

RESOLVING_S = 5.0
FieldPath = tuple[str, ...]
Fault = tuple[FieldPath, str]
_PROPERTIES = "consumerProperties"
_PORTS = {"http": 80, "https": 443}
_resolvers = ThreadPoolExecutor(16, "resolver")


@dataclass(frozen=True)
class NamedHost:
    """A host that a spec names, and where."""

    place: FieldPath
    host: str
    port: int


def faults_of(properties: Mapping[str, Value], input_format: InputFormat) -> list[Fault]:
    """Every fault of the brokers, Kafka properties and schema registries that a spec leads to, by place in ioConfig.

    ``properties``: none when Kafka is not asked. Secrets may be missing: see ``check_complete``. A name that can't be
    resolved now is let through: it may be known where indexers run, and is judged there. Blocks for some seconds at
    most.
    """
    return _find_faults(properties, list(registries_of(input_format)))


def check_complete(document: Any, properties: Mapping[str, Value]) -> None:
    """Check that nothing is missing once the secrets have been added, and that a client can be made of it all.

    Asks nobody. Raises ``InvalidInput`` with every fault.
    """
    raise_faults(document, _find_incomplete(properties))


def connection_faults(kind: Kind, properties: dict[str, Any]) -> list[Fault]:
    """What ``faults_of`` finds in a connection's properties, secrets included; by place in them."""
    if kind is Kind.KAFKA:
        return [(place[1:], reason) for place, reason in _find_faults(kafka_values(properties), [])]
    decoder = RegistryDecoder.model_validate({"type": "schema_registry", **properties})
    return _find_faults({}, [((), decoder)])


def incomplete_faults(kind: Kind, properties: dict[str, Any]) -> list[Fault]:
    """What ``check_complete`` finds in a connection's properties, secrets included; by place in them."""
    faults = _find_incomplete(kafka_values(properties)) if kind is Kind.KAFKA else []
    return [(place[1:], reason) for place, reason in faults]


def _find_faults(properties: Mapping[str, Value], registries: list[tuple[FieldPath, RegistryDecoder]]) -> list[Fault]:
    faults = [*_insecure(properties), *_registry_faults(registries)]
    faults += _refused_hosts([*_brokers(properties), *_token_endpoints(properties), *_registries(registries)])
    if properties and not missing(properties):
        faults += _unusable(properties)
    return faults


def _find_incomplete(properties: Mapping[str, Value]) -> list[Fault]:
    hint = "Secrets are kept only while the connection stays the same"
    absent: list[Fault] = [
        ((_PROPERTIES, name), f"is missing: {reason}. {hint}") for name, reason in missing(properties).items()
    ]
    return absent or list(_unusable(properties))


def raise_faults(document: Any, faults: list[Fault]) -> None:
    """Raise ``InvalidInput`` with these faults, each by its place in the ioConfig of a spec, if there are any."""
    if faults:
        before = ["spec", "ioConfig"] if "spec" in document else ["ioConfig"]
        raise invalid_spec(SpecError([issue_at([*before, *place], reason) for place, reason in faults]))


def _insecure(properties: Mapping[str, Value]) -> Iterator[Fault]:
    if not settings.ALLOW_INSECURE_KAFKA:
        for name, reason in insecure(properties).items():
            yield (_PROPERTIES, name), f"{reason}; an administrator can allow it (HEADGATE_ALLOW_INSECURE_KAFKA)"


def _unusable(properties: Mapping[str, Value]) -> Iterator[Fault]:
    try:
        check_configuration(client_properties(properties))
    except PropertyProblem as problem:
        path = (problem.name,) if problem.name in properties else ()
        yield (_PROPERTIES, *path), problem.reason


def _registry_faults(registries: list[tuple[FieldPath, RegistryDecoder]]) -> Iterator[Fault]:
    for place, registry in registries:
        for name, values in (("config", registry.config), ("headers", registry.headers)):
            try:
                resolve(values)
            except PropertyProblem as problem:
                yield (*place, name, problem.name), problem.reason


def _brokers(properties: Mapping[str, Value]) -> Iterator[NamedHost]:
    for host, port in parse_servers(str(properties["bootstrap.servers"])) if properties else ():
        yield NamedHost((_PROPERTIES, "bootstrap.servers"), host, port)


def _token_endpoints(properties: Mapping[str, Value]) -> Iterator[NamedHost]:
    if ENDPOINT in properties:
        yield NamedHost((_PROPERTIES, ENDPOINT), *parse_endpoint(str(properties[ENDPOINT])))


def _registries(registries: list[tuple[FieldPath, RegistryDecoder]]) -> Iterator[NamedHost]:
    for place, registry in registries:
        for number, address in enumerate(registry.addresses):
            parts = urlsplit(address)
            where = ("urls", str(number)) if registry.urls is not None else ("url",)
            yield NamedHost((*place, *where), parts.hostname or "", parts.port or _PORTS[parts.scheme])


def _refused_hosts(names: list[NamedHost]) -> Iterator[Fault]:
    """What the policy says of them. They are resolved side by side, and not waited for longer than ``RESOLVING_S``."""
    policy = settings.ADDRESS_POLICY
    lookups: list[tuple[NamedHost, Future[list[str]]]] = [
        (named, _resolvers.submit(policy.resolve, named.host, named.port)) for named in names
    ]
    for named, answer in lookups:
        try:
            answer.result(RESOLVING_S)
        except AddressRefused as refused:
            yield named.place, str(refused)
        except (AddressUnknown, TooSlow):
            continue
