"""Input formats of records: ``ioConfig.inputFormat``, with Druid's JSON names.

Source: Druid's reference of input formats. Docstrings and messages name what Headgate adds or refuses. The decoder
reads files and registries, and refuses those that it may not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from ingestion.specs.formats.flatten_spec import FlattenSpec, FlattenSpecByPaths, FormatModel
from ingestion.specs.kafka.connection_name import ConnectionName
from ingestion.specs.kafka.registry_access import RegistryConfig, RegistryHeaders
from ingestion.specs.limits import (
    MAX_FIELDS,
    MAX_SCHEMAS,
    ColumnName,
    FieldName,
    duplicates,
    list_names,
    one_line,
    short,
)

# What the JSON decoder does anyway; every other feature of Jackson's would change what a record is.
JSON_FEATURES = frozenset({"ALLOW_NON_NUMERIC_NUMBERS", "ALLOW_TRAILING_COMMA"})
MAX_REGISTRIES = 4
CONTROL_A = "\x01"


def _check_one_row(value: Any) -> Any:
    if value is not None and (isinstance(value, bool) or value != 1):
        raise ValueError("must be 1 (a record with several rows is unparseable), or left out (all its rows are read)")
    return value


class _RowsFormat(FormatModel):
    """A record has one or more rows. Headgate's own: with ``rowsPerRecord`` 1, only records with one row are read."""

    rowsPerRecord: Annotated[Literal[1] | None, BeforeValidator(_check_one_row)] = None


class JsonInputFormat(_RowsFormat):
    """Records are JSON objects, one after the other."""

    type: Literal["json"]
    flattenSpec: FlattenSpec | None = None
    featureSpec: dict[str, bool] = Field(default_factory=dict)
    keepNullColumns: bool = False
    # Which rows Druid keeps of a record with several objects, one of them bad: here none, however it is read.
    assumeNewlineDelimited: bool = False
    useJsonNodeReader: bool = False

    @field_validator("featureSpec")
    @classmethod
    def _check_features(cls, value: dict[str, bool]) -> dict[str, bool]:
        refused = sorted(k for k, on in value.items() if on and k not in JSON_FEATURES)
        if refused:
            raise ValueError(f"not supported: {', '.join(refused)} (only {', '.join(sorted(JSON_FEATURES))} are)")
        return value

    @model_validator(mode="after")
    def _check_reader(self) -> JsonInputFormat:
        if self.assumeNewlineDelimited and self.useJsonNodeReader:
            raise ValueError("give assumeNewlineDelimited or useJsonNodeReader, not both")
        return self


class _NamedColumns(_RowsFormat):
    columns: list[ColumnName] | None = Field(default=None, min_length=1, max_length=MAX_FIELDS)
    listDelimiter: FieldName = CONTROL_A

    @model_validator(mode="after")
    def _check_unique_names(self) -> _NamedColumns:
        twice = duplicates(self.columns or [])
        if twice:
            raise ValueError(f"columns are named twice: {list_names(twice)}")
        return self


class _ColumnsFormat(_NamedColumns):
    findColumnsFromHeader: bool | None = None
    hasHeaderRow: bool | None = None
    skipHeaderRows: int = Field(default=0, ge=0)
    tryParseNumbers: bool = False

    @model_validator(mode="after")
    def _check_columns(self) -> _ColumnsFormat:
        if None not in (self.findColumnsFromHeader, self.hasHeaderRow):
            raise ValueError("give findColumnsFromHeader or its old name hasHeaderRow, not both")
        if self.columns is None and not self.has_header:
            raise ValueError("columns is required (unless findColumnsFromHeader is true)")
        return self

    @property
    def header_lines(self) -> int:
        """How many lines at the beginning of every record are no values."""
        return self.skipHeaderRows + self.has_header

    @property
    def has_header(self) -> bool:
        """Whether every record begins with a line of column names."""
        return bool(self.findColumnsFromHeader or self.hasHeaderRow)


class CsvInputFormat(_ColumnsFormat):
    """Records are lines of comma-separated values, one row each. A quoted value may contain commas."""

    type: Literal["csv"]

    @model_validator(mode="after")
    def _check_delimiters(self) -> CsvInputFormat:
        if self.listDelimiter == ",":
            raise ValueError("listDelimiter must differ from the comma between the values")
        return self


