"""The messages between who is asked for a sample and the process that takes it: one each way, in JSON.

The control plane sends a ``SampleOrder``; the process answers with a ``SampleAnswer`` and ends.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Base64Bytes, Field

from ingestion.specs.addresses import AddressPolicy
from ingestion.specs.base import Message
from ingestion.specs.data_schema import DataSchema
from ingestion.specs.protocol import Column
from ingestion.specs.sources import AnyIOConfig

MOST_ROWS = 1000
SHOWN_BYTES = 16 * 1024  # of a key or a payload
MOST_INPUT_BYTES = 16 * 1024 * 1024
MOST_ANSWER_BYTES = 4 * 1024 * 1024

Outcome = Literal["raw", "stored", "processed_with_error", "filtered", "outside_window", "tombstone", "unparseable"]
STORED = ("stored", "processed_with_error")
# Which part of the spec a failure is about; "decoder": none.
Place = Literal["topic", "consumerProperties", "inputFormat", "dataSchema", "decoder"]


class SampleOrder(Message):
    """What to sample and how to read it."""

    data_schema: DataSchema
    io_config: AnyIOConfig
    formatted: bool  # whether the inputFormat is meant; else records are left as they are
    timed: bool  # whether the timestampSpec is meant
    # What was pasted; None reads the topic of ``io_config``, with ``consumer_properties``, secrets included.
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

    The first three are None for what was pasted.
    """

    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    key: Bytes | None = None
    payload: Bytes | None = None
    outcome: Outcome
    error: str = ""  # why it is unparseable, or what of it could not be stored
    fields: Any = None  # what the input format reads of it, before the dataSchema has its say; None if it can't
    # What would be stored, by column, without nulls; times are milliseconds. Of a record that is too large to be shown
    # neither is there.
    row: dict[str, Any] | None = None


class RolledUpRow(Message):
    """A row that equal ones of the sample became."""

    row: dict[str, Any]
    records: list[int]  # theirs, by place in the sample


class SampleFailure(Message):
    """Why there is no sample."""

    place: Place
    message: str
    permanent: bool  # the spec has to be mended; else trying again may help


class SampleAnswer(Message):
    """A sample in the order of its records' times, or why there is none."""

    failure: SampleFailure | None = None
    records: list[SampledRecord] = Field(default_factory=list)
    # What ended the reading early: the timeout, the input's size, or the answer's own; empty when all is there.
    stopped_by: Literal["", "time", "bytes", "answer"] = ""
    fields: list[Column] = Field(default_factory=list)  # the columns that discovery makes of the records' fields
    columns: list[Column] = Field(default_factory=list)  # those of a segment of the rows
    rollup: list[RolledUpRow] | None = None  # None when the spec does not ask for it
