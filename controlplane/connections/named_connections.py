"""What a spec connects to: by its own properties, or by the name of its team's connection. The one place that asks.

A name is looked up when a spec is admitted, and again whenever an application gets its assignment or the control plane
asks Kafka: a changed connection reaches all who name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from controlplane.common.errors import Conflict, invalid_spec
from controlplane.connections.admission import Fault, FieldPath, check_complete, faults_of, raise_faults
from controlplane.connections.client_properties import kafka_values, resolve_registry
from controlplane.connections.models import Connection
from controlplane.connections.secrets import unseal
from controlplane.connections.selectors import own_properties_allowed
from controlplane.teams.models import Team
from ingestion.specs.errors import SpecError
from ingestion.specs.formats.input_format import InputFormat, JsonInputFormat, registries_of
from ingestion.specs.inputs.connection import Document, Kind, read_connection, with_secrets
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.kafka import secrets as spec_secrets
from ingestion.specs.kafka.properties import PROPERTIES
from ingestion.specs.kafka.providers import Value
from ingestion.specs.tasks.stored_specs import read_io_config

_BY_NAME = "team {team} allows saved connections only: name one in connection"


class NoSuchConnection(Conflict):
    """The team has no connection of this name and kind. ``name``: the one that was named."""

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        super().__init__(f"There is no connection {name!r} to {kind.description} in the datasource's team.")


@dataclass(frozen=True)
class ConnectTarget:
    """What a spec connects to, secrets included, references not yet resolved. Never shown or logged."""

    properties: dict[str, Value] = field(repr=False)
    input_format: InputFormat = field(repr=False)


def admit(document: Any, team: Team | None, io_config: IOConfig, *, asks_kafka: bool = True) -> ConnectTarget:
    """Judge what a spec connects to, before anything is stored or tried; see ``admission.faults_of``.

    ``document``: what the user sent, for the faults' pointers. ``team``: whose connections it may name; None while that
    is not known. Raises ``InvalidInput`` with every fault, ``SecretsLost``.
    """
    faults = [*_unnamed_faults(team, io_config, asks_kafka), *_unknown_faults(team, io_config, asks_kafka)]
    raise_faults(document, faults)
    target = connect_target(team.pk if team else None, io_config) if asks_kafka else _registries_only(team, io_config)
    raise_faults(
        document, [_fault_at_name(io_config, fault) for fault in faults_of(target.properties, target.input_format)]
    )
    return target


def draft_properties(team: Team, document: Document) -> dict[str, Value]:
    """What a draft's ``consumerProperties``, secrets included, connect with before it is a spec; not yet resolved.

    Raises ``InvalidInput`` with every fault: the team may take connections by name only.
    """
    check_own_allowed(team, document)
    written = document["spec"]["ioConfig"]["consumerProperties"]
    reading_names = {name for name, description in PROPERTIES.items() if description.no_effect}
    cluster_properties = {name: value for name, value in written.items() if name not in reading_names}
    try:
        properties = kafka_values(read_connection(Kind.KAFKA, cluster_properties))
    except SpecError as error:
        raise invalid_spec(error) from None
    raise_faults({}, faults_of(properties, JsonInputFormat(type="json")))
    check_complete({}, properties)
    return properties


def check_own_allowed(team: Team, document: Document) -> None:
    """Raise ``InvalidInput`` if the team's specs may not say themselves what they connect to."""
    if not own_properties_allowed(team):
        raise_faults(document, [(("consumerProperties",), _BY_NAME.format(team=team.name))])


def _unnamed_faults(team: Team | None, io_config: IOConfig, asks_kafka: bool) -> Iterator[Fault]:
    """Where the spec says itself what it connects to, though its team takes connections by name only."""
    paths = unnamed_in(io_config, asks_kafka=asks_kafka)
    if paths and team is not None and not own_properties_allowed(team):
        for place in paths:
            yield place, _BY_NAME.format(team=team.name)


def unnamed_in(io_config: IOConfig, *, asks_kafka: bool = True) -> list[FieldPath]:
    """Where an ioConfig says itself what it connects to."""
    paths: list[FieldPath] = [("consumerProperties",)] if asks_kafka and io_config.connection is None else []
    return paths + [place for place, registry in registries_of(io_config.inputFormat) if registry.connection is None]


def _unknown_faults(team: Team | None, io_config: IOConfig, asks_kafka: bool) -> Iterator[Fault]:
    for place, name, kind in names_in(io_config):
        if not asks_kafka and kind is Kind.KAFKA:
            continue
        if team is None:
            yield place, "the team of the connection is not clear: name the team (in REST: header X-Headgate-Team)"
        elif not Connection.objects.filter(team=team, name=name, kind=kind).exists():
            yield place, f"team {team.name} has no connection {name!r} to {kind.description}"


