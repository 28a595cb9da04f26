"""The messages between an indexer and the control plane: JSON over HTTP, the same models on both sides.

Times are UTC; offsets are half-open ranges ``[start, end)`` within one partition; payload bytes are base64.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Base64Bytes, Field

from ingestion.specs.base import Message
from ingestion.specs.counters import Counters, Unpublished
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.limits import MAX_UNREAD
from ingestion.specs.messages.storable_text import StorableText
from ingestion.specs.schema.metric_base import SketchKind
from ingestion.specs.tasks.ingestion_spec import IngestionSpec

OffsetRange = tuple[int, int]
Partition = Annotated[int, Field(ge=0, lt=2**31)]
Header = tuple[str, Base64Bytes | None]
Directive = Literal["continue", "finish", "stop"]
MAX_PARTS = 2**31 - 1


class RepairRange(Message):
    """Offsets that a repair or a bounded read reads."""

    partition: int = Field(ge=0)
    start: int = Field(ge=0)
    end: int = Field(gt=0)
    topic_id: str = ""  # of the topic that has it


class Replay(Message):
    """What a replay does with the quarantined records that it holds, and of which topic, by ids, they are."""

    mode: Literal["ingest", "produce"]
    cluster_id: str
    topic_id: str


class Assignment(Message):
    """What an application is to do."""

    task_id: str
    kind: str  # its source's, or repair, replay or bounded
    spec: IngestionSpec
    consumer_properties: dict[str, str]  # under librdkafka's names, secrets included
    indexers: int = Field(ge=0)  # how many to keep running
    deep_storage: str
    version: str
    created_at: datetime  # when the task was, or the first of its replicas
    reads_until: datetime | None = None  # when its taskDuration will have passed since; None if it has none
    most_failures: int = Field(default=15, ge=1)  # of an indexer, in a row for one reason, until the task fails
    group: str = ""  # the consumer group's name
    schema_folder: str = ""
    address_policy: AddressPolicy = Field(default_factory=AddressPolicy)
    ranges: list[RepairRange] = Field(default_factory=list)  # of a repair and a bounded read: what to read
    bounded: bool = False  # it reads its ranges, and ends
    dry_run: bool = False  # of a rewind: no file is kept
    replaces: list[str] = Field(default_factory=list)  # of a dry run: the files whose columns are to be compared
    replay: Replay | None = None
    failpoints: dict[str, str] = Field(default_factory=dict)


class StartRequest(Unpublished):
    """An indexer starts: it says which topic, by id, it found, and takes a new epoch, which fences older ones.

    Beside it, what ended in this process's last epoch without a publish, and no heartbeat has said yet.
    """

    cluster_id: str
    topic_id: str
    host: str
    pid: int
    previous_epoch: int = Field(default=0, ge=0)
    counts_publishes: bool = False  # it is of a version that says ``IndexerStatus.answered``


class ParseExceptionTotals(Message):
    """Sums of a task, over all its indexers and their restarts."""

    seen: int = Field(default=0, ge=0)  # records that could not be read, or only in part
    saved: int = Field(default=0, ge=0)  # how many of those read in part are kept


class StartAnswer(Message):
    epoch: int
    publishes: int | None = None  # that are stored of the indexer, of all epochs; for those that count them
    parse_exceptions: ParseExceptionTotals = Field(default_factory=ParseExceptionTotals)


class Reset(Message):
    """Move a partition's stored offset from where it is to another one, since what it says is not there."""

    stored: int = Field(ge=0)
    to: int = Field(ge=0)


class ClaimRequest(Message):
    """An indexer asks for the stored offsets of the partitions it is to read."""

    epoch: int
    topic_id: str
    partitions: list[Partition]
    new_generation: bool = False  # whoever held these partitions before may publish no more
    new_process: bool = False  # counted as an attempt until something of the partition is published
    first_run: bool = False
    # Where to start the partitions that have no stored offset; kept only if ``first_run`` is still what the last answer
    # said.
    starts: dict[Partition, int] = Field(default_factory=dict)
    resets: dict[Partition, Reset] = Field(default_factory=dict)


class Claimed(Message):
    """One partition: where to go on (None: nothing is stored yet), and the generation a publish must name.

    Of a bounded read, None says that nothing of the partition is left.
    """

    next_offset: int | None
    # Where what is unsettled ends, and another claim says where to go on: something settled lies behind it, or, of a
    # bounded read, its end. None: nothing does.
    until: int | None = None
    generation: int
    attempts: int = 0  # how many processes have begun here since something of it was published


class ClaimAnswer(Message):
    """Where to go on with the partitions that were asked for."""

    partitions: dict[int, Claimed]
    first_run: bool  # nothing was ever stored for this source, nor for an older topic of that name


