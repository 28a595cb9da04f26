"""The dataSchema of a spec. Names and meaning are those of Druid's ingestion spec reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, field_validator, model_validator

from ingestion.specs.base import SpecModel, check_plain_name, to_utc
from ingestion.specs.limits import (
    LONGEST_EXPRESSION,
    LONGEST_PATTERN,
    LONGEST_TYPE,
    MAX_COLUMNS,
    MAX_EXPRESSIONS,
    MAX_FIELDS,
    MAX_FILTERED,
    MAX_INTERVALS,
    ColumnName,
    FieldName,
    duplicates,
    list_names,
)
from ingestion.specs.schema.filters import Filter, Language, within_limits
from ingestion.specs.schema.granularity import Granularity
from ingestion.specs.schema.joda import check_read
from ingestion.specs.schema.metrics import FilteredMetric, Metric, fields_of
from ingestion.specs.schema.periods import AnyGranularity, granularity_of

CastType = Literal["LONG", "DOUBLE", "STRING", "ARRAY<LONG>", "ARRAY<DOUBLE>", "ARRAY<STRING>"]
_PLAIN_TYPES = {"LONG": "LONG", "DOUBLE": "DOUBLE", "FLOAT": "DOUBLE", "STRING": "STRING"}  # a float is a double
_ARRAY, _COMPLEX, _JSON = "ARRAY<", "COMPLEX<", "COMPLEX<json>"


def cast_type(name: str) -> CastType | None:
    """What values are cast to; None where Druid casts nothing: nested types, and what is no type.

    Raises ``ValueError`` for an array of no type, and for types that Druid's tasks fail with.
    """
    if name.upper() == "COMPLEX" or (name.startswith(_COMPLEX) and name != _JSON):
        raise ValueError(f"{name!r} is not a dimension type: the only complex type is {_JSON}")
    if not name.startswith(_ARRAY):
        return cast("CastType | None", _PLAIN_TYPES.get(name.upper()))
    inner = name[len(_ARRAY) :].removesuffix(">")
    if name.endswith(">") and inner.startswith((_ARRAY, _COMPLEX)):
        cast_type(inner)
        return None
    if not name.endswith(">") or inner.upper() not in _PLAIN_TYPES:
        raise ValueError(f"{name!r} is an array of an unknown type: use ARRAY<LONG>, ARRAY<DOUBLE> or ARRAY<STRING>")
    return cast("CastType", f"{_ARRAY}{_PLAIN_TYPES[inner.upper()]}>")


# Columns of segment files that nobody is shown: what tells the first of the records that became a row from the last.
# They are int64, and come after all others. Times are milliseconds since 1970. Orders grow with the records as they
# came, whichever segment they are in. No schema has columns of these names, and no field of theirs becomes a column.
EXTENTS = ("__headgate_first_time", "__headgate_first_order", "__headgate_last_time", "__headgate_last_order")

TIME_FORMATS = ("auto", "iso", "millis", "micro", "nano", "posix", "ruby")


class TimestampSpec(SpecModel):
    """The column and format of a record's time."""

    column: FieldName = "timestamp"
    # One of ``TIME_FORMATS``, a Joda pattern, or one with strptime's ``%``.
    format: str = Field(default="auto", min_length=1, max_length=LONGEST_PATTERN)
    missingValue: datetime | None = None

    @field_validator("format")
    @classmethod
    def _check_format(cls, value: str) -> str:
        if value.lower() in TIME_FORMATS:
            return value.lower()
        if "%" not in value:
            _check_joda(value)
        return value

    @field_validator("missingValue")
    @classmethod
    def _convert_to_utc(cls, value: datetime | None) -> datetime | None:
        return to_utc(value)


def _check_joda(pattern: str) -> None:
    try:
        check_read(pattern)
    except ValueError as error:
        names = ", ".join(TIME_FORMATS)
        raise ValueError(f"must be {names}, or a pattern such as yyyy-MM-dd HH:mm:ss; {error}") from None


