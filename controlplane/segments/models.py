"""Segments and the progress of their sources: what one publish transaction writes.

``task_id`` is text, not a key: tasks know segments, not the other way round.
"""

from __future__ import annotations

import uuid

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, BigIntegerRangeField, RangeOperators
from django.contrib.postgres.indexes import GistIndex
from django.db import models
from django.db.models.functions import MD5

from controlplane.datasources.concealing import ConcealingQuerySet, mark
from controlplane.datasources.models import Datasource
from controlplane.segments.cause_models import CauseSum as CauseSum
from controlplane.segments.cause_models import QuarantineCause as QuarantineCause
from controlplane.segments.column_models import Column as Column
from controlplane.segments.event_models import SourceEvent as SourceEvent
from controlplane.segments.feed_models import Feed as Feed
from controlplane.segments.feed_models import FeedEntry as FeedEntry
from controlplane.segments.interval_models import DaySum as DaySum
from controlplane.segments.interval_models import Interval as Interval
from controlplane.segments.interval_models import IntervalChange as IntervalChange
from controlplane.segments.interval_models import IntervalDay as IntervalDay
from controlplane.segments.removal_models import KilledSegment as KilledSegment
from controlplane.segments.removal_models import Removal as Removal
from controlplane.segments.replacement_models import Replacement as Replacement
from controlplane.segments.schema_models import SegmentSchema as SegmentSchema
from ingestion.specs.causes import FINGERPRINT_LENGTH
from ingestion.specs.source_traits import SHARE_GROUPS, Progress
from ingestion.specs.sources import all_traits, progress_of

# A progress key stands in the high bits of a range's bounds, the offset in the low ones: the exclusion constraint
# then needs one range column only (btree_gist is not always there). 2^44 offsets a partition, 2^19 keys.
OFFSET_BITS = 44
MAX_OFFSET = (1 << OFFSET_BITS) - 1


class Segment(models.Model):
    """One immutable Parquet file."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="segments", db_index=False)
    interval_start = models.DateTimeField()
    interval_end = models.DateTimeField()
    version = models.CharField(max_length=30)
    partition_num = models.IntegerField()
    rows = models.BigIntegerField()
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    path = models.CharField(max_length=1000)
    min_time = models.DateTimeField()
    max_time = models.DateTimeField()
    schema = models.ForeignKey(
        SegmentSchema, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    task_id = models.CharField(max_length=300)
    used = models.BooleanField(default=True)  # false once something replaced it, or somebody removed it
    unused_at = models.DateTimeField(null=True)  # the last time; also of one that is used again
    used_again_at = models.DateTimeField(null=True)
    replaced_by = models.UUIDField(null=True)  # the replacement whose segments hold its rows since
    removal = models.ForeignKey(
        Removal, on_delete=models.DO_NOTHING, null=True, related_name="+", db_index=False, db_constraint=False
    )
    kill_began_at = models.DateTimeField(null=True)  # its file may be gone since
    created_at = models.DateTimeField()

    objects = ConcealingQuerySet["Segment"].as_manager()
    concealed_for = ""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["datasource", "interval_start", "interval_end", "version", "partition_num"],
                name="one_segment_per_partition_number",
            ),
            # Not the field's own: that would have a second index, for LIKE, as large as this one.
            models.UniqueConstraint(fields=["path"], name="one_segment_per_path"),
        ]
        indexes = [
            models.Index(fields=["datasource", "interval_start"], name="segment_by_interval"),
            models.Index(fields=["task_id"], name="segment_by_task"),
            models.Index(fields=["datasource", "unused_at"], condition=models.Q(used=False), name="segment_unused"),
        ]

    def conceal(self, role: str) -> None:
        """In the file all columns are plain: where it lies is not shown."""
        self.concealed_for, self.path = role, ""

    @property
    def columns(self) -> list[dict[str, str]]:
        """``{"name", "type"}`` of each, in the file's order."""
        columns: list[dict[str, str]] = self.schema.columns
        return columns

    @property
    def identifier(self) -> str:
        """Druid's segment id: datasource, interval, version and partition number."""
        start, end = (f"{t:%Y-%m-%dT%H:%M:%S}.000Z" for t in (self.interval_start, self.interval_end))
        number = f"_{self.partition_num}" if self.partition_num else ""
        return f"{self.datasource.name}_{start}_{end}_{self.version}{number}"


