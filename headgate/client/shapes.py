"""The fields of REST's answers that programs need most. Times are ISO 8601, in UTC.

A test compares them with OpenAPI.
"""

from __future__ import annotations

from typing import Any, TypedDict


class Health(TypedDict):
    """The health of a supervisor, as the page of states has it."""

    kind: str  # ok, working, waiting, needs_attention or failed
    code: str
    label: str
    text: str
    since: str | None
    behind: int | None
    trend: str | None


class Supervisor(TypedDict):
    """One of a list."""

    id: str
    datasource: str
    team: str
    version: int
    state: str
    detailed_state: str
    healthy: bool
    health: Health
    suspended: bool
    terminated_at: str | None
    task_count: int
    topic: str
    topic_pattern: str | None
    reads_for: str | None
    fills: str | None
    group: str
    current_task: str | None
    created_at: str


class SupervisorDetail(Supervisor):
    """One supervisor in full."""

    spec: dict[str, Any]  # secrets are masked; it can be submitted again as it is, and keeps them
    totals: dict[str, Any]


class ResetPartition(TypedDict):
    """What a reset does to a partition. Ends are exclusive."""

    partition: int
    stored: int | None
    offset: int
    log_start: int
    end: int
    time: str | None
    records: int
    read_again: int
    skipped: int


class ResetTopic(TypedDict):
    """What a reset does to a topic."""

    topic: str
    supervisor: str
    create_time: bool | None
    partitions: list[ResetPartition]


class ResetPlan(TypedDict):
    """What a reset to a position would do."""

    position: str
    resolved: str
    read_again: int
    skipped: int
    warnings: list[str]
    topics: list[ResetTopic]


class PartitionFill(TypedDict):
    """What a backfill reads of a partition. Ends are exclusive."""

    partition: int
    start: int
    end: int
    unsettled: int


class BackfillPlan(TypedDict):
    """What a backfill reads."""

    supervisor: str
    topic_id: str
    task_count: int
    left: int
    partitions: list[PartitionFill]
    backfill: str | None  # its id; None in a preview


class Backfill(TypedDict):
    """A backfill and how far it is."""

    id: str
    state: str
    detailed_state: str
    created_at: str
    terminated_at: str | None
    task_count: int
    total: int
    done: int
    left: int
    percent: int
    seconds_left: int | None
    gap: bool


class PlannedPart(TypedDict):
    """What one transaction of a rewind would replace."""

    start: str | None
    end: str | None
    segments: int
    rows: int
    records: int
    others: int  # of these, read with their own spec version, or of another topic


class RefusedGroup(TypedDict):
    """Segments that can't be recomputed."""

    segments: list[str]
    rows: int
    reason: str


class RewindPlan(TypedDict):
    """What a rewind reads and replaces."""

    rewind: int | None  # None in a preview
    supervisor: str
    read_with: int
    records: int
    parts: list[PlannedPart]
    refused: list[RefusedGroup]


class RewindPart(TypedDict):
    """A part of a rewind and how far it is."""

    number: int
    start: str | None
    end: str | None
    state: str
    reason: str
    task: str
    records: int
    rows_before: int
    rows_after: int
    counted: dict[str, int]
    changes: dict[str, Any]  # of a dry run: columns, and how many more
    ended_at: str | None


class Rewind(TypedDict):
    """A rewind with its parts."""

    rewind: int
    choice: dict[str, Any]
    read_with: int | None
    dry_run: bool
    by: str
    created_at: str
    parts: list[RewindPart]


class DiffLine(TypedDict):
    kind: str
    text: str


class SpecPlan(TypedDict):
    """What submitting a spec would change."""

    supervisor: str
    action: str  # create, update, restore or none
    version: int  # the current one; 0 for none
    diff: list[DiffLine]
    secrets_changed: bool | None


class Task(TypedDict):
    """One run of an application."""

    id: str
    kind: str
    datasource: str
    team: str
    supervisor: str | None
    status: str  # PENDING, RUNNING, SUCCESS or FAILED
    goal: str
    published: int
    created_at: str
    started_at: str | None
    ended_at: str | None
    error: str
    message: str


class BoundedProgress(TypedDict):
    """How far a bounded read is."""

    total: int
    done: int
    percent: int
    seconds_left: int | None


class TaskDetail(Task):
    """One task in full."""

    spec: dict[str, Any]
    progress: BoundedProgress | None  # of a bounded read


class Datasource(TypedDict):
    name: str
    team: str
    rows: int
    segments: int
    size_bytes: int
    min_time: str | None
    max_time: str | None
    active_tasks: int
    created_at: str


class Completeness(TypedDict):
    """How far a datasource has all of its records."""

    complete_until: str | None  # all records before it have their outcome; None: not known
    observed_at: str | None
    reason: str
    last_publish_at: str | None


class Record(TypedDict):
    """What happened to a record."""

    topic: str
    partition: int
    offset: int
    fates: list[dict[str, Any]]  # one or more for each datasource that reads its topic


class Quarantined(TypedDict):
    id: int | None
    place: str
    partition: int
    offset: int
    reason: str
    error: str
    cause: str
    task: str
    payload_text: str | None
    payload_size: int | None
    state: str
    created_at: str