def names_in(io_config: IOConfig) -> Iterator[tuple[FieldPath, str, Kind]]:
    """Every connection that an ioConfig names, with its place in it and its kind."""
    if io_config.connection is not None:
        yield ("connection",), io_config.connection, Kind.KAFKA
    for place, registry in registries_of(io_config.inputFormat):
        if registry.connection is not None:
            yield (*place, "connection"), registry.connection, Kind.SCHEMA_REGISTRY


def lock_connections(team: Team, io_config: IOConfig) -> None:
    """Keep the connections that a spec names from being deleted until the transaction ends, in which it is stored.

    Raises ``NoSuchConnection``.
    """
    for _, name, kind in names_in(io_config):
        # Whoever deletes one locks its row first, and looks then who names it.
        if not Connection.objects.select_for_update().filter(team=team, name=name, kind=kind).exists():
            raise NoSuchConnection(name, kind)


def _fault_at_name(io_config: IOConfig, fault: Fault) -> Fault:
    """A fault of what a connection holds is told where the spec names the connection."""
    place, reason = fault
    is_kafka = place[0] == "consumerProperties" and len(place) > 1
    if io_config.connection and is_kafka and place[1] not in io_config.consumerProperties:
        return ("connection",), f"its {place[1]}: {reason}"
    for where, name, _ in names_in(io_config):
        if where[:-1] and place[: len(where) - 1] == where[:-1]:
            return where, f"the {'.'.join(place[len(where) - 1 :])} of {name}: {reason}"
    return fault


def _registries_only(team: Team | None, io_config: IOConfig) -> ConnectTarget:
    plain = io_config.model_copy(update={"connection": None, "consumerProperties": {}})
    return connect_target(team.pk if team else None, plain)


def connect_target(team_id: int | None, io_config: IOConfig, secrets: Mapping[str, str] | None = None) -> ConnectTarget:
    """``secrets``: the spec's own. Raises ``NoSuchConnection``, ``SecretsLost``."""
    own_secrets = spec_secrets.kafka_secrets(secrets or {})
    properties = {**connection_properties(team_id, io_config.connection), **own_secrets, **io_config.consumerProperties}
    if not any(registry.connection for _, registry in registries_of(io_config.inputFormat)):
        return ConnectTarget(properties, io_config.inputFormat)
    # Read by the models: the addresses are looked at by those who judge them.
    written = {"spec": {"ioConfig": io_config.model_dump(mode="json", exclude_none=True)}}
    filled = spec_secrets.with_named_registries(
        written, lambda name: _stored_properties(team_id, name, Kind.SCHEMA_REGISTRY)
    )
    return ConnectTarget(properties, read_io_config(filled).inputFormat)


def kafka_properties(team_id: int | None, io_config: IOConfig, sealed: str) -> dict[str, Value]:
    """Everything that a stored spec's Kafka clients need; not yet resolved. Never shown or logged.

    Raises ``NoSuchConnection``, ``SecretsLost``.
    """
    spec_properties = kafka_values({**io_config.consumerProperties, **spec_secrets.kafka_secrets(unseal(sealed))})
    return {**connection_properties(team_id, io_config.connection), **spec_properties}


def with_registries(team_id: int | None, document: Document, secrets: Mapping[str, str]) -> Document:
    """A stored spec with all that its schema registries' clients need. ``secrets``: the spec's own.

    Raises ``NoSuchConnection``, ``SecretsLost``, ``PropertyProblem``.
    """
    filled = spec_secrets.with_named_registries(
        document, lambda name: _stored_properties(team_id, name, Kind.SCHEMA_REGISTRY)
    )
    return spec_secrets.with_registry_secrets(filled, secrets, resolve_registry)


def properties_of(connection: Connection) -> dict[str, Value]:
    """Of a connection to Kafka, with its secrets; not yet resolved. Never shown or logged. Raises ``SecretsLost``."""
    return kafka_values(with_secrets(Kind.KAFKA, connection.properties, unseal(connection.secrets)))


def connection_properties(team_id: int | None, name: str | None) -> dict[str, Value]:
    """Those of a team's connection to Kafka; none where no name is given. Raises ``NoSuchConnection``."""
    return {} if name is None else kafka_values(_stored_properties(team_id, name, Kind.KAFKA))


def _stored_properties(team_id: int | None, name: str, kind: Kind) -> dict[str, Any]:
    connection = (
        Connection.objects.filter(team_id=team_id, name=name, kind=kind).first() if team_id is not None else None
    )
    if connection is None:
        raise NoSuchConnection(name, kind)
    return with_secrets(kind, connection.properties, unseal(connection.secrets))
