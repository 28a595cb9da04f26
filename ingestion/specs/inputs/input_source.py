"""Input sources of a batch task: ``ioConfig.inputSource``, with Druid's JSON names.

Source: Druid's reference of input sources. The data plane opens the files, and refuses those outside the folders that
the site allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from ingestion.specs.base import SpecModel, check_plain_name, not_supported
from ingestion.specs.limits import FieldName, one_line
from ingestion.specs.schema.intervals import interval_ms

MAX_FILES = 10_000  # that a spec names one by one
MAX_DELEGATES = 100
_NO_SYSTEM_FIELDS = "is not supported: rows have no columns of file names"
_NO_LOGIN = "is not supported: Headgate stores no login for files. Use an address that needs none"
_OF_THE_SITE = "is not supported: the site's settings define the access"
_NO_GLOB = "is not supported: give prefixes, or uris"
_BUILT = ("inline", "local", "http", "s3", "google", "azureStorage", "combining", "druid")
_DRUIDS = ("azure", "hdfs", "sql", "delta", "iceberg")
_INSTEAD = {"azure": "azureStorage, whose addresses name the storage account"}


def _check_path(value: str) -> str:
    """An absolute path without '..', so that its text shows where it leads."""
    if "\0" in value or not value.startswith("/") or ".." in PurePosixPath(value).parts:
        raise ValueError("must be an absolute path without '..'")
    return value


LocalPath = Annotated[FieldName, AfterValidator(one_line), AfterValidator(_check_path)]


class InlineInputSource(SpecModel):
    """Records in the spec itself."""

    type: Literal["inline"]
    data: str = Field(min_length=1)


class LocalInputSource(SpecModel):
    """Local files: by a folder and a wildcard, or by name."""

    type: Literal["local"]
    baseDir: LocalPath | None = None
    filter: Annotated[FieldName, AfterValidator(one_line)] | None = None
    files: list[LocalPath] = Field(default_factory=list, max_length=MAX_FILES)
    systemFields: Annotated[None, not_supported(_NO_SYSTEM_FIELDS)] = None

    @model_validator(mode="after")
    def _check_one_location(self) -> LocalInputSource:
        if (self.baseDir is None) == (not self.files):
            raise ValueError("give baseDir with a filter, or files")
        if (self.baseDir is None) != (self.filter is None):
            raise ValueError('baseDir needs a filter: "filter": "*" reads every file below baseDir')
        return self

    @property
    def named(self) -> Sequence[str]:
        """The paths that it names."""
        return self.files if self.baseDir is None else [self.baseDir]


def check_web_address(value: str) -> str:
    """Where a file lies on the web, its scheme in small letters. Raises ``ValueError``."""
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or not value.isascii() or not value.isprintable() or set(value) & set(" \\"):
        raise ValueError("must be an address such as https://host/file.json.gz")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ValueError("must contain no login and no fragment")
    return parts.scheme + value[len(parts.scheme) :]


class HttpInputSource(SpecModel):
    """Files of web servers, by their addresses."""

    type: Literal["http"]
    uris: list[Annotated[FieldName, AfterValidator(check_web_address)]] = Field(min_length=1, max_length=MAX_FILES)
    httpAuthenticationUsername: Annotated[None, not_supported(_NO_LOGIN)] = None
    httpAuthenticationPassword: Annotated[None, not_supported(_NO_LOGIN)] = None
    requestHeaders: Annotated[None, not_supported("is not supported: use an address that needs none")] = None
    systemFields: Annotated[None, not_supported(_NO_SYSTEM_FIELDS)] = None


def _is_plain(key: str) -> bool:
    return not set(key.split("/")[:-1]) & {"", ".", ".."} and "\0" not in key


def _check_address(scheme: str, bucket_of: re.Pattern[str], value: str) -> str:
    bucket, _, key = value.removeprefix(scheme).partition("/")
    if not value.startswith(scheme) or not bucket_of.fullmatch(bucket) or not _is_plain(key):
        raise ValueError(f"must be {scheme}bucket/key, without empty parts, '.' and '..'")
    return value


def _check_azure_address(value: str) -> str:
    account, _, rest = value.removeprefix(AZURE).partition("/")
    container, _, key = rest.partition("/")
    named = _ACCOUNT.fullmatch(account) and _CONTAINER.fullmatch(container)
    if not value.startswith(AZURE) or not named or not _is_plain(key):
        raise ValueError(f"must be {AZURE}account/container/key, without empty parts, '.' and '..'")
    return value


S3, GOOGLE, AZURE = "s3://", "gs://", "azureStorage://"
_S3_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_GOOGLE_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"\$?[a-z0-9-]{3,63}")
_CHECKED: dict[str, Callable[[str], str]] = {
    S3: partial(_check_address, S3, _S3_BUCKET),
    GOOGLE: partial(_check_address, GOOGLE, _GOOGLE_BUCKET),
    AZURE: _check_azure_address,
}
Address = Annotated[FieldName, AfterValidator(one_line)]


class StoredObject(SpecModel):
    """One object by bucket and key. In Azure, bucket is the account, and path is container and key."""

    bucket: FieldName
    path: FieldName


class ObjectsInputSource(SpecModel):
    """Objects of an object storage, by addresses or by prefixes of addresses."""

    scheme: ClassVar[str]
    uris: list[Address] = Field(default_factory=list, max_length=MAX_FILES)
    prefixes: list[Address] = Field(default_factory=list, max_length=MAX_FILES)
    objects: list[StoredObject] = Field(default_factory=list, max_length=MAX_FILES)
    objectGlob: Annotated[None, not_supported(_NO_GLOB)] = None
    systemFields: Annotated[None, not_supported(_NO_SYSTEM_FIELDS)] = None

    @field_validator("uris", "prefixes")
    @classmethod
    def _check_addresses(cls, value: list[str]) -> list[str]:
        return [_CHECKED[cls.scheme](address) for address in value]

    @model_validator(mode="after")
    def _check_one_location(self) -> Self:
        if sum(map(bool, (self.uris, self.prefixes, self.objects))) != 1:
            raise ValueError("give one of uris, prefixes and objects")
        for address in self.named_one_by_one:
            _CHECKED[self.scheme](address)
        return self

    @property
    def named_one_by_one(self) -> list[str]:
        """The addresses of single objects."""
        by_key = [
            f"{self.scheme}{stored_object.bucket}/{stored_object.path.lstrip('/')}" for stored_object in self.objects
        ]
        return list(dict.fromkeys([*self.uris, *by_key]))


class S3InputSource(ObjectsInputSource):
    """Objects of S3 or of a compatible storage."""

    scheme = S3
    type: Literal["s3"]
    properties: Annotated[None, not_supported(_OF_THE_SITE)] = None
    endpointConfig: Annotated[None, not_supported(_OF_THE_SITE)] = None
    clientConfig: Annotated[None, not_supported(_OF_THE_SITE)] = None
    proxyConfig: Annotated[None, not_supported(_OF_THE_SITE)] = None


class GoogleInputSource(ObjectsInputSource):
    """Objects of Google Cloud Storage."""

    scheme = GOOGLE
    type: Literal["google"]


class AzureInputSource(ObjectsInputSource):
    """Objects of Azure. A key begins with its container, and the bucket is the storage account."""

    scheme = AZURE
    type: Literal["azureStorage"]
    properties: Annotated[None, not_supported(_OF_THE_SITE)] = None


def spec_location(location: str) -> str:
    """How specs call a location of the site, without a slash at its end; empty for one that they can't.

    Google's may be ``gs://anonymous@bucket``. Azure's are ``abfs[s]://container@account.dfs.core.windows.net/folder``
    or, of other servers, ``abfs[s]://account@host:port/container/folder``.
    """
    parts = urlsplit(location.partition("?")[0])
    path = parts.path.rstrip("/")
    if parts.scheme in ("s3", "gs"):
        bucket = parts.netloc.removeprefix("anonymous@") if parts.scheme == "gs" else parts.netloc
        return f"{parts.scheme}://{bucket}{path}" if bucket and "@" not in bucket else ""
    user, _, host = parts.netloc.partition("@")
    if parts.scheme not in ("abfs", "abfss") or not user or not host or ":" in user:
        return ""
    if host.endswith(_AZURES):
        return f"{AZURE}{host.removesuffix(_AZURES)}/{user}{path}"
    return f"{AZURE}{user}{path}" if ":" in host and path else ""


_AZURES = ".dfs.core.windows.net"


def is_below(address: str, location: str) -> bool:
    """Whether it lies in a location of the site, or begins so that nothing outside of it does."""
    return address.startswith(spec_location(location) + "/")


def _check_interval(value: str) -> str:
    interval_ms(value)
    return value


class DruidInputSource(SpecModel):
    """The rows of a datasource in an interval."""

    type: Literal["druid"]
    dataSource: Annotated[str, AfterValidator(check_plain_name)]
    interval: Annotated[FieldName, AfterValidator(_check_interval)]
    segments: Annotated[None, not_supported("is not supported: give an interval")] = None
    filter: Annotated[None, not_supported("is not supported here: write it into dataSchema.transformSpec")] = None
    dimensions: Annotated[None, not_supported("is not supported here: use dataSchema.dimensionsSpec")] = None
    metrics: Annotated[None, not_supported("is not supported here: use dataSchema.metricsSpec")] = None


def _refuse_unbuilt(value: Any) -> Any:
    """One of Druid's that is not there is refused by its name."""
    kind = value.get("type") if isinstance(value, dict) else None
    if kind in _DRUIDS:
        instead = _INSTEAD.get(kind, ", ".join(_BUILT))
        raise ValueError(f"the input source {kind!r} of Druid is not supported: use {instead}")
    return value


FilesSource = LocalInputSource | HttpInputSource | S3InputSource | GoogleInputSource | AzureInputSource
_One = Annotated[InlineInputSource | FilesSource, Field(discriminator="type")]


class CombiningInputSource(SpecModel):
    """Several input sources, one after the other."""

    type: Literal["combining"]
    delegates: list[Annotated[_One, BeforeValidator(_refuse_unbuilt)]] = Field(min_length=1, max_length=MAX_DELEGATES)


AnySource = InlineInputSource | FilesSource | CombiningInputSource | DruidInputSource
InputSource = Annotated[Annotated[AnySource, Field(discriminator="type")], BeforeValidator(_refuse_unbuilt)]


def leaf_sources(source: AnySource) -> Iterator[tuple[tuple[str | int, ...], InlineInputSource | FilesSource]]:
    """Itself, or those that it combines, if they hold files or text; each with its place below the input source."""
    if isinstance(source, CombiningInputSource):
        for number, delegate in enumerate(source.delegates):
            yield ("delegates", number), delegate
    elif not isinstance(source, DruidInputSource):
        yield (), source
