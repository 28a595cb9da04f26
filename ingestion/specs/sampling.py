"""The messages between who is asked for a sample and the process that takes it: one each way, in JSON.

The control plane sends a ``SampleOrder``; the process answers with a ``SampleAnswer`` and ends.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Base64Bytes, Field

from ingestion.specs.addresses import AddressPolicy
from ingestion.specs.data_schema import DataSchema
from ingestion.specs.io_config import IOConfig
from ingestion.specs.protocol import Column, Message

MOST_ROWS = 1000
SHOWN_BYTES = 16 * 1024  # of a key or a payload
MOST_INPUT_BYTES = 16 * 1024 * 1024
MOST_ANSWER_BYTES = 4 * 1024 * 1024

Outcome = Literal["raw", "stored", "processed_with_error", "filtered", "outside_window", "tombstone", "unparseable"]
STORED = ("stored", "processed_with_error")
# Which part of the spec a failure is about; "decoder": none.
Place = Literal["topic", "consumerProperties", "inputFormat", "dataSchema", "decoder"]


class SampleOrder(Message):
    """What to sample and how to read it.

    ``formatted``: whether the inputFormat is meant; else records are left as they are. ``timed``: the same of times.
    ``records``: what was pasted; None reads the topic of ``io_config``, with ``consumer_properties``, secrets included.
    """

    data_schema: DataSchema
    io_config: IOConfig
    formatted: bool
    timed: bool
    records: list[Base64Bytes] | None = None
    rows: int
    timeout_ms: int
    schema_folder: str = ""
    consumer_properties: dict[str, str] = Field(default_factory=dict)
    address_policy: AddressPolicy = Field(default_factory=AddressPolicy)


class Bytes(Message):
    """A key or payload: its first ``SHOWN_BYTES``, and how many there are."""

    start: Base64Bytes
    size: int


class SampledRecord(Message):
    """One record, and what becomes of it.

    The first three are None for what was pasted. ``fields``: what the input format reads of it, before the dataSchema
    has its say; None if it can't. ``row``: what would be stored, by column, without nulls; times are milliseconds. Of a
    record that is too large to be shown neither is there.
    ``error``: why it is unparseable, or what of it could not be stored.
    """

    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    key: Bytes | None = None
    payload: Bytes | None = None
    outcome: Outcome
    error: str = ""
    fields: Any = None
    row: dict[str, Any] | None = None


class RolledUpRow(Message):
    """A row that equal ones of the sample became; ``records`` are theirs, by place in the sample."""

    row: dict[str, Any]
    records: list[int]


class SampleFailure(Message):
    """Why there is no sample. ``permanent``: the spec has to be mended; else trying again may help."""

    place: Place
    message: str
    permanent: bool


class SampleAnswer(Message):
    """A sample in the order of its records' times, or why there is none.

    ``stopped_by``: what ended the reading early (``time``: the timeout; ``bytes``: the input's size; ``answer``: its
    own size); empty when everything that was asked for is there. ``fields``: the columns that discovery makes of the
    records' fields; ``columns``: those of a segment of the rows. ``rollup``: None when the spec does not ask for it.
    """

    failure: SampleFailure | None = None
    records: list[SampledRecord] = Field(default_factory=list)
    stopped_by: Literal["", "time", "bytes", "answer"] = ""
    fields: list[Column] = Field(default_factory=list)
    columns: list[Column] = Field(default_factory=list)
    rollup: list[RolledUpRow] | None = None
