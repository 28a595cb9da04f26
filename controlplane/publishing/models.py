"""What one publish transaction writes beside segments: progress, fences, receipts.

``task_id`` is text, not a key: tasks know publishes, not the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, BigIntegerRangeField, RangeOperators
from django.contrib.postgres.indexes import GistIndex
from django.db import models

from controlplane.datasources.models import Datasource
from controlplane.sources.models import Source
from ingestion.specs import offsets

# A progress key stands in the high bits of a range's bounds, the offset in the low ones: the exclusion constraint
# then needs one range column only (btree_gist is not always there). 2^44 offsets a partition, 2^19 keys.
OFFSET_BITS = 44
MAX_OFFSET = (1 << OFFSET_BITS) - 1
MAX_PARTITION = 2**31 - 1


class ProgressKey(models.Model):
    """The small number that stands for (cluster, group, topic id, partition) in settled ranges."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="keys")
    partition = models.IntegerField()
    # Of a source with stored offsets: where it goes on, and how often the partition has changed hands.
    next_offset = models.BigIntegerField(null=True)
    generation = models.IntegerField(default=0)
    # Where its reader began, if that is known: what lies below was never its to read, though a bounded read may have.
    began_at = models.BigIntegerField(null=True)
    attempts = models.IntegerField(default=0)  # processes that began there since something of it was published
    # Of a share group that begins at a time: where that is.
    begin_offset = models.BigIntegerField(null=True)
    # From the observer: the log's end and start when last seen, and when.
    end_offset = models.BigIntegerField(null=True)
    log_start_offset = models.BigIntegerField(null=True)
    observed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "partition"], name="one_key_per_partition")]


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


class IndexerFence(models.Model):
    """An indexer as the publish transaction knows it: the fence (its current epoch) and its totals.

    A task without indexers has one, number 0. Of a task that merges it has totals alone.
    """

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
    bounded = models.BooleanField(default=False, db_default=False)  # it reads given offsets, and moves no stored offset
    merges = models.BooleanField(default=False, db_default=False)  # its totals count rows of segments, and no records
    rewinds = models.BooleanField(default=False, db_default=False)  # it reads again what is settled: a part of a rewind
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
    summed = models.BooleanField(default=False, db_default=False)  # its totals are in a sum that is kept

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task_id", "number"], name="one_fence_per_indexer")]
        indexes = [
            models.Index(fields=["published_on", "datasource"], name="fence_by_day"),
            models.Index(
                fields=["datasource"], name="fence_not_summed", condition=models.Q(summed=False, merges=False)
            ),
        ]


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
    replay = models.BooleanField(default=False)  # these offsets had ended before: by a replay, or by a rewind
    created_at = models.DateTimeField()

    class Meta:
        indexes = [GistIndex(fields=["hull"], name="receipt_by_offset")]


class Rewind(models.Model):
    """Records that somebody has read again, so that what they give now replaces the segments that they were in."""

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="rewinds")
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="rewinds")
    # By which they are decoded: canonical, its secrets sealed; and whose spec that is.
    spec = models.JSONField()
    secrets = models.TextField(blank=True)
    supervisor_id = models.CharField(max_length=200, blank=True)
    spec_version = models.IntegerField(null=True)
    choice = models.JSONField()  # what was asked for
    dry_run = models.BooleanField(default=False, db_default=False)  # its parts are read, and nothing is replaced
    by = models.CharField(max_length=150)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["datasource", "-id"], name="rewind_by_datasource")]


class RewindPart(models.Model):
    """The segments of a rewind that are replaced in one transaction: those of one interval, if no record needs more.

    Its state is what makes it once: a publish locks its row, and must find it waiting.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        DONE = "done", "done"
        READ = "read", "read"  # of a dry run
        FAILED = "failed", "failed"
        CANCELLED = "cancelled", "cancelled"
        UNDONE = "undone", "undone"

    rewind = models.ForeignKey(Rewind, on_delete=models.CASCADE, related_name="parts")
    number = models.IntegerField()
    # Between which times the replaced segments' intervals lie; None where there are none.
    interval_start = models.DateTimeField(null=True)
    interval_end = models.DateTimeField(null=True)
    taken = ArrayField(models.UUIDField())
    made = ArrayField(models.UUIDField(), default=list)
    ranges = models.JSONField()  # ``[partition, start, end]`` of what is read with the rewind's spec, of its source
    # What else is read, as ``{"source": id, "supervisor": id, "version": number, "ranges": [...]}``: of other topics,
    # and with other versions of the spec. Without a version: with the rewind's.
    others = models.JSONField(default=list)
    reading = models.IntegerField(default=0)  # which of ``readings`` the newest task reads
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    reason = models.TextField(blank=True)  # why it failed, or is tried again
    attempts = models.IntegerField(default=0)
    task_id = models.CharField(max_length=300, blank=True)  # the newest that reads it
    publish_ids = ArrayField(models.UUIDField(), default=list)
    removal = models.BigIntegerField(null=True)  # that of the replaced segments
    rows_before = models.BigIntegerField(default=0)
    rows_after = models.BigIntegerField(default=0)
    before = models.JSONField(default=dict)  # what its records had been counted as, as ``Counts``
    after = models.JSONField(default=dict)  # what its publish has counted
    retired = models.JSONField(default=dict)  # which of the two no longer counts
    # Ids of records that left the quarantine (``out``), that did not (``again``), and that came there (``put``).
    held = models.JSONField(default=dict)
    changes = models.JSONField(default=dict)  # of a dry run: see ``rewind_changes``
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["rewind", "number"], name="one_part_per_number")]
        indexes = [
            models.Index(fields=["task_id"], name="rewind_part_by_task"),
            models.Index(fields=["rewind"], name="rewind_part_waiting", condition=models.Q(state="waiting")),
        ]

    @property
    def wanted(self) -> dict[int, list[offsets.Range]]:
        """``ranges`` by partition."""
        return ranges_by_partition(self.ranges)

    @property
    def readings(self) -> list[dict[str, Any]]:
        """All that is read, each by a task of its own, in the form of ``others``."""
        return [{"source": self.rewind.source_id, "version": None, "ranges": self.ranges}, *self.others]

    @property
    def records(self) -> int:
        """How many are read."""
        return sum(
            end - start for ranges in (self.ranges, *(o["ranges"] for o in self.others)) for _, start, end in ranges
        )


class RewindPiece(models.Model):
    """A publish of a part that nobody sees yet: the last one makes all of the part's visible, in its transaction.

    ``HeldFile`` has its files.
    """

    id = models.UUIDField(primary_key=True)  # the publish's
    part = models.ForeignKey(RewindPart, on_delete=models.CASCADE, related_name="pieces")
    fence = models.ForeignKey(IndexerFence, on_delete=models.CASCADE, related_name="+")
    epoch = models.IntegerField()
    reading = models.IntegerField(default=0)  # of the part's: which it belongs to
    ranges = models.JSONField()  # ``[partition, start, end]`` of what it has read
    request = models.TextField()  # its ``PublishRequest``; of a dry run without files and records
    rows = models.BigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["created_at", "id"]

    @property
    def read(self) -> dict[int, list[offsets.Range]]:
        """``ranges`` by partition."""
        return ranges_by_partition(self.ranges)


def ranges_by_partition(ranges: Iterable[tuple[int, int, int]]) -> dict[int, list[offsets.Range]]:
    """Of ``[partition, start, end]``."""
    found: dict[int, list[offsets.Range]] = {}
    for partition, start, end in ranges:
        found.setdefault(partition, []).append((start, end))
    return {p: offsets.merged(some) for p, some in found.items()}
