"""The autoscaler of a supervisor's indexers: Druid's ``autoScalerConfig``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from ingestion.specs.base import Span, SpecModel

LagAggregate = Literal["SUM", "MAX", "AVERAGE"]
_OTHER_STRATEGIES = ("costBased",)
_BOUNDS = ("taskCountMax", "taskCountMin", "taskCountStart")


class AutoScalerConfig(SpecModel):
    """Druid's lag-based autoscaler. While it is enabled, ``taskCount`` has no effect. Times are in milliseconds.

    The fields of a disabled autoscaler may contradict each other, as in Druid.
    """

    enableTaskAutoScaler: bool = False
    taskCountMax: int | None = Field(default=None, ge=1, le=1000)
    taskCountMin: int | None = Field(default=None, ge=1, le=1000)
    taskCountStart: int | None = Field(default=None, ge=1, le=1000)
    minTriggerScaleActionFrequencyMillis: int = Field(default=600_000, ge=0)
    # Druid's successors of it, one for each direction; None: as it says.
    minScaleUpDelay: Span | None = Field(default=None, ge=timedelta())
    minScaleDownDelay: Span | None = Field(default=None, ge=timedelta())
    autoScalerStrategy: Literal["lagBased"] = "lagBased"
    lagCollectionIntervalMillis: int = Field(default=30_000, ge=1)
    lagCollectionRangeMillis: int = Field(default=600_000, ge=1, le=172_800_000)
    scaleOutThreshold: int = Field(default=6_000_000, ge=0)
    triggerScaleOutFractionThreshold: float = Field(default=0.3, ge=0, le=1)
    scaleInThreshold: int = Field(default=1_000_000, ge=0)
    triggerScaleInFractionThreshold: float = Field(default=0.9, ge=0, le=1)
    scaleActionStartDelayMillis: int = Field(default=300_000, ge=0)
    scaleActionPeriodMillis: int = Field(default=60_000, ge=1)
    scaleInStep: int = Field(default=1, ge=1)
    scaleOutStep: int = Field(default=2, ge=1)
    lagAggregate: LagAggregate | None = None  # of the partitions' lags; None: their sum
    stopTaskCountRatio: float | None = Field(default=None, gt=0, le=1)

    @model_validator(mode="before")
    @classmethod
    def _ignore_when_disabled(cls, value: Any) -> Any:
        """Druid shows a disabled autoscaler with bounds of 0, and with the fields of any strategy."""
        if not isinstance(value, dict) or value.get("enableTaskAutoScaler") not in (None, False):
            return value
        if value.get("autoScalerStrategy") in _OTHER_STRATEGIES:
            return {}
        return {name: v for name, v in value.items() if not (name in _BOUNDS and v == 0)}

    @field_validator("autoScalerStrategy", mode="before")
    @classmethod
    def _check_strategy(cls, value: Any) -> Any:
        if value in _OTHER_STRATEGIES:
            raise ValueError(f"{value} is not supported: use lagBased, which uses only the lag")
        return value

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if not self.enableTaskAutoScaler:
            return self
        if self.taskCountMax is None or self.taskCountMin is None:
            raise ValueError("taskCountMax and taskCountMin are required while enableTaskAutoScaler is true")
        if self.taskCountMax < self.taskCountMin:
            raise ValueError(f"taskCountMax ({self.taskCountMax}) is less than taskCountMin ({self.taskCountMin})")
        start = self.taskCountStart
        if start is not None and not self.taskCountMin <= start <= self.taskCountMax:
            raise ValueError(f"taskCountStart ({start}) is not between taskCountMin and taskCountMax")
        if self.lagCollectionIntervalMillis > self.lagCollectionRangeMillis:
            raise ValueError("lagCollectionIntervalMillis is longer than lagCollectionRangeMillis")
        return self

    @property
    def delays(self) -> tuple[timedelta, timedelta]:
        """How long after a change it may next add indexers, and remove some."""
        usual = timedelta(milliseconds=self.minTriggerScaleActionFrequencyMillis)
        up, down = self.minScaleUpDelay, self.minScaleDownDelay
        return usual if up is None else up, usual if down is None else down

    @property
    def bounds(self) -> tuple[int, int]:
        """taskCountMin and taskCountMax of one that is enabled."""
        return self.taskCountMin or 1, self.taskCountMax or 1