class Advance(Message):
    """The part of one partition that a publish ends: all of ``[start, end)``."""

    start: int = Field(ge=0)
    end: int = Field(gt=0)
    generation: int | None = None  # None where there is none


class Column(Message):
    name: str
    # "strings": a list of them
    type: Literal["string", "strings", "long", "double", "boolean", "timestamp", "json"] | SketchKind


class SegmentFile(Message):
    """A file that was uploaded whole. ``offsets`` maps a partition to the source offsets of its rows."""

    path: str
    interval_start: datetime
    interval_end: datetime
    rows: int = Field(gt=0)
    size_bytes: int = Field(gt=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    min_time: datetime
    max_time: datetime
    columns: list[Column]
    extents: bool = False  # it has the columns of ``ingestion.specs.schema.data_schema`` too
    offsets: dict[Partition, list[OffsetRange]]


class Outcomes(Message):
    """One partition's offsets by what became of them. Stored offsets stand with their segment file."""

    thrown_away: list[OffsetRange] = Field(default_factory=list)
    unparseable: list[OffsetRange] = Field(default_factory=list)
    duplicate: list[OffsetRange] = Field(default_factory=list)
    empty: list[OffsetRange] = Field(default_factory=list)  # no record there: marker, aborted, compacted
    gap: list[OffsetRange] = Field(default_factory=list)  # removed by retention before it was read
    skipped: list[OffsetRange] = Field(default_factory=list)  # left out by a reset to the latest offset


class QuarantinedRecord(Message):
    """A record that could not be decoded, or published, whole."""

    partition: int = Field(ge=0)
    offset: int = Field(ge=0)
    timestamp_ms: int | None = None
    delivery_count: int = Field(ge=0)
    # The control plane alone gives ``dead_letter``.
    reason: Literal["unparseable", "decoder_crash", "delivery_limit", "refused", "dead_letter"]
    error: StorableText = Field(max_length=2000)
    key: Base64Bytes | None = None
    payload: Base64Bytes | None = None
    headers: list[Header] = Field(default_factory=list)


class FaultyRecord(Message):
    """A record that is stored although a field of it was no good."""

    partition: int = Field(ge=0)
    offset: int = Field(ge=0)
    timestamp_ms: int | None = None
    delivery_count: int = Field(ge=0)
    error: StorableText = Field(max_length=2000)
    payload: Base64Bytes | None = None  # its beginning
    payload_size: int | None = None  # of the whole, in bytes


class ColumnSummary(Message):
    """What a column of some segments holds, whatever the order of its rows."""

    name: str
    type: str
    values: int = Field(ge=0)  # rows that have one
    total: float | None = None  # the sum, of finite numbers
    checksum: int = Field(ge=0, lt=2**64)  # of the values

    def plus(self, other: ColumnSummary) -> ColumnSummary:
        """Of the rows of both. A column of two types names both."""
        totals = [total for total in (self.total, other.total) if total is not None]
        types = sorted({*self.type.split(", "), *other.type.split(", ")})
        return ColumnSummary(
            name=self.name,
            type=", ".join(types),
            values=self.values + other.values,
            total=sum(totals) if totals else None,
            checksum=(self.checksum + other.checksum) % 2**64,
        )


class PublishRequest(Message):
    """One batch, whole: its segments and what became of every record. Answered the same however often it is sent."""

    publish_id: UUID
    epoch: int
    topic_id: str
    segments: list[SegmentFile]
    outcomes: dict[Partition, Outcomes]
    counters: Counters
    quarantined: list[QuarantinedRecord] = Field(default_factory=list)
    faulty: list[FaultyRecord] = Field(default_factory=list, max_length=10_000)  # those to be kept for the report
    early_duplicates: int = Field(default=0, ge=0)  # duplicates that were delivered for the first time: alarming
    progress: dict[Partition, Advance] = Field(default_factory=dict)  # of sources with stored offsets
    # Of a dry run of a rewind: the columns of the segments that it would replace, and of its own.
    columns_before: list[ColumnSummary] = Field(default_factory=list, max_length=20_000)
    columns_after: list[ColumnSummary] = Field(default_factory=list, max_length=20_000)


class PublishAnswer(Message):
    """The publish has committed."""

    publish_id: UUID
    segment_ids: list[str]
    parse_exceptions: ParseExceptionTotals | None = None  # what there are now; None when the publish brought none


class Refusal(Message):
    """Why a message changed nothing (status 409)."""

    # changed: of a replace, what was read is no longer what there is; plan anew.
    code: Literal["fenced", "duplicates", "abandoned", "offsets", "generation", "predecessor", "changed"]
    detail: str
    duplicates: dict[int, list[OffsetRange]] = Field(default_factory=dict)  # per partition, what is settled already
    # The partitions whose stored offset (code offsets) or generation (code generation) is not what the publish named,
    # and their stored offsets.
    stored: dict[int, int | None] = Field(default_factory=dict)


class SettledRequest(Message):
    """Which of these offsets are settled already?"""

    epoch: int
    topic_id: str
    offsets: dict[Partition, list[OffsetRange]]


class SettledAnswer(Message):
    settled: dict[int, list[OffsetRange]]


class AbandonRequest(Message):
    """The lock has run out: if this publish has not committed by now, it never may."""

    epoch: int
    publish_id: UUID


class AbandonAnswer(Message):
    committed: bool


class Leases(Message):
    """What became of the records that a share group lent to an indexer, since its epoch began."""

    acquired: int = Field(default=0, ge=0)
    accepted: int = Field(default=0, ge=0)
    rejected: int = Field(default=0, ge=0)
    released: int = Field(default=0, ge=0)
    lock_expired: int = Field(default=0, ge=0)  # acknowledged too late, or given up until their lock ran out
    # The longest time in ms of a bucket → how many records were held for so long or less, and longer than the bucket
    # before: from the poll's return to the acknowledgement. Buckets grow by a quarter each, so that there are less than
    # 80.
    hold_ms: dict[int, int] = Field(default_factory=dict, max_length=80)
    longest_hold_ms: int = Field(default=0, ge=0)


class IndexerStatus(Message):
    """One indexer in a heartbeat."""

    number: int = Field(ge=0)
    epoch: int = Field(ge=0)
    state: Literal[
        "waiting_for_slot",
        "starting",
        "waiting",
        "reading",
        "refused",
        "paused",
        "finishing",
        "stopped",
        "restarting",
        "silent",
    ]  # refused: Kafka does not let it read, or not all; its message says why
    pid: int = 0
    in_flight: int = Field(default=0, ge=0)
    unpublished: Counters = Field(default_factory=Counters)  # what ended without a publish since this epoch began
    partitions: list[int] = Field(default_factory=list)
    message: StorableText = ""
    ack_failures: int = Field(default=0, ge=0)
    restarts: int = Field(default=0, ge=0)
    restarted_after: StorableText = ""  # why its job ended before the last of its ``restarts``
    failures: int = Field(default=0, ge=0)  # how often it has failed in a row for one reason
    publishes: int = Field(default=0, ge=0)  # how many of this epoch were taken
    # How many of all epochs were answered, so that the store must have them. None: it is of a version that did not say.
    answered: int | None = Field(default=None, ge=0)
    redelivery_counts: dict[int, int] = Field(default_factory=dict)  # delivery count → records, this epoch
    leases: Leases = Field(default_factory=Leases)
    # Of a share group, between which offsets what it works on lies: partition, first, last + 1.
    holding: list[tuple[int, int, int]] = Field(default_factory=list, max_length=64)

    def is_ahead(self, epoch: int, publishes: int) -> bool:
        """Whether the store, which has this epoch and so many publishes, has lost what it had answered.

        What is committed after the indexer has said this only adds to the store: a late word is never ahead.
        """
        return self.answered is not None and (self.epoch, self.answered) > (epoch, publishes)


class HeartbeatRequest(Message):
    """All indexers of one application, once a second."""

    indexers: list[IndexerStatus]
    slots: int = Field(ge=0)
    message: StorableText = ""
    # Of a batch task's phase: how many of its parts there are, and are done.
    parts: int = Field(default=0, ge=0, le=MAX_PARTS)
    parts_done: int = Field(default=0, ge=0, le=MAX_PARTS)


class HeartbeatAnswer(Message):
    """``directive`` for the whole application; ``indexers`` how many to keep running from now on."""

    directive: Directive
    indexers: int
    store_commits: bool = True
    # Indexers that are ahead of the store, and their epochs: these are to begin again from the stored offsets.
    start_again: dict[int, int] | None = None


class UnreadRecord(Message):
    """A record that no publish tells of, which could not be read, or has a faulty field."""

    place: StorableText = Field(
        max_length=2_000
    )  # the file, and the byte or row where it begins; or partition and offset
    start: StorableText = Field(max_length=1_000)  # of its text
    error: StorableText = Field(max_length=1_000)
    stored: bool  # with a faulty field


class EndRequest(Message):
    """The application ends."""

    indexers: list[IndexerStatus] = Field(default_factory=list)
    error: StorableText = Field(default="", max_length=4000)  # empty when it did what it was told
    interrupted: bool = False  # it was stopped from outside, with the stack or its machine, before its task was done
    unread: list[UnreadRecord] = Field(default_factory=list, max_length=MAX_UNREAD)
    # What was read and, for the error, is not published; ``rolled_up``: would have been stored.
    given_up: Counters = Field(default_factory=Counters)


class EndAnswer(Message):
    detail: dict[str, Any] = Field(default_factory=dict)