def progress_kinds() -> list[tuple[str, str]]:
    """Each as it is stored, and as people call it."""
    return list(dict.fromkeys((traits.progress.kind, traits.progress.label) for traits in all_traits()))


class Source(models.Model):
    """A reader of a topic, by ids, of one datasource."""

    kind = models.CharField(max_length=20, choices=progress_kinds, default=SHARE_GROUPS.kind)
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="sources")
    cluster_id = models.CharField(max_length=100)
    # The share group's name; of a source with stored offsets its supervisor's id.
    group = models.CharField(max_length=249)
    topic = models.CharField(max_length=249)
    topic_id = models.CharField(max_length=50)
    current = models.BooleanField(default=True)  # false once the topic was made again
    created_at = models.DateTimeField(auto_now_add=True)
    # From the observer, when it last looked: {partition: [log's start, where the reader begins, log's end]} of all
    # partitions of the topic, and how many offsets lie behind an open transaction.
    looked_at = models.DateTimeField(null=True)
    bounds = models.JSONField(default=dict)
    undecided = models.BigIntegerField(default=0)
    # All that Kafka held before this time has ended; None until that was once seen. ``marks``: see ``completeness``.
    complete_until = models.DateTimeField(null=True)
    marks = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "cluster_id", "group", "topic_id"], name="a_reader_of_a_topic_has_one_owner"
            )
        ]

    @property
    def progress(self) -> Progress:
        """How it is remembered what has ended."""
        return progress_of(self.kind)


class ProgressKey(models.Model):
    """The small number that stands for (cluster, group, topic id, partition) in settled ranges."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="keys")
    partition = models.IntegerField()
    # Of a source with stored offsets: where it goes on, and how often the partition has changed hands.
    next_offset = models.BigIntegerField(null=True)
    generation = models.IntegerField(default=0)
    attempts = models.IntegerField(default=0)  # processes that began there since something of it was published
    # From the observer: the log's end and start when last seen, and when.
    end_offset = models.BigIntegerField(null=True)
    log_start_offset = models.BigIntegerField(null=True)
    observed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "partition"], name="one_key_per_partition")]


class LagSample(models.Model):
    """What a source's lag was in a stretch of ``resolution_s`` seconds from ``at`` on, for charts and autoscaling."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="lag_samples")
    resolution_s = models.IntegerField()
    at = models.DateTimeField()
    observed_at = models.DateTimeField()
    lag = models.BigIntegerField()  # the largest that was seen, in offsets
    partitions = ArrayField(models.BigIntegerField())  # what it consisted of, by partition number
    in_flight = models.BigIntegerField()
    processed = models.BigIntegerField()
    redelivered = models.BigIntegerField()
    # Of records that have ended, replays aside: how many came into quarantine, and how many there are.
    quarantined = models.BigIntegerField(default=0, db_default=0)
    ended = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "resolution_s", "at"], name="one_sample_a_stretch_of_time")
        ]
        indexes = [models.Index(fields=["resolution_s", "at"], name="lag_sample_by_age")]


class SettledRange(models.Model):
    """Offsets of one key that have ended for good. No offset can be in two rows: that is exactly-once."""

    span = BigIntegerRangeField()
    settled_at = models.DateTimeField()

    class Meta:
        constraints = [
            ExclusionConstraint(name="an_offset_is_settled_once", expressions=[("span", RangeOperators.OVERLAPS)])
        ]
        # In the order of offsets, for what walks along a partition; the constraint's index has no order.
        indexes = [models.Index(models.Func("span", function="lower"), name="settled_by_offset")]