class DimensionSchema(SpecModel):
    """One column and its type. A plain name in the JSON means type string."""

    name: ColumnName
    type: Literal["string", "long", "float", "double", "json", "auto"] = "string"
    # The order of a string column's lists.
    multiValueHandling: Literal["SORTED_ARRAY", "SORTED_SET", "ARRAY"] = "SORTED_ARRAY"
    createBitmapIndex: bool = True  # Parquet has no such index
    formatVersion: int | None = None  # of Druid's nested columns: Parquet has one form
    # What an auto column's values are taken for.
    castToType: str | None = Field(default=None, max_length=LONGEST_TYPE)

    @field_validator("multiValueHandling", mode="before")
    @classmethod
    def _ignore_case(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @field_validator("castToType")
    @classmethod
    def _normalize_cast_type(cls, value: str | None) -> str | None:
        if value is None:
            return None
        cast_type(value)
        return value.upper() if value.upper() in _PLAIN_TYPES else value

    @model_validator(mode="after")
    def _check_cast(self) -> DimensionSchema:
        if self.castToType is not None and self.type != "auto":
            raise ValueError(f"castToType is for dimensions of type auto; {self.name} is of type {self.type}")
        return self

    @property
    def cast_target(self) -> CastType | None:
        """The type that values are cast to; None: that which they suggest."""
        return None if self.castToType is None else cast_type(self.castToType)

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if value == "__time":
            raise ValueError("__time is the segment's own time column and can't be a dimension")
        return value


def _to_schema(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class DimensionsSpec(SpecModel):
    """The stored dimensions: the listed ones, or all fields of the records."""

    dimensions: list[DimensionSchema] = Field(default_factory=list, max_length=MAX_COLUMNS)
    dimensionExclusions: list[FieldName] = Field(default_factory=list, max_length=MAX_FIELDS)
    useSchemaDiscovery: bool = False
    includeAllDimensions: bool = False
    spatialDimensions: list[Any] = Field(default_factory=list)

    @field_validator("spatialDimensions")
    @classmethod
    def _refuse_spatial_dimensions(cls, value: list[Any]) -> list[Any]:
        if value:
            raise ValueError("Parquet has no spatial index: add the coordinates as dimensions of type double")
        return value

    @field_validator("dimensions", mode="before")
    @classmethod
    def _expand_names(cls, value: Any) -> Any:
        return [_to_schema(v) for v in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _check_unique_names(self) -> DimensionsSpec:
        names = [d.name for d in self.dimensions]
        twice = duplicates(names)
        if twice:
            raise ValueError(f"dimensions are named twice: {list_names(twice)}")
        excluded = sorted(set(names) & set(self.dimensionExclusions))
        if excluded:
            raise ValueError(f"dimensions are both named and excluded: {list_names(excluded)}")
        return self

    @property
    def discovers(self) -> bool:
        """Whether fields that are not named become columns too (Druid: also when no dimension is named)."""
        return self.useSchemaDiscovery or self.includeAllDimensions or not self.dimensions

    @property
    def discovers_strings(self) -> bool:
        """Whether they become columns of strings, and fields with nested values none."""
        return self.discovers and not self.useSchemaDiscovery


class GranularitySpec(SpecModel):
    """The length of a segment's interval, the granularity of a row's time, and whether rows are rolled up."""

    type: Literal["uniform"] = "uniform"
    segmentGranularity: AnyGranularity = Granularity.DAY
    queryGranularity: AnyGranularity = Granularity.NONE
    rollup: bool = True
    # For Druid's batch tasks: taken, and without effect on a stream.
    intervals: list[FieldName] | None = Field(default=None, max_length=MAX_INTERVALS)

    @field_validator("segmentGranularity", "queryGranularity", mode="before")
    @classmethod
    def _expand_name(cls, value: Any) -> Any:
        return granularity_of(value)

    @field_validator("segmentGranularity")
    @classmethod
    def _check_granularity(cls, value: AnyGranularity) -> AnyGranularity:
        if value is Granularity.NONE:
            raise ValueError("NONE would make a segment per millisecond; use SECOND or longer")
        if not isinstance(value, Granularity) and (value.fixed_ms or (0, 1000))[1] < 1000:
            raise ValueError("a segment's interval must be at least one second")
        return value


class ExpressionTransform(SpecModel):
    """A field that an expression computes from a record's fields. It hides a field with the same name."""

    type: Literal["expression"]
    name: ColumnName
    expression: str = Field(min_length=1, max_length=LONGEST_EXPRESSION)
    language: Language = "druid"


class TransformSpec(SpecModel):
    """Computed fields, and the filter of rows."""

    transforms: list[ExpressionTransform] = Field(default_factory=list, max_length=MAX_EXPRESSIONS)
    filter: Annotated[Filter, AfterValidator(within_limits)] | None = None

    @model_validator(mode="after")
    def _check_unique_names(self) -> TransformSpec:
        twice = duplicates(t.name for t in self.transforms)
        if twice:
            raise ValueError(f"transforms are named twice: {list_names(twice)}")
        return self


class DataSchema(SpecModel):
    """The schema of the rows: time, dimensions, metrics, granularity, transforms and filter."""

    dataSource: Annotated[str, AfterValidator(check_plain_name)]
    timestampSpec: TimestampSpec
    dimensionsSpec: DimensionsSpec = Field(default_factory=DimensionsSpec)
    metricsSpec: list[Metric] = Field(default_factory=list, max_length=MAX_COLUMNS)
    granularitySpec: GranularitySpec = Field(default_factory=GranularitySpec)
    transformSpec: TransformSpec = Field(default_factory=TransformSpec)
    projections: list[Any] | None = None  # Druid's: rows that are added up once more, for queries

    @model_validator(mode="after")
    def _check_unique_columns(self) -> DataSchema:
        names = [*(d.name for d in self.dimensionsSpec.dimensions), *(m.name for m in self.metricsSpec)]
        if len(names) > MAX_COLUMNS:
            raise ValueError(f"dimensions and metrics are {len(names)} columns; {MAX_COLUMNS} at most")
        twice = duplicates(names)
        if twice:
            raise ValueError(f"columns are named twice among dimensions and metrics: {list_names(twice)}")
        reserved = sorted({"__record_time", *EXTENTS}.intersection(names))
        if reserved:
            raise ValueError(f"{reserved[0]} is a name of Headgate's own and can't be a dimension or metric")
        return self

    @model_validator(mode="after")
    def _limit_expressions(self) -> DataSchema:
        filtered = sum(isinstance(m, FilteredMetric) for m in self.metricsSpec)
        computed = sum(m.made_from is not None for m in self.metricsSpec)
        for count, predicate in ((filtered, "are filtered"), (computed, "read an expression")):
            if count > MAX_FILTERED:
                raise ValueError(f"{count} metrics {predicate}; {MAX_FILTERED} at most")
        return self

    @property
    def undiscovered(self) -> frozenset[str]:
        """Fields that never become columns by discovery: as in Druid also those that metrics read or are named as."""
        metrics = {m.name for m in self.metricsSpec} | fields_of(self.metricsSpec)
        excluded = {*self.dimensionsSpec.dimensionExclusions, self.timestampSpec.column, "__time", *EXTENTS}
        return frozenset(metrics | excluded)


def schema_options_without_effect(schema: Mapping[str, Any]) -> list[str]:
    """By path and with the reason."""
    options = ["dataSchema.projections: queries read the rows"] if schema.get("projections") else []
    for dimension in schema.get("dimensionsSpec", {}).get("dimensions", []):
        if isinstance(dimension, dict):
            path = f"dataSchema.dimensionsSpec.dimensions[{dimension.get('name')}]"
            options += [f"{path}.{option}" for option in _dimension_options(dimension)]
    return options


def _dimension_options(dimension: Mapping[str, Any]) -> Iterator[str]:
    if not dimension.get("createBitmapIndex", True):
        yield "createBitmapIndex: Parquet has no bitmap index"
    if dimension.get("formatVersion") is not None:
        yield "formatVersion: Parquet has one form of nested columns"
    cast_to = dimension.get("castToType")
    if cast_to is not None and cast_type(cast_to) is None:
        yield f"castToType: as in Druid, nothing is cast to {cast_to!r}"
