"""A batch task's ``partitionsSpec``: how the rows of an interval are divided into segments.

Source: Druid's reference of native batch ingestion. ``hashed``, ``range`` and ``single_dim`` put rows that roll up
into one segment, so that rollup is perfect. They need ``forceGuaranteedRollup``, as in Druid.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ingestion.specs.base import SpecModel
from ingestion.specs.limits import MAX_COLUMNS, FieldName

DEFAULT_ROWS = 5_000_000  # of a segment
MAX_SHARDS = 20_000  # as many as a task may publish segments


def _unbounded(value: Any) -> Any:
    """Druid's -1 is no value given."""
    return None if value == -1 and not isinstance(value, bool) else value


Rows = Annotated[Annotated[int, Field(ge=1)] | None, BeforeValidator(_unbounded)]
_Names = Annotated[list[FieldName], Field(max_length=MAX_COLUMNS)]


class DynamicPartitionsSpec(SpecModel):
    """Segments with at most ``maxRowsPerSegment`` rows. ``maxTotalRows`` has no effect: a task publishes once."""

    type: Literal["dynamic"]
    maxRowsPerSegment: int | None = Field(default=None, ge=-1)
    maxTotalRows: int | None = Field(default=None, ge=-1)


class HashedPartitionsSpec(SpecModel):
    """Partitions by a hash of dimensions. If none are listed, by a hash of the time and all dimensions."""

    type: Literal["hashed"]
    numShards: Annotated[Annotated[int, Field(ge=1, le=MAX_SHARDS)] | None, BeforeValidator(_unbounded)] = None
    targetRowsPerSegment: Rows = None
    partitionDimensions: _Names = Field(default_factory=list)
    partitionFunction: Literal["murmur3_32_abs"] | None = None  # Druid's: nobody reads here which hash it was

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if self.numShards is not None and self.targetRowsPerSegment is not None:
            raise ValueError("give either numShards or targetRowsPerSegment")
        return self

    @property
    def dimensions(self) -> list[str]:
        return self.partitionDimensions

    @property
    def sizes_grouped(self) -> bool:
        """Whether its sizes are of the rows that rollup leaves."""
        return True

    def partitions_of(self, rows: float) -> int:
        """The number of partitions of an interval with about this many rows."""
        return self.numShards or max(1, -(-round(rows) // (self.targetRowsPerSegment or DEFAULT_ROWS)))


class _Ranges(SpecModel):
    targetRowsPerSegment: Rows = None
    maxRowsPerSegment: Rows = None
    assumeGrouped: bool = False

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if (self.targetRowsPerSegment is None) == (self.maxRowsPerSegment is None):
            raise ValueError("give either targetRowsPerSegment or maxRowsPerSegment")
        return self

    @property
    def sizes_grouped(self) -> bool:
        """Whether its sizes are of the rows that rollup leaves: not where the rows are said to be grouped already."""
        return not self.assumeGrouped

    def partitions_of(self, rows: float) -> int:
        """The number of partitions of an interval with about this many rows."""
        if self.maxRowsPerSegment is not None:
            return max(1, -(-round(rows) // self.maxRowsPerSegment))
        return max(1, round(rows / (self.targetRowsPerSegment or DEFAULT_ROWS)))


class RangePartitionsSpec(_Ranges):
    """Partitions by ranges of the values of some dimensions, compared in their order."""

    type: Literal["range"]
    partitionDimensions: Annotated[_Names, Field(min_length=1)]

    @property
    def dimensions(self) -> list[str]:
        return self.partitionDimensions


class SingleDimPartitionsSpec(_Ranges):
    """Partitions by ranges of the values of one dimension."""

    type: Literal["single_dim"]
    partitionDimension: FieldName

    @property
    def dimensions(self) -> list[str]:
        return [self.partitionDimension]


DividingSpec = HashedPartitionsSpec | RangePartitionsSpec | SingleDimPartitionsSpec
PartitionsSpec = Annotated[DynamicPartitionsSpec | DividingSpec, Field(discriminator="type")]


def effect_of(spec: DividingSpec) -> str:
    """Equal for specs that deal out rows alike, however they are written."""
    sizes = spec.model_dump(include={"numShards", "targetRowsPerSegment", "maxRowsPerSegment"}, exclude_none=True)
    if isinstance(spec, HashedPartitionsSpec):
        return json.dumps(["hashed", spec.dimensions, sizes or {"targetRowsPerSegment": DEFAULT_ROWS}])
    return json.dumps(["range", spec.dimensions, sizes, spec.assumeGrouped])
