"""Tasks (one Spark application each, or a part of a shared one, or one repair process) and their indexers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.db import models

from controlplane.datasources.masked_querysets import ConcealingQuerySet, hidden_note
from controlplane.datasources.models import Datasource
from controlplane.sources.models import Source
from controlplane.teams.models import User
from controlplane.teams.permissions import visible
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.inputs.sources import all_traits
from ingestion.specs.tasks.stored_specs import io_config_of


class Status(models.TextChoices):
    """Druid's task states. PENDING: waits to be launched."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


ENDED = (Status.SUCCESS, Status.FAILED)


class Goal(models.TextChoices):
    """What a task is to do: the directive its heartbeats are answered with."""

    RUN = "continue"
    FINISH = "finish"  # stop polling, publish what is held, end
    STOP = "stop"  # release what is held, end


class TaskQuerySet(ConcealingQuerySet["Task"]):
    def visible_to(self, user: User) -> TaskQuerySet:
        """Those of the user's teams."""
        return self.filter(visible(user, "datasource__team"))

    def active(self) -> TaskQuerySet:
        """Those that have not ended."""
        return self.filter(status__in=[Status.PENDING, Status.RUNNING])

    def reading(self) -> TaskQuerySet:
        """Those that read a source as it comes: neither repairs nor replays."""
        return self.exclude(kind__in=Task.Kind.values)

    def ingesting(self) -> TaskQuerySet:
        """Those, and bounded reads."""
        return self.exclude(kind__in=[kind for kind in Task.Kind if kind is not Task.Kind.BOUNDED])

    def in_pool(self) -> TaskQuerySet:
        """Those that take places of the pool: repairs and replays are small, and some have no application."""
        return self.exclude(kind__in=[*Task.SMALL, *Task.OF_SEGMENTS])


def task_kinds() -> list[tuple[str, str]]:
    """Each source's, and those that read no stream: as they are stored, and as people call them."""
    return [*((traits.kind, traits.label) for traits in all_traits()), *Task.Kind.choices]


def task_types() -> dict[str, list[str]]:
    """Druid's type of a task → our kinds. What Druid has no type for is called as it is here."""
    kinds: dict[str, list[str]] = {}
    for traits in all_traits():
        of_type = kinds.setdefault(traits.task_type, [Task.Kind.BOUNDED])  # one has the type of its spec
        of_type.append(traits.kind)
    for kind in Task.Kind:
        if kind is Task.Kind.BOUNDED:
            continue
        kinds.setdefault(kind.druid_type, []).append(kind)
    return kinds


