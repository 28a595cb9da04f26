"""The messages between who is asked for a sample and the process that takes it: one each way, in JSON.

The control plane sends a ``SampleOrder``; the process answers with a ``SampleAnswer`` and ends.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Base64Bytes, Field

from ingestion.specs.base import Message
from ingestion.specs.inputs.sources import AnyIOConfig
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.messages.protocol import Column
from ingestion.specs.schema.data_schema import DataSchema

MAX_ROWS = 1000
SHOWN_BYTES = 16 * 1024  # of a key or a payload
MAX_INPUT_BYTES = 16 * 1024 * 1024
MAX_ANSWER_BYTES = 4 * 1024 * 1024
WINDOWS_S = (60, 3600, 86_400)  # within which it is counted what came: a burst is no rate, and its topic may be quiet

Outcome = Literal["raw", "stored", "processed_with_error", "filtered", "outside_window", "tombstone", "unparseable"]
STORED = ("stored", "processed_with_error")
# Which part of the spec a failure is about; "decoder": none.
Place = Literal["topic", "consumerProperties", "inputFormat", "dataSchema", "decoder"]


# "rows": what a spec makes of the records; "records": these alone, whole, to be kept; "formats": how they may be
# written; "times": which of their fields may hold their time.
Wanted = Literal["rows", "records", "formats", "times"]


class KeptRecord(Message):
    """A record as Kafka has it, kept so that Kafka is not asked at each step."""

    partition: int
    offset: int
    timestamp_ms: int | None = None
    key: Base64Bytes | None = None
    headers: list[tuple[str, Base64Bytes | None]] = Field(default_factory=list)
    payload: Base64Bytes | None = None

    @property
    def size(self) -> int:
        """Of key, payload and headers."""
        values = [self.key, self.payload, *(value for _, value in self.headers)]
        return sum(len(data) for data in values if data is not None) + sum(len(name) for name, _ in self.headers)


class SampleOrder(Message):
    """What to sample and how to read it."""

    wanted: Wanted = "rows"

    data_schema: DataSchema
    io_config: AnyIOConfig
    formatted: bool  # whether the inputFormat is meant; else records are left as they are
    timed: bool  # whether the timestampSpec is meant
    bounded: bool = False  # whether the intervals of the granularitySpec say what is taken, as of a batch task's files
    # What was pasted; None reads the topic of ``io_config``, with ``consumer_properties``, secrets included.
    records: list[Base64Bytes] | None = None
    kept: list[KeptRecord] | None = None  # what an earlier order has read, instead of either
    rows: int
    most_bytes: int = MAX_INPUT_BYTES  # of keys and payloads
    timeout_ms: int
    schema_folder: str = ""
    consumer_properties: dict[str, str] = Field(default_factory=dict)
    address_policy: AddressPolicy = Field(default_factory=AddressPolicy)


class Bytes(Message):
    """A key or payload: its first ``SHOWN_BYTES``, and how many there are."""

    start: Base64Bytes
    size: int


class SampledRow(Message):
    """What is read of a record, or of one of several rows that it holds."""

    fields: Any = None  # what the input format reads, before the dataSchema has its say; None if it can't
    # What would be stored, by column, without nulls; times are milliseconds. Of a record that is too large to be shown
    # neither is there.
    row: dict[str, Any] | None = None


class SampledRecord(SampledRow):
    """One record, and what becomes of it; of one that holds several rows what is read is that of the first.

    The first three are None for what was pasted.
    """

    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    key: Bytes | None = None
    payload: Bytes | None = None
    outcome: Outcome
    error: str = ""  # why it is unparseable, or what of it could not be stored
    further: list[SampledRow] = Field(default_factory=list)  # the others; none where it is too large to be shown
    held: int = 1  # how many rows it holds

    @property
    def stored_rows(self) -> list[dict[str, Any]]:
        """Those that are shown of what would be stored."""
        return [sampled.row for sampled in self.by_row if sampled.row is not None]

    @property
    def by_row(self) -> list[SampledRow]:
        """Each row that it holds, as far as they are shown."""
        return [self, *self.further]


class AbsentField(Message):
    """A field that the spec names, and that no record of the sample has."""

    name: str
    read_by: list[str]  # dimension, filter, transform 'x', metric 'x', timestampSpec, flattenSpec, dimensionExclusions


class Arrived(Message):
    """The number of records that arrived in a topic in the last ``window_s`` seconds, by their Kafka timestamps."""

    records: int
    window_s: int

    @property
    def per_s(self) -> float:
        return self.records / self.window_s


class RolledUpRow(Message):
    """A row that equal ones of the sample became."""

    row: dict[str, Any]
    records: list[int]  # theirs, by place in the sample
    # These, by place among the rows that all records of the sample hold.
    rows: list[int] = Field(default_factory=list)


class SampleFailure(Message):
    """Why there is no sample."""

    place: Place
    message: str
    within: list[str | int] = Field(default_factory=list)  # where in that part, as far as it is known
    permanent: bool  # the spec has to be mended; else trying again may help


class FormatGuess(Message):
    """A way in which the records may be written."""

    input_format: dict[str, Any]  # as far as it can be told: a schema registry's address is for who knows it
    share: float  # of the records that have a value, those that can be read so
    why: str
    lacks: str = ""  # what must be added before it can be used


class TimeGuess(Message):
    """A field that may hold the records' time."""

    column: str
    format: str
    share: float  # of all records, those whose time it says
    distance_ms: int | None  # the median of what lies between it and Kafka's own time
    example: str
    example_ms: int
    nodes: list[str] = Field(default_factory=list)  # where it is nested: the names that lead to it


class SampleAnswer(Message):
    """A sample in the order of its records' times, or why there is none. Only what was wanted is there."""

    failure: SampleFailure | None = None
    kept: list[KeptRecord] = Field(default_factory=list)
    arrived: Arrived | None = (
        None  # within the shortest of ``WINDOWS_S`` that any record came in; None: in none of them
    )
    formats: list[FormatGuess] = Field(default_factory=list)  # the likeliest first
    times: list[TimeGuess] = Field(default_factory=list)  # the best first
    records: list[SampledRecord] = Field(default_factory=list)
    # What ended the reading early: the timeout, the input's size, or the answer's own; empty when all is there.
    stopped_by: Literal["", "time", "bytes", "answer"] = ""
    fields: list[Column] = Field(default_factory=list)  # the columns that discovery makes of the records' fields
    columns: list[Column] = Field(default_factory=list)  # those of a segment of the rows
    absent: list[AbsentField] = Field(default_factory=list)  # in the order in which the spec reads them
    rollup: list[RolledUpRow] | None = None  # None when the spec does not ask for it
    stored_bytes: int = 0  # what the rows, after rollup, take in a segment, without its footer

    @property
    def read(self) -> list[Any]:
        """What the input format reads of each row that is shown; None where it can't."""
        return [sampled.fields for record in self.records for sampled in record.by_row]