MERGES = -1  # the number of the row of totals of a task that merges: rows of segments, and no records


class IndexerFence(models.Model):
    """An indexer as the publish transaction knows it: the fence (its current epoch) and its totals."""

    task_id = models.CharField(max_length=300)
    number = models.IntegerField()
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="fences")
    source = models.ForeignKey(Source, on_delete=models.CASCADE, null=True, related_name="fences")
    epoch = models.IntegerField(default=0)
    published = models.BigIntegerField(default=0)
    rolled_up = models.BigIntegerField(default=0)
    further_rows = models.BigIntegerField(default=0)
    thrown_away = models.BigIntegerField(default=0)
    unparseable = models.BigIntegerField(default=0)
    duplicates = models.BigIntegerField(default=0)
    redelivered = models.BigIntegerField(default=0)
    quarantined = models.BigIntegerField(default=0)
    filtered = models.BigIntegerField(default=0)
    outside_window = models.BigIntegerField(default=0)
    tombstones = models.BigIntegerField(default=0)
    processed_with_error = models.BigIntegerField(default=0)
    input_bytes = models.BigIntegerField(default=0)
    polled = models.BigIntegerField(default=0)
    segments = models.BigIntegerField(default=0)
    size_bytes = models.BigIntegerField(default=0)
    publishes = models.BigIntegerField(default=0)
    # Of the unparseable: taken from the quarantine since, and counted by the replay's fence as they ended then.
    replayed = models.BigIntegerField(default=0)
    replay = models.BooleanField(default=False)  # what it publishes comes from the quarantine
    # What ended without a publish: of earlier epochs, and of this one as its heartbeats say.
    released_before = models.BigIntegerField(default=0)
    released_now = models.BigIntegerField(default=0)
    redundant_before = models.BigIntegerField(default=0)
    redundant_now = models.BigIntegerField(default=0)
    redelivered_before = models.BigIntegerField(default=0)
    redelivered_now = models.BigIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    first_publish_at = models.DateTimeField(null=True)
    last_publish_at = models.DateTimeField(null=True)
    # Rows published on the day (of UTC) of the last publish: for quotas.
    published_on = models.DateField(null=True)
    published_today = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task_id", "number"], name="one_fence_per_indexer")]
        indexes = [models.Index(fields=["published_on", "datasource"], name="fence_by_day")]


class Publish(models.Model):
    """A publish id that was seen: its answer, given again to a retry, or the mark that it never may commit."""

    id = models.UUIDField(primary_key=True)
    fence = models.ForeignKey(IndexerFence, on_delete=models.CASCADE, related_name="+")
    epoch = models.IntegerField()
    abandoned = models.BooleanField(default=False)
    segment_ids = models.JSONField(default=list)
    counters = models.JSONField(default=dict)  # what is not zero, for rates
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["fence", "created_at"], name="publish_by_fence")]


class Receipt(models.Model):
    """One partition's part of a publish: which offsets ended how, and in which segments. Partitioned by day."""

    id = models.BigAutoField(primary_key=True)
    publish_id = models.UUIDField()
    task_id = models.CharField(max_length=300)
    indexer = models.IntegerField()
    key = models.ForeignKey(ProgressKey, on_delete=models.CASCADE, related_name="+")
    hull = BigIntegerRangeField()
    # ``{"stored": [[start, end, segment index], ...], "unparseable": [[start, end], ...], ...}``; as ``further``, in
    # which other segments rows of the same records are: in ``stored`` each offset stands once.
    outcomes = models.JSONField()
    segment_ids = models.JSONField()
    replay = models.BooleanField(default=False)  # these offsets had ended as unparseable before
    created_at = models.DateTimeField()

    class Meta:
        indexes = [GistIndex(fields=["hull"], name="receipt_by_offset")]


