"""Druid's native filters as JSON: which rows are kept. Source: Druid's documentation of query filters.

Values never become part of SQL text: the decoder binds them as parameters.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Scalar = str | int | float | bool


class _Filter(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SelectorFilter(_Filter):
    """Rows whose ``dimension`` equals ``value`` (``null`` matches missing ones), compared as text."""

    type: Literal["selector"]
    dimension: str = Field(min_length=1)
    value: Scalar | None = None


class EqualsFilter(_Filter):
    """Rows whose ``column`` equals ``matchValue``."""

    type: Literal["equals"]
    column: str = Field(min_length=1)
    matchValueType: str | None = None
    matchValue: Scalar


class NullFilter(_Filter):
    """Rows whose ``column`` is missing or null."""

    type: Literal["null"]
    column: str = Field(min_length=1)


class InFilter(_Filter):
    """Rows whose ``dimension`` is one of ``values``, compared as text."""

    type: Literal["in"]
    dimension: str = Field(min_length=1)
    values: list[Scalar | None] = Field(min_length=1)


class BoundFilter(_Filter):
    """Rows whose ``dimension`` lies between ``lower`` and ``upper``; ``ordering`` numeric or lexicographic."""

    type: Literal["bound"]
    dimension: str = Field(min_length=1)
    lower: str | int | float | None = None
    upper: str | int | float | None = None
    lowerStrict: bool = False
    upperStrict: bool = False
    ordering: Literal["lexicographic", "numeric"] = "lexicographic"


class LikeFilter(_Filter):
    """Rows whose ``dimension`` matches an SQL LIKE pattern (``%`` and ``_``)."""

    type: Literal["like"]
    dimension: str = Field(min_length=1)
    pattern: str = Field(max_length=1_000)
    escape: str | None = Field(default=None, max_length=1)


class ExpressionFilter(_Filter):
    """Rows for which an SQL expression over the fields is true. Null, and what fails, is not true."""

    type: Literal["expression"]
    expression: str = Field(min_length=1, max_length=10_000)


class TrueFilter(_Filter):
    """Every row."""

    type: Literal["true"]


class FalseFilter(_Filter):
    """No row."""

    type: Literal["false"]


class AndFilter(_Filter):
    """Rows that match all ``fields``."""

    type: Literal["and"]
    fields: list[Filter] = Field(min_length=1)


class OrFilter(_Filter):
    """Rows that match at least one of ``fields``."""

    type: Literal["or"]
    fields: list[Filter] = Field(min_length=1)


class NotFilter(_Filter):
    """Rows that do not match ``field``."""

    type: Literal["not"]
    field: Filter


Filter = Annotated[
    SelectorFilter
    | EqualsFilter
    | NullFilter
    | InFilter
    | BoundFilter
    | LikeFilter
    | ExpressionFilter
    | TrueFilter
    | FalseFilter
    | AndFilter
    | OrFilter
    | NotFilter,
    Field(discriminator="type"),
]

for _model in (AndFilter, OrFilter, NotFilter):
    _model.model_rebuild()
