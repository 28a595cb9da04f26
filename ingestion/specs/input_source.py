"""Where a batch task reads: ``ioConfig.inputSource``, in Druid's JSON names.

Source: Druid's reference of input sources. Nothing here opens a file: the data plane does, and refuses what lies
outside the folders that the site has named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ingestion.specs.base import SpecModel, a_plain_name, unbuilt
from ingestion.specs.intervals import interval_ms
from ingestion.specs.limits import FieldName, one_line

MOST_FILES = 10_000  # that a spec names one by one
MOST_DELEGATES = 100
_NO_SYSTEM_FIELDS = "is not supported: rows hold what is in the files, not what the files are called"
_BUILT = ("inline", "local", "combining", "druid")
_DRUIDS = ("s3", "google", "azureStorage", "azure", "hdfs", "http", "sql", "delta", "iceberg")


def _a_path(value: str) -> str:
    """An absolute path without a step upwards: where it leads can be told by its text."""
    if "\0" in value or not value.startswith("/") or ".." in PurePosixPath(value).parts:
        raise ValueError("must be an absolute path without '..'")
    return value


LocalPath = Annotated[FieldName, AfterValidator(one_line), AfterValidator(_a_path)]


class InlineInputSource(SpecModel):
    """The records stand in the spec."""

    type: Literal["inline"]
    data: str = Field(min_length=1)


class LocalInputSource(SpecModel):
    """Files below a folder, by a wildcard of their names, or files by name."""

    type: Literal["local"]
    baseDir: LocalPath | None = None
    filter: Annotated[FieldName, AfterValidator(one_line)] | None = None
    files: list[LocalPath] = Field(default_factory=list, max_length=MOST_FILES)
    systemFields: Annotated[None, unbuilt(_NO_SYSTEM_FIELDS)] = None

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> LocalInputSource:
        if (self.baseDir is None) == (not self.files):
            raise ValueError("give baseDir with a filter, or files")
        if (self.baseDir is None) != (self.filter is None):
            raise ValueError('baseDir and filter go together: "filter": "*" takes every file below baseDir')
        return self

    @property
    def named(self) -> Sequence[str]:
        """The paths that it names."""
        return self.files if self.baseDir is None else [self.baseDir]


def _an_interval(value: str) -> str:
    interval_ms(value)
    return value


class DruidInputSource(SpecModel):
    """The rows that a datasource has in an interval."""

    type: Literal["druid"]
    dataSource: Annotated[str, AfterValidator(a_plain_name)]
    interval: Annotated[FieldName, AfterValidator(_an_interval)]
    segments: Annotated[None, unbuilt("is not supported: give an interval")] = None
    filter: Annotated[None, unbuilt("is not supported here: write it into dataSchema.transformSpec")] = None
    dimensions: Annotated[None, unbuilt("is not supported here: dataSchema.dimensionsSpec names the columns")] = None
    metrics: Annotated[None, unbuilt("is not supported here: dataSchema.metricsSpec names them")] = None


def _known(value: Any) -> Any:
    """One of Druid's that is not there is refused by its name."""
    kind = value.get("type") if isinstance(value, dict) else None
    if kind in _DRUIDS:
        raise ValueError(f"the input source {kind!r} of Druid is not supported: use {', '.join(_BUILT)}")
    return value


_One = Annotated[InlineInputSource | LocalInputSource, Field(discriminator="type")]


class CombiningInputSource(SpecModel):
    """Several others, one after the other."""

    type: Literal["combining"]
    delegates: list[Annotated[_One, BeforeValidator(_known)]] = Field(min_length=1, max_length=MOST_DELEGATES)


AnySource = InlineInputSource | LocalInputSource | CombiningInputSource | DruidInputSource
InputSource = Annotated[Annotated[AnySource, Field(discriminator="type")], BeforeValidator(_known)]


def parts_of(source: AnySource) -> Iterator[tuple[tuple[str | int, ...], InlineInputSource | LocalInputSource]]:
    """Itself, or those that it combines, if they hold files or text; each with its place below the input source."""
    if isinstance(source, CombiningInputSource):
        for number, delegate in enumerate(source.delegates):
            yield ("delegates", number), delegate
    elif not isinstance(source, DruidInputSource):
        yield (), source