class DelimitedInputFormat(_ColumnsFormat):
    """Records are lines of values with a delimiter, one row each. Quotes have no meaning, as in Druid."""

    type: Literal["tsv", "delimited"]
    delimiter: FieldName = "\t"

    @model_validator(mode="after")
    def _check_delimiters(self) -> DelimitedInputFormat:
        if self.delimiter == self.listDelimiter:
            raise ValueError("delimiter and listDelimiter must differ")
        return self


class RegexInputFormat(_NamedColumns):
    """Records are lines. A Java regular expression must match a whole line. Its groups are the values."""

    type: Literal["regex"]
    pattern: str = Field(min_length=1, max_length=1_000)


class LinesInputFormat(_RowsFormat):
    """Records are lines. Each line becomes the field ``line``. Druid has this format since version 34."""

    type: Literal["lines"]


class RegistryDecoder(FormatModel):
    """Schemas come from a Confluent schema registry. Every record begins with its schema id."""

    type: Literal["schema_registry"]
    connection: ConnectionName | None = None  # Headgate's own: a registry that the team has named
    url: FieldName | None = None
    urls: list[FieldName] | None = Field(default=None, min_length=1, max_length=MAX_REGISTRIES)
    capacity: int = Field(default=1000, ge=1)
    config: RegistryConfig = Field(default_factory=dict)
    headers: RegistryHeaders = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_has_address(self) -> RegistryDecoder:
        if self.connection is not None:
            if self.url is not None or self.urls is not None or self.config or self.headers:
                raise ValueError(
                    f"url, urls, config and headers belong to the connection {self.connection!r}: change them there, "
                    "or name no connection"
                )
            return self
        if (self.url is None) == (self.urls is None):
            raise ValueError("give url, or urls for several instances of one registry, or a connection")
        for address in self.addresses:
            _check_address(address)
        return self

    @property
    def addresses(self) -> list[str]:
        """The registry's addresses, to be tried in this order."""
        return self.urls if self.urls is not None else [self.url] if self.url is not None else []


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018 - it raises
    except ValueError:
        raise ValueError("the address of a schema registry is http://host:port or https://host:port") from None
    plain = address.isascii() and address.isprintable() and not set(address) & set(", \\?#")
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
        raise ValueError("the address of a schema registry is http://host:port or https://host:port")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "the address of a schema registry must not contain a user or password, because others can see the spec"
        )


class AvroInlineDecoder(FormatModel):
    """All records have this schema. A record has no header."""

    type: Literal["schema_inline"]
    avro_schema: dict[str, Any] = Field(alias="schema")


class AvroMultipleDecoder(FormatModel):
    """A record has a byte 1, four bytes with the id of one of these schemas (big-endian), and the value's bytes."""

    type: Literal["multiple_schemas_inline"]
    schemas: dict[int, dict[str, Any]] = Field(min_length=1, max_length=MAX_SCHEMAS)


class AvroFileDecoder(FormatModel):
    """Headgate's own: like ``schema_inline``, with the schema in a file of the schema folder."""

    type: Literal["schema_file"]
    file: FieldName


AvroBytesDecoder = Annotated[
    AvroInlineDecoder | AvroMultipleDecoder | AvroFileDecoder | RegistryDecoder, Field(discriminator="type")
]


