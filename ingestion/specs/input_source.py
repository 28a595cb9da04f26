"""Where a batch task reads: ``ioConfig.inputSource``, in Druid's JSON names.

Source: Druid's reference of input sources. Nothing here opens a file: the data plane does, and refuses what lies
outside the folders that the site has named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ingestion.specs.base import SpecModel, a_plain_name, unbuilt
from ingestion.specs.intervals import interval_ms
from ingestion.specs.limits import FieldName, one_line

MOST_FILES = 10_000  # that a spec names one by one
MOST_DELEGATES = 100
_NO_SYSTEM_FIELDS = "is not supported: rows hold what is in the files, not what the files are called"
_NO_LOGIN = "is not supported: no login is kept for files. Give an address that needs none"
_OF_THE_SITE = "is not supported: the site says how S3 is reached, for all who may read there"
_BUILT = ("inline", "local", "http", "s3", "combining", "druid")
_DRUIDS = ("google", "azureStorage", "azure", "hdfs", "sql", "delta", "iceberg")


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


def a_web_address(value: str) -> str:
    """Where a file lies on the web, its scheme in small letters. Raises ``ValueError``."""
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or not value.isascii() or not value.isprintable() or set(value) & set(" \\"):
        raise ValueError("must be an address such as https://host/file.json.gz")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ValueError("must hold no login and no fragment")
    return parts.scheme + value[len(parts.scheme) :]


class HttpInputSource(SpecModel):
    """Files of the web, by their addresses."""

    type: Literal["http"]
    uris: list[Annotated[FieldName, AfterValidator(a_web_address)]] = Field(min_length=1, max_length=MOST_FILES)
    httpAuthenticationUsername: Annotated[None, unbuilt(_NO_LOGIN)] = None
    httpAuthenticationPassword: Annotated[None, unbuilt(_NO_LOGIN)] = None
    requestHeaders: Annotated[None, unbuilt("is not supported: give an address that needs none")] = None
    systemFields: Annotated[None, unbuilt(_NO_SYSTEM_FIELDS)] = None


def _an_s3_address(value: str) -> str:
    bucket, _, key = value.removeprefix("s3://").partition("/")
    plain = bool(_BUCKET.fullmatch(bucket)) and not set(key.split("/")[:-1]) & {"", ".", ".."}
    if not value.startswith("s3://") or not plain or "\0" in value:
        raise ValueError("must be s3://bucket/key, with no empty part, '.' or '..' in it")
    return value


_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
S3Address = Annotated[FieldName, AfterValidator(one_line), AfterValidator(_an_s3_address)]


class S3Object(SpecModel):
    """One object, by bucket and key."""

    bucket: FieldName
    path: FieldName

    @model_validator(mode="after")
    def _makes_an_address(self) -> S3Object:
        _an_s3_address(self.address)
        return self

    @property
    def address(self) -> str:
        """Both in one."""
        return f"s3://{self.bucket}/{self.path.lstrip('/')}"


class S3InputSource(SpecModel):
    """Objects of S3: by their addresses, or all whose addresses begin so."""

    type: Literal["s3"]
    uris: list[S3Address] = Field(default_factory=list, max_length=MOST_FILES)
    prefixes: list[S3Address] = Field(default_factory=list, max_length=MOST_FILES)
    objects: list[S3Object] = Field(default_factory=list, max_length=MOST_FILES)
    objectGlob: Annotated[None, unbuilt("is not supported: give prefixes, or uris")] = None
    properties: Annotated[None, unbuilt(_OF_THE_SITE)] = None
    endpointConfig: Annotated[None, unbuilt(_OF_THE_SITE)] = None
    clientConfig: Annotated[None, unbuilt(_OF_THE_SITE)] = None
    proxyConfig: Annotated[None, unbuilt(_OF_THE_SITE)] = None
    systemFields: Annotated[None, unbuilt(_NO_SYSTEM_FIELDS)] = None

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> S3InputSource:
        if sum(map(bool, (self.uris, self.prefixes, self.objects))) != 1:
            raise ValueError("give one of uris, prefixes and objects")
        return self

    @property
    def named_one_by_one(self) -> list[str]:
        """The addresses of single objects."""
        return list(dict.fromkeys([*self.uris, *(one.address for one in self.objects)]))


def is_below(address: str, location: str) -> bool:
    """Whether it lies in a folder of S3, or begins so that nothing outside of it does."""
    return address.startswith(location.partition("?")[0].rstrip("/") + "/")


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


FilesSource = LocalInputSource | HttpInputSource | S3InputSource
_One = Annotated[InlineInputSource | FilesSource, Field(discriminator="type")]


class CombiningInputSource(SpecModel):
    """Several others, one after the other."""

    type: Literal["combining"]
    delegates: list[Annotated[_One, BeforeValidator(_known)]] = Field(min_length=1, max_length=MOST_DELEGATES)


AnySource = InlineInputSource | FilesSource | CombiningInputSource | DruidInputSource
InputSource = Annotated[Annotated[AnySource, Field(discriminator="type")], BeforeValidator(_known)]


def parts_of(source: AnySource) -> Iterator[tuple[tuple[str | int, ...], InlineInputSource | FilesSource]]:
    """Itself, or those that it combines, if they hold files or text; each with its place below the input source."""
    if isinstance(source, CombiningInputSource):
        for number, delegate in enumerate(source.delegates):
            yield ("delegates", number), delegate
    elif not isinstance(source, DruidInputSource):
        yield (), source
