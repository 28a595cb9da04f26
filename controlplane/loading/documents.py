"""A draft's document: a spec as far as it is written, in its nested form, with its secrets apart.

The form of each step edits what it knows of it and leaves the rest as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.common.errors import FieldError, InvalidInput
from ingestion.specs.kafka import secrets as spec_secrets

Document = dict[str, Any]
PARTS = ("dataSchema", "ioConfig", "tuningConfig")
MAX_CHARACTERS = 1_000_000  # characters of its JSON
_OBJECT_PATHS = (
    ("spec",),
    ("spec", "dataSchema"),
    ("spec", "ioConfig"),
    ("spec", "tuningConfig"),
    ("spec", "ioConfig", "consumerProperties"),
    ("spec", "ioConfig", "inputFormat"),
)


def to_nested(written: Any) -> Document:
    """A document in the form in which drafts are kept. Raises ``InvalidInput`` where it has no such form."""
    if not isinstance(written, dict):
        raise InvalidInput("The spec must be a JSON object.", [FieldError("", "must be a JSON object")])
    document = {k: v for k, v in written.items() if k not in PARTS}
    if "spec" not in written:
        document["spec"] = {part: written[part] for part in PARTS if part in written}
    for path in _OBJECT_PATHS:
        _check_object(document, path)
    for part in ("dataSchema", "ioConfig"):
        document = with_value(document, ("spec", part), value_at(document, ("spec", part)) or {})
    if "parser" in document["spec"]["dataSchema"]:
        raise InvalidInput(
            "A draft needs an inputFormat instead of the older parser.",
            [FieldError("/spec/dataSchema/parser", "write it as ioConfig.inputFormat", "spec.dataSchema.parser")],
        )
    if len(json.dumps(document)) > MAX_CHARACTERS:
        raise InvalidInput(f"The spec is larger than {MAX_CHARACTERS:,} characters.")
    return document


def _check_object(document: Document, path: Sequence[str]) -> None:
    value = value_at(document, path)
    if value is not None and not isinstance(value, dict):
        fault = FieldError("/" + "/".join(path), "must be a JSON object", ".".join(path))
        raise InvalidInput("The spec can't be stored as it is written.", [fault])


def value_at(document: Any, path: Sequence[str]) -> Any:
    """What stands there; None when nothing does."""
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def with_value(document: Document, path: Sequence[str], value: Any) -> Document:
    """The document with ``value`` there, all else as it was; None takes it out. What is in the way is replaced."""
    name, *rest = path
    inner = document.get(name)
    if rest:
        value = with_value(inner if isinstance(inner, dict) else {}, rest, value)
    if value is None:
        return {k: v for k, v in document.items() if k != name}
    return {**document, name: value}


def split_secrets(document: Document) -> tuple[Document, dict[str, str]]:
    """The document without its secrets, and these."""
    shown, secrets = spec_secrets.split_secrets(_with_defaults(document))
    return _without_defaults(document, shown), secrets


def with_secrets(document: Document, secrets: Mapping[str, str]) -> Document:
    """The document with its secrets again: for clients and for submission, never for a page."""
    filled = spec_secrets.with_registry_secrets(_with_defaults(document), secrets, lambda values: values)
    path = ("spec", "ioConfig", "consumerProperties")
    properties = {**value_at(filled, path), **spec_secrets.kafka_secrets(secrets)}
    return _without_defaults(document, with_value(filled, path, properties), keep=bool(properties))


def reusable_secrets(before: Document, secrets: Mapping[str, str], after: Document) -> dict[str, str]:
    """Of the secrets those that a changed document may go on with: who is spoken to is the same."""
    return spec_secrets.kept_secrets(_with_defaults(before), secrets, _with_defaults(after))


def _with_defaults(document: Document) -> Document:
    io_config = document["spec"]["ioConfig"]
    return with_value(document, ("spec", "ioConfig"), {"consumerProperties": {}, "inputFormat": {}, **io_config})


def _without_defaults(document: Document, filled: Document, keep: bool = False) -> Document:
    """Without what ``_with_defaults`` has added."""
    before = document["spec"]["ioConfig"]
    for name in ("consumerProperties", "inputFormat"):
        if name not in before and not (keep and name == "consumerProperties"):
            filled = with_value(filled, ("spec", "ioConfig", name), None)
    return filled