class AvroInputFormat(FormatModel):
    """Each record is one Avro datum, without the header of an Avro file."""

    type: Literal["avro_stream"]
    avroBytesDecoder: AvroBytesDecoder
    flattenSpec: FlattenSpecByPaths | None = None
    binaryAsString: bool = False
    extractUnionsByType: bool = False

    @field_validator("avroBytesDecoder", mode="before")
    @classmethod
    def _refuse_schema_repo(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("type", "schema_repo") == "schema_repo":
            raise ValueError(
                "schema_repo, which is also the default type, is not supported: its server, AVRO-1124, was "
                "never released. Use schema_inline, multiple_schemas_inline, schema_file or schema_registry"
            )
        return value


class ProtobufFileDecoder(FormatModel):
    """A compiled descriptor set (``protoc --descriptor_set_out``) in a file of the schema folder."""

    type: Literal["file"]
    descriptor: FieldName
    protoMessageType: FieldName | None = None


class ProtobufInlineDecoder(FormatModel):
    """A compiled descriptor set in base64."""

    type: Literal["inline"]
    descriptorString: str = Field(min_length=1)
    protoMessageType: FieldName | None = None


ProtoBytesDecoder = Annotated[
    ProtobufFileDecoder | ProtobufInlineDecoder | RegistryDecoder, Field(discriminator="type")
]


class ProtobufInputFormat(FormatModel):
    """Each record is one Protobuf message."""

    type: Literal["protobuf"]
    protoBytesDecoder: ProtoBytesDecoder
    flattenSpec: FlattenSpecByPaths | None = None

    @field_validator("protoBytesDecoder", mode="before")
    @classmethod
    def _default_registry(cls, value: Any) -> Any:
        return {"type": "schema_registry", **value} if isinstance(value, dict) else value


class ThriftInputFormat(FormatModel):
    """Each record is one Thrift struct."""

    type: Literal["thrift"]
    thriftClass: FieldName
    # thriftIdl and thriftFile: Headgate's, for Druid's JAR.
    thriftIdl: str | None = Field(default=None, min_length=1)
    thriftFile: FieldName | None = None
    protocol: Literal["auto", "compact", "binary", "json"] = "auto"
    flattenSpec: FlattenSpecByPaths | None = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_jar(cls, value: Any) -> Any:
        if isinstance(value, dict) and "thriftJar" in value:
            raise ValueError(
                "thriftJar is not supported, because Headgate runs no Java: give the IDL text in thriftIdl instead"
            )
        return value

    @model_validator(mode="after")
    def _check_idl(self) -> ThriftInputFormat:
        if (self.thriftIdl is None) == (self.thriftFile is None):
            raise ValueError("give the IDL text in thriftIdl, or the name of a file in the schema folder in thriftFile")
        return self


ValueFormat = Annotated[
    JsonInputFormat
    | CsvInputFormat
    | DelimitedInputFormat
    | RegexInputFormat
    | LinesInputFormat
    | AvroInputFormat
    | ProtobufInputFormat
    | ThriftInputFormat,
    Field(discriminator="type"),
]


class HeaderFormat(FormatModel):
    """Header values are texts."""

    type: Literal["string"]
    encoding: Literal["UTF-8", "UTF-16", "UTF-16BE", "UTF-16LE", "ISO-8859-1", "US-ASCII"] = "UTF-8"


class KafkaInputFormat(FormatModel):
    """Another format for the value, with added columns for the record's time, topic, headers and key."""

    type: Literal["kafka"]
    valueFormat: ValueFormat
    keyFormat: ValueFormat | None = None
    headerFormat: HeaderFormat | None = None
    headerColumnPrefix: Annotated[str, AfterValidator(short), AfterValidator(one_line)] = "kafka.header."
    keyColumnName: ColumnName = "kafka.key"
    timestampColumnName: ColumnName = "kafka.timestamp"
    topicColumnName: ColumnName = "kafka.topic"


InputFormat = Annotated[
    JsonInputFormat
    | CsvInputFormat
    | DelimitedInputFormat
    | RegexInputFormat
    | LinesInputFormat
    | AvroInputFormat
    | ProtobufInputFormat
    | ThriftInputFormat
    | KafkaInputFormat,
    Field(discriminator="type"),
]


Written = TypeVar("Written", bound=FormatModel)


def as_single_row(written: Written) -> Written:
    """The format where a record is one row at most, as a line of a file is."""
    if isinstance(written, KafkaInputFormat):
        return written.model_copy(update={"valueFormat": as_single_row(written.valueFormat)})
    return written.model_copy(update={"rowsPerRecord": 1}) if isinstance(written, _RowsFormat) else written


def registries_of(written: InputFormat) -> Iterator[tuple[tuple[str, ...], RegistryDecoder]]:
    """Every schema registry that a format asks, with its place in the ioConfig."""

    def inside(value: FormatModel, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], RegistryDecoder]]:
        if isinstance(value, RegistryDecoder):
            yield place, value
            return
        for name in type(value).model_fields:
            inner = getattr(value, name)
            if isinstance(inner, FormatModel):
                yield from inside(inner, (*place, name))

    yield from inside(written, ("inputFormat",))
