"""Druid's aggregators of a ``metricsSpec``: values of all records that become one row.

A metric reads the field ``fieldName`` or an expression. Schema discovery leaves out fields and names of metrics.
Without rollup each row has the metrics of its one record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ingestion.specs.limits import DEEPEST_FILTER, LONGEST_EXPRESSION, FieldName
from ingestion.specs.schema.filters import AndFilter, Filter, columns_of, has_expressions, within_limits
from ingestion.specs.schema.metric_base import BaseMetric, FieldMetric, ValueKind
from ingestion.specs.schema.sketch_metrics import SketchMetric

# Which of some rows has the value depends on when its records came: see ``ingestion.specs.schema.data_schema``.
BY_TIME = frozenset({"first", "last"})
_EXPRESSION_AGGREGATES = frozenset({"sum", "min", "max"})


class CountMetric(BaseMetric):
    """The number of records that became the row."""

    type: Literal["count"]

    @property
    def aggregation(self) -> str:
        return "count"

    @property
    def kind(self) -> ValueKind:
        return "long"

    @property
    def field(self) -> str | None:
        """The records' field; None: it needs none."""
        return None


class NumberMetric(BaseMetric):
    """A number from a field: its sum, minimum, maximum, the value of the first or last record, or any value.

    Sums, minimum and maximum may have an expression of Druid's language instead of the field.
    """

    type: Literal[
        "longSum",
        "floatSum",
        "doubleSum",
        "longMin",
        "floatMin",
        "doubleMin",
        "longMax",
        "floatMax",
        "doubleMax",
        "longFirst",
        "floatFirst",
        "doubleFirst",
        "longLast",
        "floatLast",
        "doubleLast",
        "longAny",
        "floatAny",
        "doubleAny",
    ]
    fieldName: FieldName | None = None
    expression: str | None = Field(default=None, min_length=1, max_length=LONGEST_EXPRESSION)
    # What a first or last one goes by; Druid shows it, and it may be no other here.
    timeColumn: Literal["__time"] | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _check_input(self) -> NumberMetric:
        if self.expression is not None and self.aggregation not in _EXPRESSION_AGGREGATES:
            raise ValueError(f"{self.type} takes no expression, as in Druid: give fieldName")
        if (self.fieldName is None) == (self.expression is None):
            raise ValueError(
                "give either fieldName or expression"
                if self.aggregation in _EXPRESSION_AGGREGATES
                else "needs fieldName"
            )
        return self

    @property
    def field(self) -> str:
        """The records' field; of an expression one that is made of it, and that no record has."""
        return self.fieldName if self.fieldName is not None else f"\0{self.name}"

    @property
    def made_from(self) -> str | None:
        return self.expression

    @property
    def aggregation(self) -> str:
        return self.type.removeprefix("long").removeprefix("float").removeprefix("double").lower()

    @property
    def kind(self) -> ValueKind:
        return "long" if self.type.startswith("long") else "float" if self.type.startswith("float") else "double"


class StringMetric(FieldMetric):
    """A text from a field, at most ``maxStringBytes`` long, of the first or last record, or of any."""

    type: Literal["stringFirst", "stringLast", "stringAny"]
    timeColumn: Literal["__time"] | None = Field(default=None, exclude=True)  # as of a number
    maxStringBytes: int = Field(default=1024, ge=1, le=1_048_576)

    @property
    def aggregation(self) -> str:
        return self.type.removeprefix("string").lower()

    @property
    def kind(self) -> ValueKind:
        return "string"


class FilteredMetric(BaseMetric):
    """Another metric, only of records that match a filter. If ``name`` is left out, it has the other metric's name."""

    type: Literal["filtered"]
    filter: Annotated[Filter, AfterValidator(within_limits)]
    aggregator: Metric

    @model_validator(mode="before")
    @classmethod
    def _default_name(cls, value: Any) -> Any:
        named = value
        for _ in range(DEEPEST_FILTER):
            if not isinstance(named, dict) or named.get("name"):
                break
            named = named.get("aggregator")
        return {**value, "name": named["name"]} if isinstance(named, dict) and named.get("name") else value

    @model_validator(mode="after")
    def _check_filter(self) -> FilteredMetric:
        if has_expressions(self.filter):
            raise ValueError(
                "the filter of a metric may have no expressions, because Druid evaluates them differently there: make "
                "a field of the expression by a transform, and filter by that field"
            )
        if self.aggregation in BY_TIME:
            raise ValueError(f"{self.plain.type} cannot have a filter: first and last values are those of all records")
        return self

    @property
    def plain(self) -> PlainMetric:
        """What is filtered in the end."""
        return self.aggregator.plain if isinstance(self.aggregator, FilteredMetric) else self.aggregator

    @property
    def condition(self) -> Filter:
        """What a record has to match, also where filters stand in one another."""
        if not isinstance(self.aggregator, FilteredMetric):
            return self.filter
        return AndFilter(type="and", fields=[self.filter, self.aggregator.condition])

    @property
    def aggregation(self) -> str:
        return self.plain.aggregation

    @property
    def kind(self) -> ValueKind:
        return self.plain.kind

    @property
    def field(self) -> str | None:
        return self.plain.field

    @property
    def made_from(self) -> str | None:
        return self.plain.made_from


PlainMetric = CountMetric | NumberMetric | StringMetric | SketchMetric
Metric = Annotated[PlainMetric | FilteredMetric, Field(discriminator="type")]
FilteredMetric.model_rebuild()


def unfiltered_metric(metric: Metric) -> PlainMetric:
    """Itself, or what is filtered."""
    return metric.plain if isinstance(metric, FilteredMetric) else metric


def fields_of(metrics: Sequence[Metric]) -> set[str]:
    """Those of the records that metrics read, and that their filters look at."""
    read = {m.field for m in metrics if m.field is not None}
    return read.union(*(columns_of(m.condition) for m in metrics if isinstance(m, FilteredMetric)))
