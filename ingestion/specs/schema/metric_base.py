"""The base of all metrics of a ``metricsSpec``."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from ingestion.specs.base import SpecModel
from ingestion.specs.limits import ColumnName, FieldName

SketchKind = Literal["COMPLEX<HLLSketch>", "COMPLEX<thetaSketch>", "COMPLEX<quantilesDoublesSketch>"]
ValueKind = Literal["long", "float", "double", "string"] | SketchKind


class BaseMetric(SpecModel):
    name: ColumnName

    @property
    def made_from(self) -> str | None:
        """The expression that it reads instead of a field; None: it reads a field, or needs none."""
        return None

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if value == "__time":
            raise ValueError("__time is the segment's own time column and can't be a metric")
        return value


class FieldMetric(BaseMetric):
    fieldName: FieldName

    @property
    def field(self) -> str | None:
        return self.fieldName
