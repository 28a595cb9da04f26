"""Druid's aggregators as a ``metricsSpec`` has them: what is summed up of the records that become one row.

A metric reads the field ``fieldName``; fields and names of metrics are not discovered as dimensions. Without rollup
each row has the metrics of its one record.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from ingestion.specs.base import SpecModel
from ingestion.specs.limits import ColumnName, FieldName

# What tells the first record from the last is not stored with a row: such rows can't be merged again.
NOT_AGAIN = frozenset({"first", "last"})
ValueKind = Literal["long", "float", "double", "string"]


class _Metric(SpecModel):
    name: ColumnName

    @field_validator("name")
    @classmethod
    def _not_time(cls, value: str) -> str:
        if value == "__time":
            raise ValueError("__time is the segment's own time column and can't be a metric")
        return value


class CountMetric(_Metric):
    """How many records became the row."""

    type: Literal["count"]

    @property
    def how(self) -> str:
        return "count"

    @property
    def kind(self) -> ValueKind:
        return "long"

    @property
    def field(self) -> str | None:
        """The records' field; None: it needs none."""
        return None


class _FieldMetric(_Metric):
    fieldName: FieldName
    # What a first or last one goes by; Druid shows it, and it may be no other here.
    timeColumn: Literal["__time"] | None = Field(default=None, exclude=True)

    @property
    def field(self) -> str | None:
        return self.fieldName


class NumberMetric(_FieldMetric):
    """A number of the records' field: its sum, least or greatest, that of the first or last record, or any."""

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

    @property
    def how(self) -> str:
        return self.type.removeprefix("long").removeprefix("float").removeprefix("double").lower()

    @property
    def kind(self) -> ValueKind:
        return "long" if self.type.startswith("long") else "float" if self.type.startswith("float") else "double"


class StringMetric(_FieldMetric):
    """A text of the records' field, cut to ``maxStringBytes``; that of the first or last record, or any."""

    type: Literal["stringFirst", "stringLast", "stringAny"]
    maxStringBytes: int = Field(default=1024, ge=1, le=1_048_576)

    @property
    def how(self) -> str:
        return self.type.removeprefix("string").lower()

    @property
    def kind(self) -> ValueKind:
        return "string"


Metric = Annotated[CountMetric | NumberMetric | StringMetric, Field(discriminator="type")]
