"""The properties of a named connection to a Kafka cluster or a schema registry, with the rules of a spec.

They are stored, masked and completed like a spec's. For this they are put into a document with a spec's form.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ingestion.specs.errors import SpecError, SpecIssue, issue_at, issues_of
from ingestion.specs.formats.input_format import RegistryDecoder
from ingestion.specs.kafka.properties import PROPERTIES
from ingestion.specs.kafka.property_reading import KafkaProperties
from ingestion.specs.kafka.secrets import split_secrets

Document = dict[str, Any]
_REGISTRY_FIELDS = ("url", "urls", "config", "headers")


class Kind(StrEnum):
    """The kind of server that a connection is for."""

    KAFKA = "kafka"
    SCHEMA_REGISTRY = "schema_registry"

    @property
    def description(self) -> str:
        """For a sentence."""
        return "a Kafka cluster" if self is Kind.KAFKA else "a schema registry"


class _Kafka(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    properties: KafkaProperties


class _Registry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    properties: RegistryDecoder


def read_connection(kind: Kind, properties: Any) -> Document:
    """Properties as a connection keeps them, secrets included. Raises ``SpecError``, its places in ``properties``."""
    if not isinstance(properties, dict):
        raise SpecError([issue_at(["properties"], "must be a JSON object")])
    return _read_kafka(properties) if kind is Kind.KAFKA else _read_registry(properties)


def _read_kafka(properties: Document) -> Document:
    issues = [
        issue_at(["properties", name], f"belongs to a spec, not to a connection: {rule.no_effect}")
        for name, rule in PROPERTIES.items()
        if rule.no_effect and name in properties
    ]
    written = {"properties": properties}
    try:
        read = _Kafka.model_validate(written)
    except ValidationError as error:
        issues += issues_of(error, written)
    if issues:
        raise SpecError(issues)
    return read.model_dump(mode="json")["properties"]  # type: ignore[no-any-return]


def _read_registry(properties: Document) -> Document:
    issues = [
        issue_at(["properties", name], "unknown field: check its spelling, or remove it")
        for name in properties
        if name not in _REGISTRY_FIELDS
    ]
    fields = {name: properties[name] for name in _REGISTRY_FIELDS if name in properties}
    written = {"properties": {"type": "schema_registry", **fields}}
    try:
        read = _Registry.model_validate(written).properties
    except ValidationError as error:
        issues += [SpecIssue(i.path, i.pointer, i.message) for i in issues_of(error, written)]
    if issues:
        raise SpecError(issues)
    return read.model_dump(mode="json", include=set(_REGISTRY_FIELDS), exclude_none=True)


def to_document(kind: Kind, properties: Document) -> Document:
    """A spec's document with these properties where such a spec has them."""
    registry = {"type": "schema_registry", **properties} if kind is Kind.SCHEMA_REGISTRY else {}
    kafka = properties if kind is Kind.KAFKA else {}
    return {"spec": {"ioConfig": {"consumerProperties": kafka, "inputFormat": registry}}}


def from_document(kind: Kind, document: Document) -> Document:
    """What ``to_document`` was given."""
    io_config = document["spec"]["ioConfig"]
    if kind is Kind.KAFKA:
        return dict(io_config["consumerProperties"])
    return {name: value for name, value in io_config["inputFormat"].items() if name != "type"}


def without_secrets(kind: Kind, properties: Document) -> tuple[Document, dict[str, str]]:
    """Properties without their secrets, and those by name."""
    document, secrets = split_secrets(to_document(kind, properties))
    return from_document(kind, document), secrets


def with_secrets(kind: Kind, properties: Document, secrets: dict[str, str]) -> Document:
    """What ``without_secrets`` was given. Never shown or logged."""
    if kind is Kind.KAFKA:
        return {**properties, **secrets}
    complete = {
        **properties,
        "config": dict(properties.get("config", {})),
        "headers": dict(properties.get("headers", {})),
    }
    for path, value in secrets.items():
        _, _, map_name, name = path.split("/", 3)
        complete[map_name][name] = value
    return complete
