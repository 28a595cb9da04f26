"""Secrets that a spec names instead of holding them: Druid's password providers and its dynamic config provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

PROVIDER = "druid.dynamic.config.provider"
MASK = "******"
_ENTRY_FIELDS = {"environment": "variables", "mapString": "config"}


class EnvironmentVariable(BaseModel):
    """A secret that is not in the spec: the operator has it in the environment of Headgate's processes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["environment"]
    variable: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")


Value = str | EnvironmentVariable


def load_value(stored: str | Mapping[str, Any]) -> Value:
    """A value in a stored spec's JSON: a text or a reference."""
    return stored if isinstance(stored, str) else EnvironmentVariable.model_validate(stored)


def provider_entries(provider: Any) -> tuple[str, dict[str, Any]]:
    """A dynamic config provider's own field, and what it holds by name, as it would be written without one.

    Raises ``ValueError``.
    """
    kind = provider.get("type") if isinstance(provider, dict) else None
    field = _ENTRY_FIELDS.get(str(kind), "")
    entries = provider.get(field) if field else None
    if not isinstance(entries, dict) or set(provider) != {"type", field}:
        raise ValueError("must be of type environment with variables, or mapString with config")
    if field == "config":
        return field, entries
    return field, {name: {"type": "environment", "variable": variable} for name, variable in entries.items()}


def parse_secret(raw: Any) -> Value:
    """A secret: text, or Druid's providers ``default`` and ``environment``. Raises ``ValueError``."""
    if isinstance(raw, dict) and raw.get("type") == "default" and set(raw) == {"type", "password"}:
        raw = raw["password"]
    if isinstance(raw, str):
        if raw == MASK:
            raise ValueError("is the mask of a secret: enter the secret, or omit it to keep the stored one")
        return raw
    try:
        return EnvironmentVariable.model_validate(raw)
    except ValidationError:
        raise ValueError(
            "must be text, or of type default with password, or of type environment with variable, its name"
        ) from None
