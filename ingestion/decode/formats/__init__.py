"""One reader per input format: from payloads to the texts of JSON objects, which the JSON stage makes rows of.

``create_reader`` makes the reader of an ``inputFormat``. Plain JSON passes through untouched, at no cost a record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ingestion.decode.engine import Engine
from ingestion.decode.expressions import BadExpression
from ingestion.decode.formats.access import Access
from ingestion.decode.formats.base import Reader
from ingestion.decode.formats.delimited import DelimitedReader
from ingestion.decode.formats.flatten import FlatteningReader
from ingestion.decode.formats.json_reader import JsonReader
from ingestion.decode.formats.kafka import KafkaReader
from ingestion.decode.formats.lines_reader import LinesReader
from ingestion.decode.formats.regex_reader import RegexReader
from ingestion.decode.named_fields import named_fields
from ingestion.specs.formats.flatten_spec import FlattenSpec
from ingestion.specs.formats.input_format import (
    AvroInputFormat,
    CsvInputFormat,
    DelimitedInputFormat,
    InputFormat,
    JsonInputFormat,
    KafkaInputFormat,
    LinesInputFormat,
    ProtobufInputFormat,
    RegexInputFormat,
    ThriftInputFormat,
)
from ingestion.specs.schema.data_schema import DataSchema

JSON = JsonInputFormat(type="json")


@dataclass(frozen=True)
class ReaderTools:
    """What readers work with."""

    engine: Engine
    access: Access = field(default_factory=Access)
    names: frozenset[str] = field(default_factory=frozenset)  # every name that the dataSchema mentions
    schema: DataSchema | None = None  # what records are read for; None: for their first field, as keys are
    keeps_digits: bool = False  # also where a format of records does not, see ``keeps_digits``

    @classmethod
    def of(cls, engine: Engine, schema: DataSchema, access: Access, *, keeps_digits: bool = False) -> ReaderTools:
        return cls(engine, access, frozenset(_words(schema.model_dump(mode="json"))), schema, keeps_digits)


def keeps_digits(spec: InputFormat) -> bool:
    """Whether its records may hold decimals, or floats of 32 bits: see ``exact_numbers``."""
    inner = spec.valueFormat if isinstance(spec, KafkaInputFormat) else spec
    return isinstance(inner, AvroInputFormat | ProtobufInputFormat)


def create_reader(spec: InputFormat, tools: ReaderTools) -> Reader:
    """The reader of a format. Raises ``UnusableSchema``."""
    if isinstance(spec, KafkaInputFormat):
        key = None if spec.keyFormat is None else create_reader(spec.keyFormat, replace(tools, schema=None))
        return KafkaReader(spec, tools.engine, create_reader(spec.valueFormat, tools), key)
    if isinstance(spec, CsvInputFormat | DelimitedInputFormat):
        return DelimitedReader(spec, tools.engine)
    if isinstance(spec, RegexInputFormat):
        return RegexReader(spec, tools.engine)
    if isinstance(spec, LinesInputFormat):
        return LinesReader()
    reader = _nesting_reader(spec, tools)
    if spec.flattenSpec is None:
        return reader
    with_digits = tools.keeps_digits or keeps_digits(spec)
    own_fields = _kept_own_fields(spec, spec.flattenSpec, tools)
    return FlatteningReader(reader, tools.engine, spec.flattenSpec, own_fields, keeps_digits=with_digits)


def _kept_own_fields(spec: InputFormat, flatten: FlattenSpec, tools: ReaderTools) -> frozenset[str] | None:
    """Which of a record's own fields stay beside the flattened ones; None: all."""
    if flatten.useFieldDiscovery:
        return None
    if tools.schema is None:
        return frozenset()
    if not tools.schema.dimensionsSpec.discovers:
        return None  # only what is named is read
    try:
        return frozenset(named_fields(tools.engine, tools.schema, spec, timed=True))
    except BadExpression:
        return frozenset()  # the decoder says what is wrong


def _nesting_reader(
    spec: JsonInputFormat | AvroInputFormat | ProtobufInputFormat | ThriftInputFormat, tools: ReaderTools
) -> Reader:
    if isinstance(spec, AvroInputFormat):
        from ingestion.decode.formats.avro import AvroReader  # not at the top: fastavro takes long

        return AvroReader(spec, tools.access)
    if isinstance(spec, ProtobufInputFormat):
        from ingestion.decode.formats.protobuf import ProtobufReader  # not at the top: protobuf takes long

        paths = () if spec.flattenSpec is None else _words(spec.flattenSpec.model_dump(mode="json"))
        return ProtobufReader(spec, tools.access, tools.names.union(paths))
    if isinstance(spec, ThriftInputFormat):
        from ingestion.decode.formats.thrift import ThriftReader  # not at the top: thriftpy2 takes long

        return ThriftReader(spec, tools.access)
    return JsonReader(spec)


def _words(value: Any) -> Iterator[str]:
    """Every word in every text of a JSON value."""
    if isinstance(value, str):
        yield from re.findall(r"\w+", value)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner)
