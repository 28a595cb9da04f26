"""The messages between a batch task's driver and the control plane: JSON over HTTP, the same models on both sides."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Base64Bytes, Field

from ingestion.specs.base import Message
from ingestion.specs.counters import Counters
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.limits import MAX_UNREAD
from ingestion.specs.messages.compaction import InputSegment
from ingestion.specs.messages.protocol import SegmentFile, UnreadRecord
from ingestion.specs.messages.publish_limits import MAX_QUARANTINED
from ingestion.specs.messages.storable_text import StorableText
from ingestion.specs.tasks.batch import BatchSpec

MAX_SEGMENTS = 20_000  # of one task: all are registered in one transaction
MAX_COLUMNS = 500_000  # of all of them together: each lists its own


class Reachable(Message):
    """Where files may lie."""

    local_folders: list[str] = Field(default_factory=list)
    locations: list[str] = Field(default_factory=list)  # of object storages
    address_policy: AddressPolicy = Field(default_factory=AddressPolicy)


class FileRecord(Message):
    """A record of a file that could not be read, for the quarantine."""

    place: StorableText = Field(min_length=1, max_length=2_000)  # the file, and the byte or row where it begins
    position: int = Field(ge=0)  # that byte or row
    reason: Literal["unparseable", "decoder_crash"]
    error: StorableText = Field(max_length=2_000)
    payload: Base64Bytes  # of a file without lines: its row as JSON
    cut: bool = False  # the payload is only the beginning: there was no room for more
    header: Base64Bytes = b""  # the line of its file that names the columns, if one does


class BatchAssignment(Message):
    """The work of a driver. Each request starts a new epoch, after which older drivers may not publish."""

    task_id: str
    epoch: int
    spec: BatchSpec
    slots: int = Field(ge=1)  # Spark tasks side by side
    deep_storage: str
    version: str  # in the files' paths; the publish decides under which one they are registered
    reachable: Reachable
    inputs: list[InputSegment] = Field(default_factory=list)  # of the input source druid
    most_quarantined: int = Field(default=0, ge=0, le=MAX_QUARANTINED)  # records that can't be read, with payloads
    failpoints: dict[str, str] = Field(default_factory=dict)


class BatchPublishRequest(Message):
    """All that the task has written. Taken once: the task has ended then."""

    publish_id: UUID
    epoch: int
    segments: list[SegmentFile] = Field(max_length=MAX_SEGMENTS)
    counters: Counters
    read: list[UUID] = Field(default_factory=list)  # the segments of the assignment's ``inputs``
    unread: list[UnreadRecord] = Field(default_factory=list, max_length=MAX_UNREAD)
    quarantined: list[FileRecord] = Field(default_factory=list, max_length=MAX_QUARANTINED)


class BatchPublishAnswer(Message):
    """It has committed: what is in use now, and how many segments it replaced."""

    segment_ids: list[str]
    replaced: int
