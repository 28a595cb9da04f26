"""Druid's native filters as JSON. Source: Druid's documentation of query filters.

Values never become part of SQL text: the decoder binds them as parameters.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from ingestion.specs.base import SpecModel
from ingestion.specs.limits import (
    DEEPEST_FILTER,
    LONGEST_EXPRESSION,
    LONGEST_VALUE,
    MAX_EXPRESSIONS,
    MAX_FILTERS,
    MAX_VALUES,
    FieldName,
    list_names,
)
from ingestion.specs.schema.intervals import interval_ms


def _short(value: Scalar | None) -> Scalar | None:
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        raise ValueError(f"has {len(value)} characters; {LONGEST_VALUE} at most")
    return value


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


Scalar = str | int | float | bool
Value = Annotated[Scalar, AfterValidator(_short)]
Bound = Annotated[str | int | float, AfterValidator(_short)]
Kind = Annotated[Literal["STRING", "LONG", "DOUBLE", "FLOAT"], BeforeValidator(_upper)]
Language = Literal["druid", "sql"]  # of an expression: Druid's own, as far as it is taken, or DuckDB's SQL


class SelectorFilter(SpecModel):
    """Rows whose ``dimension`` equals ``value`` (``null`` matches missing ones), compared as text."""

    type: Literal["selector"]
    dimension: FieldName
    value: Value | None = None


class EqualsFilter(SpecModel):
    """Rows whose ``column`` equals ``matchValue``."""

    type: Literal["equals"]
    column: FieldName
    matchValueType: FieldName | None = None
    matchValue: Value


class NullFilter(SpecModel):
    """Rows whose ``column`` is missing or null."""

    type: Literal["null"]
    column: FieldName


class InFilter(SpecModel):
    """Rows whose ``dimension`` is one of ``values``, compared as text."""

    type: Literal["in"]
    dimension: FieldName
    values: list[Value | None] = Field(max_length=MAX_VALUES)


def _sorted(values: list[Any]) -> list[Any]:
    not_null = [v for v in values if v is not None]
    return sorted(not_null, key=lambda v: (0, v, "") if isinstance(v, int | float) else (1, 0, str(v)))


class InTypeFilter(SpecModel):
    """Rows whose ``column`` is one of several texts or whole numbers."""

    type: Literal["inType"]
    column: FieldName
    matchValueType: Annotated[Literal["STRING", "LONG"], BeforeValidator(_upper)]
    sortedValues: list[Value | None] = Field(max_length=MAX_VALUES)

    @property
    def values(self) -> list[Value | None]:
        """In any order."""
        return self.sortedValues

    @model_validator(mode="before")
    @classmethod
    def _accept_either_name(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("matchValueType"), str) and value["matchValueType"].upper() in ("DOUBLE", "FLOAT"):
            raise ValueError(
                "inType of DOUBLE or FLOAT is not supported: Druid compares only the whole parts of numbers"
            )
        sorted_values, plain_values = value.get("sortedValues"), value.get("values")
        if isinstance(sorted_values, list) and [v for v in sorted_values if v is not None] != _sorted(sorted_values):
            raise ValueError("sortedValues are not sorted, so Druid would miss some: use values")
        if not isinstance(plain_values, list) or sorted_values is not None:
            return value
        rest = {name: inner for name, inner in value.items() if name != "values"}
        return {**rest, "sortedValues": [None] * (None in plain_values) + _sorted(plain_values)}

    @model_validator(mode="after")
    def _check_type_of_values(self) -> InTypeFilter:
        for value in self.values if self.matchValueType == "LONG" else []:
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**53):
                raise ValueError(f"{value!r} is not a whole number of at most 53 bits, which matchValueType LONG needs")
        return self


class ArrayContainsElementFilter(SpecModel):
    """Rows whose ``column``, a list or a value, has ``elementMatchValue``."""

    type: Literal["arrayContainsElement"]
    column: FieldName
    elementMatchValueType: Kind
    elementMatchValue: Value


class BoundFilter(SpecModel):
    """Rows whose ``dimension`` lies between ``lower`` and ``upper``. ``ordering`` is the kind of comparison."""

    type: Literal["bound"]
    dimension: FieldName
    lower: Bound | None = None
    upper: Bound | None = None
    lowerStrict: bool = False
    upperStrict: bool = False
    ordering: Literal["lexicographic", "numeric", "strlen"] = "lexicographic"

    @field_validator("ordering", mode="before")
    @classmethod
    def _expand_name(cls, value: Any) -> Any:
        return value["type"] if isinstance(value, dict) and set(value) == {"type"} else value


class LikeFilter(SpecModel):
    """Rows whose ``dimension`` matches an SQL LIKE pattern (``%`` and ``_``)."""

    type: Literal["like"]
    dimension: FieldName
    pattern: str = Field(max_length=1_000)
    escape: str | None = Field(default=None, max_length=1)


class ExpressionFilter(SpecModel):
    """Rows for which an expression is true. Null is not true. A failed SQL expression is not true either."""

    type: Literal["expression"]
    expression: str = Field(min_length=1, max_length=LONGEST_EXPRESSION)
    language: Language = "druid"


class RegexFilter(SpecModel):
    """Rows whose ``dimension`` has a match of a Java regular expression."""

    type: Literal["regex"]
    dimension: FieldName
    pattern: str = Field(max_length=1_000)

    @property
    def column_(self) -> str:
        """The field that it looks at."""
        return self.dimension


class SearchQuery(SpecModel):
    """The query of a search filter: ``value``, all of ``values``, a ``pattern``, or any text."""

    type: Literal["contains", "insensitive_contains", "fragment", "regex", "all"]
    value: str | None = Field(default=None, min_length=1, max_length=LONGEST_VALUE)
    values: list[Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]] | None = Field(
        default=None, min_length=1, max_length=100
    )
    pattern: str | None = Field(default=None, max_length=1_000)
    caseSensitive: bool = False

    @model_validator(mode="after")
    def _check_fields_of_type(self) -> SearchQuery:
        needed = {"fragment": "values", "regex": "pattern", "all": None}.get(self.type, "value")
        written = [name for name in ("value", "values", "pattern") if getattr(self, name) is not None]
        if written != [needed] * (needed is not None):
            raise ValueError(
                f"type {self.type} needs {needed or 'no other field'}, not {list_names(written) or 'nothing'}"
            )
        return self

    @property
    def required_values(self) -> list[str]:
        """All of them have to be found."""
        return self.values or [self.value or ""]


class SearchFilter(SpecModel):
    """Rows whose ``dimension`` matches a search query."""

    type: Literal["search"]
    dimension: FieldName
    query: SearchQuery

    @property
    def column_(self) -> str:
        """The field that it looks at."""
        return self.dimension


class IntervalFilter(SpecModel):
    """Rows whose ``dimension``, as milliseconds, lies in one of the ISO 8601 ``intervals``."""

    type: Literal["interval"]
    dimension: FieldName
    intervals: list[FieldName] = Field(min_length=1, max_length=1_000)

    @field_validator("intervals")
    @classmethod
    def _check_readable(cls, value: list[str]) -> list[str]:
        for text in value:
            interval_ms(text)
        return value

    @property
    def column_(self) -> str:
        """The field that it looks at."""
        return self.dimension

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """In milliseconds, half-open."""
        return [interval_ms(text) for text in self.intervals]


class ColumnComparisonFilter(SpecModel):
    """Rows whose ``dimensions`` are all equal, as text; null equals null."""

    type: Literal["columnComparison"]
    dimensions: list[FieldName] = Field(min_length=2, max_length=100)


class RangeFilter(SpecModel):
    """Rows whose ``column`` lies between two values, as text or as numbers."""

    type: Literal["range"]
    column: FieldName
    matchValueType: Kind
    lower: Bound | None = None
    upper: Bound | None = None
    lowerOpen: bool = False
    upperOpen: bool = False

    @model_validator(mode="after")
    def _check_type_of_values(self) -> RangeFilter:
        bounds = [b for b in (self.lower, self.upper) if b is not None]
        if not bounds:
            raise ValueError("give lower, upper or both")
        for bound in bounds if self.matchValueType != "STRING" else []:
            try:
                number = float(bound)
            except ValueError:
                number = float("nan")
            if not abs(number) <= 1.7e308:
                raise ValueError(f"{bound!r} is not a number, which matchValueType {self.matchValueType} needs")
            if self.matchValueType == "LONG" and (number != int(number) or abs(number) > 2**53):
                raise ValueError(f"{bound!r} is not a whole number of at most 53 bits, which matchValueType LONG needs")
        return self

    @property
    def column_(self) -> str:
        """The field that it looks at."""
        return self.column


LeafFilter = RegexFilter | SearchFilter | IntervalFilter | ColumnComparisonFilter | RangeFilter


class TrueFilter(SpecModel):
    """Every row."""

    type: Literal["true"]


class FalseFilter(SpecModel):
    """No row."""

    type: Literal["false"]


class AndFilter(SpecModel):
    """Rows that match all ``fields``."""

    type: Literal["and"]
    fields: list[Filter] = Field(min_length=1, max_length=MAX_FILTERS)


class OrFilter(SpecModel):
    """Rows that match at least one of ``fields``."""

    type: Literal["or"]
    fields: list[Filter] = Field(min_length=1, max_length=MAX_FILTERS)


class IsTrueFilter(SpecModel):
    """Rows for which ``field`` is true. All others do not match."""

    type: Literal["istrue"]
    field: Filter


class IsFalseFilter(SpecModel):
    """Rows for which ``field`` is false. All others do not match."""

    type: Literal["isfalse"]
    field: Filter


class NotFilter(SpecModel):
    """Rows that do not match ``field``."""

    type: Literal["not"]
    field: Filter


Filter = Annotated[
    SelectorFilter
    | EqualsFilter
    | NullFilter
    | InFilter
    | InTypeFilter
    | ArrayContainsElementFilter
    | BoundFilter
    | LikeFilter
    | ExpressionFilter
    | RegexFilter
    | SearchFilter
    | IntervalFilter
    | ColumnComparisonFilter
    | RangeFilter
    | TrueFilter
    | FalseFilter
    | AndFilter
    | OrFilter
    | NotFilter
    | IsTrueFilter
    | IsFalseFilter,
    Field(discriminator="type"),
]

for _model in (AndFilter, OrFilter, NotFilter, IsTrueFilter, IsFalseFilter):
    _model.model_rebuild()


def within_limits(condition: Filter) -> Filter:
    """The filter, if it is neither too large nor nested too deep. Raises ``ValueError``."""
    level, depth, filters, values, expressions = [condition], 0, 0, 0, 0
    while level:
        depth += 1
        filters += len(level)
        values += sum(len(f.values) for f in level if isinstance(f, InFilter | InTypeFilter))
        expressions += sum(isinstance(f, ExpressionFilter | LeafFilter) for f in level)
        if depth > DEEPEST_FILTER:
            raise ValueError(f"filters are nested deeper than {DEEPEST_FILTER} levels")
        level = [inner for f in level for inner in _child_filters(f)]
    counts = ((filters, MAX_FILTERS, "filters"), (values, MAX_VALUES, "values of filters of type in and inType"))
    for count, most, noun in (*counts, (expressions, MAX_EXPRESSIONS, "expressions")):
        if count > most:
            raise ValueError(f"there are {count} {noun}; {most} at most")
    return condition


def _child_filters(condition: Filter) -> list[Filter]:
    if isinstance(condition, NotFilter | IsTrueFilter | IsFalseFilter):
        return [condition.field]
    return condition.fields if isinstance(condition, AndFilter | OrFilter) else []


def columns_of(condition: Filter) -> set[str]:
    """The fields that a filter without expressions looks at."""
    inner = _child_filters(condition)
    if inner:
        return set().union(*(columns_of(f) for f in inner))
    if isinstance(condition, ColumnComparisonFilter):
        return set(condition.dimensions)
    named = (getattr(condition, name, None) for name in ("dimension", "column"))
    return {name for name in named if name is not None}


def has_expressions(condition: Filter) -> bool:
    """Whether the filter has an expression."""
    return isinstance(condition, ExpressionFilter) or any(has_expressions(f) for f in _child_filters(condition))
