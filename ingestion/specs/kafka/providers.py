"""Secrets that a spec names instead of holding them: Druid's password providers and its dynamic config provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

PROVIDER = "druid.dynamic.config.provider"
MASK = "******"
_HELD = {"environment": "variables", "mapString": "config"}


class EnvironmentVariable(BaseModel):
    """A secret that is not in the spec: the operator has it in the environment of Headgate's processes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["environment"]
    variable: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")


Value = str | EnvironmentVariable


def value_of(stored: str | Mapping[str, Any]) -> Value:
    """A value as it stands in a stored spec's JSON: a text, or a reference."""
    return stored if isinstance(stored, str) else EnvironmentVariable.model_validate(stored)


def held_by(provider: Any) -> tuple[str, dict[str, Any]]:
    """A dynamic config provider's own field, and what it holds by name, as it would be written without one.

    Raises ``ValueError``.
    """
    kind = provider.get("type") if isinstance(provider, dict) else None
    inside = _HELD.get(str(kind), "")
    held = provider.get(inside) if inside else None
    if not isinstance(held, dict) or set(provider) != {"type", inside}:
        raise ValueError("must be of type environment with variables, or mapString with config")
    if inside == "config":
        return inside, held
    return inside, {name: {"type": "environment", "variable": variable} for name, variable in held.items()}


def secret_of(raw: Any) -> Value:
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