class Task(models.Model):
    """One run."""

    class Kind(models.TextChoices):
        """Of those that do not read a stream as it comes."""

        REPAIR = "repair", "repair"
        REPLAY = "replay", "replay"
        BOUNDED = "bounded", "bounded read"
        REWIND = "rewind", "rewind"
        # Batch tasks, by Druid's types.
        INDEX_PARALLEL = "index_parallel", "batch"
        INDEX = "index", "batch, one slot"
        # About segments that are there; by Druid's types, too.
        COMPACT = "compact", "compaction"
        REINDEX = "reindex", "compaction, rows written anew"
        KILL = "kill", "deletion"

        @property
        def druid_type(self) -> str:
            """Druid's type of it, which says no more than ``compact`` of both."""
            return str(Task.Kind.COMPACT if self is Task.Kind.REINDEX else self)

    SMALL = (Kind.REPAIR, Kind.REPLAY, Kind.REWIND)
    BATCH = (Kind.INDEX_PARALLEL, Kind.INDEX, Kind.REINDEX)
    OF_SEGMENTS = (Kind.COMPACT, Kind.KILL)  # without an application of their own

    class Replay(models.TextChoices):
        """What becomes of the quarantined records that a replay holds."""

        INGEST = "ingest", "ingest"
        PRODUCE = "produce", "produce again"

    id = models.CharField(primary_key=True, max_length=300)
    kind = models.CharField(max_length=20, choices=task_kinds)
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="tasks")
    supervisor_id = models.CharField(max_length=200, blank=True)  # empty for a manual task
    spec_version = models.IntegerField(null=True)
    # Tasks with the same name here read the same offsets: replicas of each other. Empty for a task that has none.
    replica_group = models.CharField(max_length=300, blank=True, default="", db_default="")
    spec = models.JSONField()
    # Of a task that is another one's spec in other words: the batch task's that it is done by. It is made again of what
    # is there each time that the task's driver starts.
    batch_spec = models.JSONField(null=True)
    secrets = models.TextField(blank=True)
    ranges = models.JSONField(default=list)
    # Of a replay: what it does, and whose records it holds.
    replay_mode = models.CharField(max_length=10, choices=Replay.choices, blank=True, db_default="")
    replay_source = models.ForeignKey(Source, on_delete=models.CASCADE, null=True, related_name="+")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PENDING)
    goal = models.CharField(max_length=10, choices=Goal.choices, default=Goal.RUN)
    indexers_wanted = models.IntegerField(default=1)
    slots = models.IntegerField(default=0)
    # It is to be served, or is, by an application that serves others, too: see tasks.shared_applications.
    shares_application = models.BooleanField(default=False, db_default=False)
    # By which of them it is served; empty before that, and of a task that has its own.
    shared_application = models.CharField(max_length=100, blank=True, default="", db_default="")
    token_hash = models.CharField(max_length=64, blank=True)
    submitted_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()
    launched_at = models.DateTimeField(null=True)
    # On which it was launched (HEADGATE_HOST_NAME); empty before that.
    host = models.CharField(max_length=255, blank=True, default="", db_default="")
    started_at = models.DateTimeField(null=True)
    last_heartbeat_at = models.DateTimeField(null=True)
    # Since when Spark has had no slot for any of its indexers; empty while one has got one.
    without_slot_since = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    last_activity_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    message = models.TextField(blank=True)
    # What the observer last saw of the topic, for "why is there nothing?": see tasks.diagnosis.
    observation = models.JSONField(default=dict)
    # Kafka had no such topic when it was first asked: all that comes into it is newer than the reader.
    topic_missed = models.BooleanField(default=False, db_default=False)
    # Of a batch task: how many parts the phase has that it is in, and how many are done; of one of segments: how many
    # merges, or files to delete. And of records that could not be read, or have a faulty field, the first of a batch
    # task, and of those that a failed task had read and not published (``specs.messages.protocol.UnreadRecord``); how
    # many these were, as ``Counters``, without zeros.
    parts = models.IntegerField(default=0, db_default=0)
    parts_done = models.IntegerField(default=0, db_default=0)
    unread = models.JSONField(default=list, db_default=[])
    given_up = models.JSONField(default=dict, db_default={})
    quarantined_noted = models.BigIntegerField(default=0, db_default=0)  # as many records are in events

    objects = TaskQuerySet.as_manager()
    concealed_for = ""
    log_note = ""  # instead of the log, for who may not see it: ``selectors.get_task`` says it

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="task_newest_first"),
            models.Index(fields=["status"], name="task_by_status"),
            models.Index(fields=["supervisor_id", "-created_at", "-id"], name="task_by_supervisor"),
        ]

    def __str__(self) -> str:
        return self.id

    def conceal(self, role: str) -> None:
        """What its application said may quote a value; its log does, if the spec asks for it."""
        self.concealed_for = role
        self.error = self.error and hidden_note(role)
        self.message = self.message and hidden_note(role)
        self.unread = [{**record, "start": "", "error": hidden_note(role)} for record in self.unread]

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def reads(self) -> bool:
        """Whether it reads a source as it comes."""
        return self.kind not in Task.Kind.values

    @property
    def is_bounded(self) -> bool:
        """Whether it reads given offsets of a topic, and ends."""
        return self.kind == Task.Kind.BOUNDED

    @property
    def is_batch(self) -> bool:
        """Whether it reads files, once."""
        return self.kind in Task.BATCH

    @property
    def replays_files(self) -> bool:
        """Whether it replays quarantined records of files, with a batch task's spec."""
        return self.kind == Task.Kind.REPLAY and self.replay_source_id is None

    @property
    def as_batch(self) -> dict[str, Any]:
        """Of one of these, and of a replay of records of files: the batch task's spec."""
        return self.batch_spec or self.spec

    @property
    def is_of_segments(self) -> bool:
        """Whether it merges or deletes segments, and reads nothing itself."""
        return self.kind in Task.OF_SEGMENTS

    @property
    def can_resubmit(self) -> bool:
        """Whether its spec can be submitted once more."""
        return self.reads or self.is_bounded or self.is_batch or self.is_of_segments

    @property
    def percent_done(self) -> int:
        """Of the parts of its phase."""
        return min(self.parts_done, self.parts) * 100 // self.parts if self.parts else 0

    @property
    def in_pool(self) -> bool:
        """Whether it takes places of the pool."""
        return self.kind not in Task.SMALL and not self.is_of_segments

    @cached_property
    def io_config(self) -> IOConfig:
        """What it reads; a repair and a replay: what they are for. A task's spec does not change."""
        return io_config_of(self.spec)


