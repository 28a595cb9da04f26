"""A schema registry's client for the decoder: Confluent's own, which keeps what it has read."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, SchemaRegistryError

from ingestion.decode import RegistryUnreachable
from ingestion.decode.formats import RegisteredSchema, UnknownSchema

# With four addresses and a schema's references still less than what a child process may take for a batch.
TIMEOUT_S = 3.0
_NOT_FOUND = (40401, 40402, 40403)  # subject, version, schema
_MOST_REFERENCES = 100


class ConfluentRegistry:
    """See ``decode.formats.registry.Registry``."""

    def __init__(self, addresses: Sequence[str], capacity: int) -> None:
        self._shown = ", ".join(addresses)
        self._client = SchemaRegistryClient(
            {"url": ",".join(addresses), "timeout": TIMEOUT_S, "max.retries": 0, "cache.capacity": capacity}
        )

    def schema(self, schema_id: int, kind: str) -> RegisteredSchema:
        form = "serialized" if kind == "PROTOBUF" else None
        try:
            found = self._client.get_schema(schema_id, fmt=form)
            references: dict[str, str] = {}
            self._collect(found, form, references)
        except SchemaRegistryError as error:
            if error.http_status_code == 404 and error.error_code in _NOT_FOUND:
                raise UnknownSchema from None
            raise RegistryUnreachable(f"{self._shown} answers with status {error.http_status_code}") from None
        except Exception as error:  # the client's transport raises its own library's errors, and odd answers any
            raise RegistryUnreachable(f"{self._shown} does not answer ({type(error).__name__})") from None
        return RegisteredSchema(found.schema_type or "AVRO", found.schema_str or "", list(references.items()))

    def _collect(self, schema: Schema, form: str | None, found: dict[str, str]) -> None:
        """Everything that the schema refers to, each after what it refers to itself."""
        for reference in schema.references or []:
            if reference.name in found or len(found) >= _MOST_REFERENCES:
                continue
            inner = self._referred(reference, form)
            self._collect(inner, form, found)
            found[reference.name] = inner.schema_str or ""

    def _referred(self, reference: SchemaReference, form: str | None) -> Schema:
        return self._client.get_version(reference.subject, reference.version, fmt=form).schema