class QuarantinedRecord(models.Model):
    """A poison record, kept whole before it was rejected."""

    class State(models.TextChoices):
        KEPT = "kept", "kept"
        REPLAYING = "replaying", "being replayed"
        STORED = "stored", "stored by a replay"
        THROWN_AWAY = "thrown_away", "thrown away by a replay"
        PRODUCED = "produced", "produced again"

    # None for a record of a file: which file, and where in it, says ``place``; the byte or row is the offset, too.
    source = models.ForeignKey(Source, on_delete=models.CASCADE, null=True, related_name="quarantined")
    place = models.TextField(default="", db_default="")
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="quarantined")
    task_id = models.CharField(max_length=300)
    partition = models.IntegerField()
    offset = models.BigIntegerField()
    timestamp_ms = models.BigIntegerField(null=True)
    delivery_count = models.IntegerField()
    reason = models.CharField(max_length=20)
    error = models.TextField()
    cause = models.CharField(
        max_length=FINGERPRINT_LENGTH, default="", db_default=""
    )  # fingerprint; see ``ingestion.specs.causes``
    key = models.BinaryField(null=True)
    payload = models.BinaryField(null=True)
    headers = models.BinaryField(default=b"[]")  # JSON, a list of [name, base64 or null]
    # Of a record of a file: whether the payload is only its beginning, and the line of the file that names the columns.
    cut = models.BooleanField(default=False, db_default=False)
    file_header = models.BinaryField(default=b"", db_default=b"")
    publish_id = models.UUIDField()
    state = models.CharField(max_length=12, choices=State.choices, default=State.KEPT)
    replay_id = models.CharField(max_length=300, blank=True)  # the task that holds it, or that ended it
    replays = models.IntegerField(default=0)  # attempts that came to an end
    ended_at = models.DateTimeField(null=True)  # when it left the state kept for good
    produced_partition = models.IntegerField(null=True)
    produced_offset = models.BigIntegerField(null=True)
    created_at = models.DateTimeField()

    objects = ConcealingQuerySet["QuarantinedRecord"].as_manager()
    concealed_for = ""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "partition", "offset"], name="a_record_is_quarantined_once")
        ]
        indexes = [
            models.Index(fields=["datasource", "-id"], name="quarantine_by_datasource"),
            models.Index(fields=["task_id", "-id"], name="quarantine_by_task"),
            models.Index(fields=["datasource", "cause", "-id"], name="quarantine_by_cause"),
            # A key may be longer than an entry of an index.
            models.Index("source", MD5("key"), name="quarantine_by_key"),
            models.Index(fields=["replay_id", "id"], name="quarantine_by_replay", condition=~models.Q(replay_id="")),
        ]

    def conceal(self, role: str) -> None:
        """All that may hold a value goes."""
        self.concealed_for, self.error, self.headers, self.file_header = role, mark(role), b"[]", b""
        self.key = self.payload = self.__dict__["payload_start"] = None


class FaultyRecord(models.Model):
    """A record that was stored although a field of it was no good: as many of a task as its report shows."""

    reason = "processed_with_error"
    place = ""  # of topics alone: what files have of these, their task's row keeps

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="faulty")
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="faulty")
    task_id = models.CharField(max_length=300)
    partition = models.IntegerField()
    offset = models.BigIntegerField()
    timestamp_ms = models.BigIntegerField(null=True)
    delivery_count = models.IntegerField()
    error = models.TextField()
    cause = models.CharField(max_length=FINGERPRINT_LENGTH, default="", db_default="")
    payload = models.BinaryField(null=True)  # its beginning
    payload_size = models.IntegerField(null=True)  # of the whole
    created_at = models.DateTimeField()

    objects = ConcealingQuerySet["FaultyRecord"].as_manager()
    concealed_for = ""

    class Meta:
        indexes = [
            models.Index(fields=["task_id", "-id"], name="faulty_by_task"),
            models.Index(fields=["task_id", "cause", "-id"], name="faulty_by_cause"),
        ]

    def conceal(self, role: str) -> None:
        """All that may hold a value goes."""
        self.concealed_for, self.error = role, mark(role)
        self.payload = self.__dict__["payload_start"] = None