class Indexer(models.Model):
    """One long-running Spark task of an application, as its last heartbeat described it."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="indexers")
    number = models.IntegerField()
    epoch = models.IntegerField(default=0)
    state = models.CharField(max_length=20, default="starting")
    pid = models.IntegerField(default=0)
    in_flight = models.IntegerField(default=0)
    partitions = models.JSONField(default=list)
    restarts = models.IntegerField(default=0)
    ack_failures = models.IntegerField(default=0)
    redelivery_counts = models.JSONField(default=dict)
    leases = models.JSONField(default=dict)
    holding = models.JSONField(default=list)
    message = models.TextField(blank=True)
    last_heartbeat_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["task", "number"], name="one_row_per_indexer")]


class Resident(models.Model):
    """One run of such an application. Its places are the pool's as long as it has not ended."""

    id = models.CharField(primary_key=True, max_length=300)
    token_hash = models.CharField(max_length=64)
    slots = models.IntegerField()
    finishing = models.BooleanField(default=False)  # it is to take no more work
    launched_at = models.DateTimeField()
    host = models.CharField(max_length=255, blank=True, default="", db_default="")
    last_heartbeat_at = models.DateTimeField(null=True)
    idle_since = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["-launched_at"]
        constraints = [
            models.UniqueConstraint(models.Value(1), condition=models.Q(ended_at=None), name="one_resident_at_a_time")
        ]


class ClusterDriver(models.Model):
    """The driver of an application, as it was last submitted to run on a Spark cluster. See ``tasks.driver_rounds``."""

    name = models.CharField(primary_key=True, max_length=300)  # the task's id, or the resident's
    driver_id = models.CharField(max_length=200, blank=True, default="")  # Spark's; empty before its master has it
    log_address = models.CharField(max_length=500, blank=True, default="")  # empty before a Spark worker runs it
    submitted_at = models.DateTimeField()


class Host(models.Model):
    """A host on which a worker runs or ran, by its name, and the lease of that name. See ``tasks.hosts``."""

    name = models.CharField(primary_key=True, max_length=255)
    folder = models.CharField(max_length=64)  # the mark of its folder of tasks
    identity = models.CharField(max_length=300)
    seen_at = models.DateTimeField()


class CompactionShare(models.Model):
    """How much of the pool compaction may take, as an administrator of the site has set it. One row at most."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    ratio = models.FloatField()  # of the pool's places, 0 to 1
    most = models.IntegerField(null=True)  # slots, whatever the ratio makes; None for no bound
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="one_share_of_compaction")]
