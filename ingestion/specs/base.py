"""Base classes of the models of specs and messages."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

CENTURY = timedelta(days=36_525)
# Longer ones would lead to a time that there is not.
Span = Annotated[timedelta, AfterValidator(lambda value: min(value, CENTURY))]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


class NullTaking(BaseModel):
    """A null counts as an omitted field if the field is optional: Druid's answers have nulls for unset fields.

    Nulls of unknown fields are ignored too. They carry no value, and each version of Druid adds more such fields.
    """

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not any(v is None for v in value.values()):
            return value
        return {name: v for name, v in value.items() if v is not None or name in _null_is_a_value_fields(cls)}


@cache
def _null_is_a_value_fields(model: type[BaseModel]) -> frozenset[str]:
    """Fields that must be given, and those that null is a value of."""
    fields = model.model_fields.items()
    significant = [(n, f) for n, f in fields if f.is_required() or NoneType in (f.annotation, *get_args(f.annotation))]
    return frozenset(name for n, f in significant for name in (n, f.alias) if name is not None)


def not_supported(why: str) -> BeforeValidator:
    """For a field of Druid's that is refused by name unless it is null."""

    def refuse(value: Any) -> None:
        if value is not None:
            raise ValueError(why)

    return BeforeValidator(refuse)


class SpecModel(NullTaking):
    """Frozen. Unknown fields are errors, and so is a boolean instead of a number, as in Druid."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_booleans(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        wrong = {name for name, field_value in value.items() if isinstance(field_value, bool) and name in _numbers(cls)}
        return {**value, **{name: str(value[name]).lower() for name in wrong}} if wrong else value  # a text is refused


@cache
def _numbers(model: type[BaseModel]) -> frozenset[str]:
    """Fields that hold a number, or null."""
    kinds = {name: {f.annotation, *get_args(f.annotation)} for name, f in model.model_fields.items()}
    return frozenset(n for n, kind in kinds.items() if kind & {int, float} and bool not in kind)


class Message(BaseModel):
    """Frozen. Unknown fields are errors, so that a version mismatch shows at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def check_plain_name(value: str) -> str:
    """Names become parts of paths: nothing that could lead elsewhere."""
    if not _NAME.fullmatch(value) or ".." in value:
        raise ValueError(
            "must be 1 to 200 letters, digits, '_', '-' or '.', start with a letter or digit, and contain no '..'"
        )
    return value


def to_utc(value: datetime | None) -> datetime | None:
    """The time in UTC; one without a zone is in UTC already."""
    if value is None:
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
