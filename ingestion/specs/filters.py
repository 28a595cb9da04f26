"""Druid's native filters as JSON: which rows are kept. Source: Druid's documentation of query filters.

Values never become part of SQL text: the decoder binds them as parameters.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ingestion.specs.limits import (
    DEEPEST_FILTER,
    LONGEST_VALUE,
    MOST_EXPRESSIONS,
    MOST_FILTERS,
    MOST_VALUES,
    FieldName,
)


def _short(value: Scalar | None) -> Scalar | None:
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        raise ValueError(f"has {len(value)} characters; {LONGEST_VALUE} at most")
    return value


Scalar = str | int | float | bool
Value = Annotated[Scalar, AfterValidator(_short)]
Bound = Annotated[str | int | float, AfterValidator(_short)]
Language = Literal["druid", "sql"]  # of an expression: Druid's own, as far as it is taken, or DuckDB's SQL


class _Filter(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SelectorFilter(_Filter):
    """Rows whose ``dimension`` equals ``value`` (``null`` matches missing ones), compared as text."""

    type: Literal["selector"]
    dimension: FieldName
    value: Value | None = None


class EqualsFilter(_Filter):
    """Rows whose ``column`` equals ``matchValue``."""

    type: Literal["equals"]
    column: FieldName
    matchValueType: FieldName | None = None
    matchValue: Value


class NullFilter(_Filter):
    """Rows whose ``column`` is missing or null."""

    type: Literal["null"]
    column: FieldName


class InFilter(_Filter):
    """Rows whose ``dimension`` is one of ``values``, compared as text."""

    type: Literal["in"]
    dimension: FieldName
    values: list[Value | None] = Field(min_length=1, max_length=MOST_VALUES)


class BoundFilter(_Filter):
    """Rows whose ``dimension`` lies between ``lower`` and ``upper``; ``ordering`` numeric or lexicographic."""

    type: Literal["bound"]
    dimension: FieldName
    lower: Bound | None = None
    upper: Bound | None = None
    lowerStrict: bool = False
    upperStrict: bool = False
    ordering: Literal["lexicographic", "numeric"] = "lexicographic"


class LikeFilter(_Filter):
    """Rows whose ``dimension`` matches an SQL LIKE pattern (``%`` and ``_``)."""

    type: Literal["like"]
    dimension: FieldName
    pattern: str = Field(max_length=1_000)
    escape: str | None = Field(default=None, max_length=1)


class ExpressionFilter(_Filter):
    """Rows for which an expression over the fields is true. Null is not true; in SQL, nor is what fails."""

    type: Literal["expression"]
    expression: str = Field(min_length=1, max_length=10_000)
    language: Language = "druid"


class TrueFilter(_Filter):
    """Every row."""

    type: Literal["true"]


class FalseFilter(_Filter):
    """No row."""

    type: Literal["false"]


class AndFilter(_Filter):
    """Rows that match all ``fields``."""

    type: Literal["and"]
    fields: list[Filter] = Field(min_length=1, max_length=MOST_FILTERS)


class OrFilter(_Filter):
    """Rows that match at least one of ``fields``."""

    type: Literal["or"]
    fields: list[Filter] = Field(min_length=1, max_length=MOST_FILTERS)


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


def within_limits(condition: Filter) -> Filter:
    """The filter, if it is neither too large nor nested too deep. Raises ``ValueError``."""
    here, depth, filters, values, expressions = [condition], 0, 0, 0, 0
    while here:
        depth += 1
        filters += len(here)
        values += sum(len(f.values) for f in here if isinstance(f, InFilter))
        expressions += sum(isinstance(f, ExpressionFilter) for f in here)
        if depth > DEEPEST_FILTER:
            raise ValueError(f"filters are nested deeper than {DEEPEST_FILTER} levels")
        here = [inner for f in here for inner in _inside(f)]
    counts = ((filters, MOST_FILTERS, "filters"), (values, MOST_VALUES, "values of filters of type in"))
    for count, most, what in (*counts, (expressions, MOST_EXPRESSIONS, "expressions")):
        if count > most:
            raise ValueError(f"there are {count} {what}; {most} at most")
    return condition


def _inside(condition: Filter) -> list[Filter]:
    if isinstance(condition, NotFilter):
        return [condition.field]
    return condition.fields if isinstance(condition, AndFilter | OrFilter) else []
