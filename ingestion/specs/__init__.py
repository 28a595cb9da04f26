"""Spec models and wire messages: Druid's JSON names, pydantic and the standard library only.

``parse_task_spec`` and ``parse_supervisor_spec`` are the two doors; both raise ``SpecError`` with every error at once.
"""

from ingestion.specs.auto_scaler import AutoScalerConfig
from ingestion.specs.data_schema import (
    DataSchema,
    DimensionSchema,
    DimensionsSpec,
    GranularitySpec,
    TimestampSpec,
    TransformSpec,
)
from ingestion.specs.errors import SpecError, SpecIssue
from ingestion.specs.filters import Filter
from ingestion.specs.granularity import Granularity
from ingestion.specs.index_spec import IndexSpec
from ingestion.specs.ingestion_spec import (
    IngestionSpec,
    SupervisorSpec,
    TaskSpec,
    TuningConfig,
    issues_as_written,
    parse_supervisor_spec,
    parse_task_spec,
)
from ingestion.specs.input_format import InputFormat
from ingestion.specs.io_config import IOConfig, KafkaIOConfig, ShareGroupIOConfig
from ingestion.specs.periods import AnyGranularity, DurationGranularity, PeriodGranularity

__all__ = [
    "AnyGranularity",
    "AutoScalerConfig",
    "DataSchema",
    "DimensionSchema",
    "DimensionsSpec",
    "DurationGranularity",
    "Filter",
    "Granularity",
    "GranularitySpec",
    "IOConfig",
    "IndexSpec",
    "IngestionSpec",
    "InputFormat",
    "KafkaIOConfig",
    "PeriodGranularity",
    "ShareGroupIOConfig",
    "SpecError",
    "SpecIssue",
    "SupervisorSpec",
    "TaskSpec",
    "TimestampSpec",
    "TransformSpec",
    "TuningConfig",
    "issues_as_written",
    "parse_supervisor_spec",
    "parse_task_spec",
]
