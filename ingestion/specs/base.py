"""What the models of specs and of messages have in common."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


class SpecModel(BaseModel):
    """Frozen, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Message(BaseModel):
    """Frozen; unknown fields are refused, so that a version mismatch is seen at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def a_plain_name(value: str) -> str:
    """Names become parts of paths: nothing that could lead elsewhere."""
    if not _NAME.fullmatch(value) or ".." in value:
        raise ValueError(
            "must be 1 to 200 letters, digits, '_', '-' or '.', start with a letter or digit, and hold no '..'"
        )
    return value


def utc(value: datetime | None) -> datetime | None:
    """The time in UTC; one without a zone is in UTC already."""
    if value is None:
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
