"""Which records a metric of type ``filtered`` is made of."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ingestion.decode.engine import Engine
from ingestion.decode.fields import Mask
from ingestion.decode.transforms import Columns, FilterResult, RecordFilter, Times, Transformed
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.metrics import FilteredMetric


class CountedRecords:
    """The filters of a schema's metrics, compiled. Raises ``BadExpression``."""

    def __init__(self, engine: Engine, schema: DataSchema) -> None:
        self._filters = {
            m.name: RecordFilter(engine, m.condition) for m in schema.metricsSpec if isinstance(m, FilteredMetric)
        }
        self._transformed = bool(schema.transformSpec.transforms)

    @property
    def fields(self) -> list[str]:
        """The records' fields that have to be read for them."""
        return [name for condition in self._filters.values() for name in condition.fields(self._transformed)]

    @property
    def reads(self) -> list[tuple[str, str]]:
        """The fields that they look at, each with its metric."""
        return [(field, f"metric {name!r}") for name, condition in self._filters.items() for field in condition.named]

    def by_metric(
        self, texts: pa.Array, columns: Columns, transformed: Transformed, ms: Times, is_kept: Mask
    ) -> dict[str, FilterResult]:
        """Which of the ``is_kept`` records match, by the metric's name; those that nothing can be said of do not."""
        return {
            name: written.matching(texts, columns, transformed, ms, is_kept) for name, written in self._filters.items()
        }


def undecided(counted: Mapping[str, FilterResult]) -> dict[int, str]:
    """The records that nothing can be said of, by index."""
    return {
        index: f"metric {name!r}: its filter fails on this record, which is not counted"
        for name, matching in counted.items()
        for index in matching.undetermined
    }
