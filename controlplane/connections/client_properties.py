"""What a spec names and does not hold: secrets of the environment, key stores of the operator's folder.

Only here are they read, in the control plane's own processes: applications are given what came of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from controlplane.common.errors import Conflict
from ingestion.specs.kafka.key_stores import MAX_BYTES, StoreProblem, with_stores
from ingestion.specs.kafka.properties import librdkafka_properties
from ingestion.specs.kafka.providers import EnvironmentVariable, Value, load_value


class PropertyProblem(Conflict):
    """A property's value can't be had. ``name``: the property."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


def kafka_values(written: Mapping[str, Any]) -> dict[str, Value]:
    """Kafka's properties as they stand in JSON or in a model: texts and references; not yet resolved."""
    return {n: v if isinstance(v, EnvironmentVariable) else load_value(v) for n, v in written.items()}


def resolve(values: Mapping[str, Value]) -> dict[str, str]:
    """Texts as they are, and for references what the environment has. Raises ``PropertyProblem``."""
    return {n: _read_variable(n, v.variable) if isinstance(v, EnvironmentVariable) else v for n, v in values.items()}


def client_properties(properties: Mapping[str, Value]) -> dict[str, str]:
    """Everything a Kafka client needs, under librdkafka's names, with secrets. Never shown or logged.

    Raises ``PropertyProblem``.
    """
    texts = resolve(properties)
    try:
        return librdkafka_properties(with_stores(texts, _read_store))
    except StoreProblem as problem:
        raise PropertyProblem(problem.name, problem.reason) from None
    except ValueError as error:  # a secret of the environment: others were read before they were stored
        raise PropertyProblem("consumerProperties", str(error)) from None


def resolve_registry(values: Mapping[str, Any]) -> dict[str, str]:
    """A registry's config or headers as they stand in JSON, resolved. Raises ``PropertyProblem``."""
    return resolve({name: load_value(value) for name, value in values.items()})


def _read_variable(name: str, variable: str) -> str:
    prefix = settings.SECRET_PREFIX
    if not variable.startswith(prefix) or variable == prefix:
        raise PropertyProblem(name, f"a spec may name only environment variables that begin with {prefix}")
    value = os.environ.get(variable)
    if not value:
        raise PropertyProblem(name, f"the environment variable {variable} is not set where Headgate runs")
    return value


def _read_store(name: str, file_name: str) -> bytes:
    folder = settings.KEY_FOLDER
    if not folder:
        raise PropertyProblem(
            name,
            "a spec may not name files here: give the store as PEM text, or ask an administrator to set "
            "HEADGATE_KEY_FOLDER",
        )
    root = Path(folder).resolve()
    try:
        path = (root / file_name).resolve()  # resolved: no link and no '..' leads out
        if not path.is_relative_to(root):
            raise PropertyProblem(name, "the file is not in the folder for keys (HEADGATE_KEY_FOLDER)")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise PropertyProblem(name, f"the file can't be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise PropertyProblem(name, f"the file is larger than {MAX_BYTES} bytes")
    return data
