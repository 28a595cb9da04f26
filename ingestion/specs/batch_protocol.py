"""The messages between a batch task's driver and the control plane: JSON over HTTP, the same models on both sides."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from ingestion.specs.addresses import AddressPolicy
from ingestion.specs.base import Message
from ingestion.specs.batch import BatchSpec
from ingestion.specs.compaction import InputSegment
from ingestion.specs.counters import Counters
from ingestion.specs.protocol import MOST_UNREAD, SegmentFile, UnreadRecord

MOST_SEGMENTS = 20_000  # of one task: all are registered in one transaction
MOST_COLUMNS = 500_000  # of all of them together: each lists its own


class Reachable(Message):
    """Where files may lie."""

    local_folders: list[str] = Field(default_factory=list)
    locations: list[str] = Field(default_factory=list)  # of object storages
    address_policy: AddressPolicy = Field(default_factory=AddressPolicy)


class BatchAssignment(Message):
    """What a driver is to do. Asking for it takes a new epoch: whoever asked before may publish no more."""

    task_id: str
    epoch: int
    spec: BatchSpec
    slots: int = Field(ge=1)  # Spark tasks side by side
    deep_storage: str
    version: str  # in the files' paths; the publish decides under which one they are registered
    reachable: Reachable
    inputs: list[InputSegment] = Field(default_factory=list)  # of the input source druid
    failpoints: dict[str, str] = Field(default_factory=dict)


class BatchPublishRequest(Message):
    """All that the task has written. Taken once: the task has ended then."""

    publish_id: UUID
    epoch: int
    segments: list[SegmentFile] = Field(max_length=MOST_SEGMENTS)
    counters: Counters
    read: list[UUID] = Field(default_factory=list)  # the segments of the assignment's ``inputs``
    unread: list[UnreadRecord] = Field(default_factory=list, max_length=MOST_UNREAD)


class BatchPublishAnswer(Message):
    """It has committed: what is in use now, and how many segments it replaced."""

    segment_ids: list[str]
    replaced: int
