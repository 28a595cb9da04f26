"""Druid's aggregators whose value is a sketch of Apache DataSketches: how many distinct values, and quantiles.

``shouldFinalize``, ``round``, ``errorBoundsStdDev`` and ``maxStreamLength`` are for queries and have no effect here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from ingestion.specs.schema.metric_base import FieldMetric, SketchKind


def _power_of_two(value: int) -> int:
    if value & (value - 1):
        raise ValueError(f"{value} is not a power of two")
    return value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


class HllMetric(FieldMetric):
    """A HyperLogLog sketch of a field's values, or the union of the sketches in the field."""

    type: Literal["HLLSketchBuild", "HLLSketchMerge"]
    lgK: int = Field(default=12, ge=4, le=21)
    tgtHllType: Literal["HLL_4", "HLL_6", "HLL_8"] = "HLL_4"
    stringEncoding: Annotated[Literal["utf16le", "utf8"], BeforeValidator(_lower)] = "utf16le"
    shouldFinalize: bool = Field(default=True, exclude=True)
    round: bool = Field(default=False, exclude=True)

    @property
    def aggregation(self) -> str:
        return "hll"

    @property
    def kind(self) -> SketchKind:
        return "COMPLEX<HLLSketch>"

    @property
    def reads_sketches(self) -> bool:
        return self.type == "HLLSketchMerge"


class ThetaMetric(FieldMetric):
    """A theta sketch of a field's values, or the union of the sketches in the field."""

    type: Literal["thetaSketch"]
    size: Annotated[int, AfterValidator(_power_of_two)] = Field(default=16_384, ge=32, le=67_108_864)
    isInputThetaSketch: bool = False
    shouldFinalize: bool = Field(default=True, exclude=True)
    errorBoundsStdDev: int | None = Field(default=None, exclude=True)

    @property
    def aggregation(self) -> str:
        return "theta"

    @property
    def kind(self) -> SketchKind:
        return "COMPLEX<thetaSketch>"

    @property
    def reads_sketches(self) -> bool:
        return self.isInputThetaSketch


class QuantilesMetric(FieldMetric):
    """A quantiles sketch of the numbers and sketches in a field."""

    type: Literal["quantilesDoublesSketch"]
    k: Annotated[int, AfterValidator(_power_of_two)] = Field(default=128, ge=2, le=32_768)
    maxStreamLength: int | None = Field(default=None, exclude=True)
    shouldFinalize: bool = Field(default=True, exclude=True)

    @property
    def aggregation(self) -> str:
        return "quantiles"

    @property
    def kind(self) -> SketchKind:
        return "COMPLEX<quantilesDoublesSketch>"

    @property
    def reads_sketches(self) -> bool:
        return True


SketchMetric = HllMetric | ThetaMetric | QuantilesMetric
