"""The messages between a compaction application and the control plane: JSON over HTTP, the same models on both sides.

Times are UTC. A job merges some segments of one interval into fewer ones; whoever holds its newest attempt may replace
them, once.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from ingestion.specs.base import Message
from ingestion.specs.messages.protocol import Column, Directive, SegmentFile
from ingestion.specs.messages.storable_text import StorableText
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.schema.index_spec import IndexSpec
from ingestion.specs.tasks.batch import BatchSpec

MAX_INPUTS = 2_000  # segments that one job reads


class InputSegment(Message):
    """A segment to be merged, as it was registered."""

    id: UUID
    path: str
    rows: int = Field(gt=0)
    size_bytes: int = Field(gt=0)
    sha256: str


class CompactionJob(Message):
    """The segments to merge, and the result. With ``anew``, the rows are partitioned and written by that spec."""

    job_id: str
    attempt: int
    interval_start: datetime
    interval_end: datetime
    version: str
    data_schema: DataSchema  # of those who wrote the segments: which columns are metrics
    index_spec: IndexSpec = Field(default_factory=IndexSpec)
    rollup: bool  # whether equal rows become one
    segments: list[InputSegment] = Field(min_length=1, max_length=MAX_INPUTS)
    schemas: list[list[Column]]  # that any of them has, the time first
    max_rows_per_segment: int = Field(gt=0)
    anew: BatchSpec | None = None
    deep_storage: str
    failpoints: dict[str, str] = Field(default_factory=dict)


class WorkRequest(Message):
    """An application, once a second: what it works on, by job its attempt, and how many jobs more it can take."""

    running: dict[str, int] = Field(default_factory=dict)
    free: int = Field(ge=0)


class WorkAnswer(Message):
    """New jobs, and which of those it works on are no longer its own."""

    directive: Directive
    jobs: list[CompactionJob] = Field(default_factory=list)
    dropped: list[str] = Field(default_factory=list)


class ReplaceRequest(Message):
    """The segments read become unused and these used, at once. Answered the same however often it is sent."""

    replace_id: UUID
    attempt: int
    read: dict[UUID, int]  # segment → rows read of it
    segments: list[SegmentFile] = Field(min_length=1)
    # Sums of each count metric before and after; floats of sums may differ by the order in which they are added.
    counted: dict[str, tuple[int, int]] = Field(default_factory=dict)


class ReplaceAnswer(Message):
    segment_ids: list[UUID]


class FailedRequest(Message):
    """A job's attempt came to nothing."""

    attempt: int
    error: StorableText = Field(max_length=4000)
    permanent: bool = False  # it would come to the same again


class DepartureRequest(Message):
    """The application's last word."""

    error: StorableText = Field(default="", max_length=4000)


class Done(Message):
    """Nothing more to say."""
