"""Schemas of a Confluent schema registry: the wire format's head, and what is asked of a client for one.

The client itself is handed in (``OpenRegistry``): decoding knows no Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ingestion.decode.errors import RegistryUnreachable
from ingestion.decode.formats.base import BadRecord
from ingestion.specs.formats.input_format import RegistryDecoder
from ingestion.specs.kafka.addresses import AddressPolicy

HEAD_BYTES = 5
_UNKNOWN_FOR_S = 60.0
REFUSED_FOR_S = 60.0  # for so long a schema may be refused, by a registry that answers else, before its records are bad
REFUSAL_KEPT_S = 300.0  # a refusal that comes later than this after the last one counts as the first
_MAX_UNKNOWN = 10_000
Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema and what it needs. Texts of kind PROTOBUF are serialized FileDescriptorProtos in base64."""

    kind: str  # AVRO, PROTOBUF or JSON
    text: str
    references: Sequence[tuple[str, str]] = ()  # (name, text), each after those that it needs itself


class UnknownSchema(Exception):
    """The registry has no schema with this id; the message is the registry's address."""


class SchemaRefused(RegistryUnreachable):
    """The registry refuses this schema, with a status that says nothing of it, and answers other questions."""


class Registry(Protocol):
    """A registry's client. Blocks for some seconds at most."""

    def schema(self, schema_id: int, kind: str) -> RegisteredSchema:
        """The schema, as ``kind`` has it. Raises ``UnknownSchema``, ``SchemaRefused``, ``RegistryUnreachable``."""


OpenRegistry = Callable[[RegistryDecoder, AddressPolicy], Registry]


def split_head(payload: bytes) -> tuple[int, int]:
    """The schema id, and where the message begins."""
    if len(payload) < HEAD_BYTES:
        raise BadRecord(f"shorter than the {HEAD_BYTES} bytes that name its schema")
    if payload[0] != 0:
        raise BadRecord(f"not in the schema registry's wire format: it begins with byte {payload[0]}, not 0")
    schema_id = int.from_bytes(payload[1:HEAD_BYTES])
    if not schema_id:
        raise BadRecord(
            "its schema id is 0, which no registry assigns. Apicurio's serializers write ids of eight bytes, "
            "unless their option for Confluent's ids is on: turn it on"
        )
    return schema_id, HEAD_BYTES


class RegistrySchemas(Generic[Parsed]):
    """Schemas by id, parsed once. What the registry does not know is asked for again only after a minute.

    A registry that is away is waited for; one that refuses a schema and answers else, for ``REFUSED_FOR_S``.
    """

    def __init__(
        self,
        spec: RegistryDecoder,
        registry: Registry,
        kind: str,
        parse: Callable[[RegisteredSchema], Parsed],
    ) -> None:
        self._registry = registry
        self._capacity = spec.capacity
        self._kind = kind
        self._parse = parse
        self._parsed: dict[int, Parsed] = {}
        self._failures: dict[int, tuple[str, float]] = {}
        self._refused: dict[int, tuple[float, float]] = {}  # when first and last, by schema

    def parsed(self, schema_id: int) -> Parsed:
        """The parsed schema. Raises ``BadRecord``, ``RegistryUnreachable``."""
        parsed = self._parsed.get(schema_id)
        if parsed is not None:
            return parsed
        self._raise_known(schema_id)
        try:
            parsed = self._fetch(schema_id)
        except BadRecord as error:
            if len(self._failures) >= _MAX_UNKNOWN:
                self._failures.clear()
            self._failures[schema_id] = (str(error), time.monotonic())
            raise
        self._refused.pop(schema_id, None)
        if len(self._parsed) >= self._capacity:
            self._parsed.pop(next(iter(self._parsed)))
        self._parsed[schema_id] = parsed
        return parsed

    def _raise_known(self, schema_id: int) -> None:
        message, since = self._failures.get(schema_id, ("", 0.0))
        if message and time.monotonic() - since < _UNKNOWN_FOR_S:
            raise BadRecord(message)

    def _fetch(self, schema_id: int) -> Parsed:
        try:
            schema = self._registry.schema(schema_id, self._kind)
        except UnknownSchema as error:
            raise BadRecord(f"the schema registry {error} has no schema {schema_id}") from None
        except SchemaRefused as error:
            if self._refused_for_s(schema_id) < REFUSED_FOR_S:
                raise
            raise BadRecord(
                f"the schema registry has refused schema {schema_id}, and no other, for {REFUSED_FOR_S:g} s: {error}"
            ) from None
        except RegistryUnreachable:
            self._refused.clear()
            raise
        if schema.kind != self._kind:
            raise BadRecord(f"schema {schema_id} is of type {schema.kind}, not {self._kind}")
        try:
            return self._parse(schema)
        except Exception as error:  # whatever the library makes of a schema that it can't read
            raise BadRecord(f"schema {schema_id} can't be used: {type(error).__name__}: {error}") from error

    def _refused_for_s(self, schema_id: int) -> float:
        """How long this schema has been refused; it is now."""
        now = time.monotonic()
        first, last = self._refused.get(schema_id, (now, now))
        if now - last > REFUSAL_KEPT_S:
            first = now
        self._refused[schema_id] = first, now
        return now - first
