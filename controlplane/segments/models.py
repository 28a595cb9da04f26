"""Segments, their intervals, columns and removals.

``task_id`` is text, not a key: tasks know segments, not the other way round. Intervals are summed up by day, so that a
million intervals are drawn and listed as soon as a thousand.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GistIndex
from django.db import models

from controlplane.datasources.masked_querysets import ConcealingQuerySet
from controlplane.datasources.models import Datasource
from ingestion.specs.messages import protocol


class SegmentSchema(models.Model):
    """The columns of segments in their order: ``{"name", "type"}`` of each."""

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="schemas", db_index=False)
    fingerprint = models.CharField(max_length=64)
    columns = models.JSONField()
    # Whether they also tell the first and last record of each row, in columns that are shown to nobody.
    extents = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["datasource", "fingerprint"], name="one_schema_per_fingerprint")]

    @classmethod
    def of(cls, datasource: Datasource, columns: list[dict[str, str]], extents: bool = False) -> SegmentSchema:
        """The schema with these columns; made if there is none."""
        defaults = {"columns": columns, "extents": extents}
        known_by = fingerprint(columns, extents)
        return cls.objects.get_or_create(datasource=datasource, fingerprint=known_by, defaults=defaults)[0]


def columns_json(columns: Iterable[protocol.Column]) -> list[dict[str, str]]:
    """What is stored of them."""
    return [{"name": c.name, "type": c.type} for c in columns]


def fingerprint(columns: Iterable[dict[str, str]], extents: bool = False) -> str:
    """SHA-256 of names and types in their order, and of ``extents`` if it has them, in hexadecimal digits."""
    pairs = [[c["name"], c["type"]] for c in columns]
    return hashlib.sha256(json.dumps([*pairs, ["extents"]] if extents else pairs).encode()).hexdigest()


class Removal(models.Model):
    """Segments of one datasource that somebody, or a rule, has marked unused."""

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="removals")
    by = models.CharField(max_length=200)  # the user's name, or the rule's
    what = models.CharField(max_length=500)  # was asked for, in words
    # Of what it marked; of that some may be in use again since.
    segments = models.BigIntegerField(default=0)
    rows = models.BigIntegerField(default=0)
    size_bytes = models.BigIntegerField(default=0)
    # A rewind has read their records again, or they are those of an undone one: used again, they would double rows.
    rewound = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["datasource", "-id"], name="removal_by_datasource")]

    @property
    def sentence(self) -> str:
        """Who did it and when, for people: it goes on after 'removed'."""
        return f"by {self.by} at {self.created_at:%Y-%m-%d %H:%M:%S} UTC ({self.what})"


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
    leased_until: datetime | None  # of those that come from ``snapshot_leases.with_leases``

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


class KilledSegment(models.Model):
    """What is left of a segment whose file was deleted: enough to say what became of its rows."""

    id = models.UUIDField(primary_key=True)  # the segment's
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="+", db_index=False)
    rows = models.BigIntegerField()
    size_bytes = models.BigIntegerField()
    min_time = models.DateTimeField()
    max_time = models.DateTimeField()
    created_at = models.DateTimeField()
    unused_at = models.DateTimeField()
    # Either is there: who holds its rows since, or who removed them.
    replaced_by = models.UUIDField(null=True)
    removal = models.ForeignKey(
        Removal, on_delete=models.DO_NOTHING, null=True, related_name="+", db_index=False, db_constraint=False
    )
    killed_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["datasource", "unused_at"], name="killed_by_unused_at")]


class HeldFile(models.Model):
    """A file that a publish has brought which is not done: no orphan, although no segment names it yet."""

    path = models.CharField(max_length=1000)
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="+", db_index=False)
    holder = models.UUIDField()  # the publish

    class Meta:
        constraints = [models.UniqueConstraint(fields=["path"], name="one_holder_per_path")]
        indexes = [models.Index(fields=["holder"], name="held_file_by_holder")]


class Replacement(models.Model):
    """Segments of one interval that became unused, and those that hold their rows since: in one transaction."""

    id = models.UUIDField(primary_key=True)  # the replace's own: sent again, it is answered by it
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="replacements")
    interval_start = models.DateTimeField()
    interval_end = models.DateTimeField()
    task_id = models.CharField(max_length=300)  # who did it
    taken = ArrayField(models.UUIDField())
    made = ArrayField(models.UUIDField())
    rows_before = models.BigIntegerField()
    rows_after = models.BigIntegerField()
    bytes_before = models.BigIntegerField()
    bytes_after = models.BigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["datasource", "-created_at"], name="replacement_by_time"),
            models.Index(fields=["task_id"], name="replacement_by_task"),
        ]


class Interval(models.Model):
    """A datasource's interval: its current version and the next partition number, handed out under a row lock.

    Under the same lock it sums the interval's used segments, so that lists and the timeline need not: a datasource has
    a million segments sooner than a hundred thousand intervals. ``revision`` grows under it as well, with every change
    of which segments are in use: what is made of an interval's segments is true as long as its revision is the same.
    """

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="intervals", db_index=False)
    start = models.DateTimeField()
    end = models.DateTimeField()
    version = models.CharField(max_length=30)
    next_partition = models.IntegerField(default=0)
    segments = models.BigIntegerField(default=0)
    rows = models.BigIntegerField(default=0)
    size_bytes = models.BigIntegerField(default=0)
    min_time = models.DateTimeField(null=True)
    max_time = models.DateTimeField(null=True)
    revision = models.BigIntegerField(default=0, db_default=0)
    # By what one task has dealt out all its rows (``specs.schema.partitions.effect_of``), at which revision: true
    # as long as that is the interval's.
    partitioned_by = models.TextField(default="", db_default="")
    partitioned_revision = models.BigIntegerField(default=-1, db_default=-1)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["datasource", "start", "end"], name="one_row_per_interval")]
        # By time span, whatever the lengths of intervals: see ``selectors.planning``.
        indexes = [GistIndex(models.Func("start", "end", function="tstzrange"), name="interval_by_span")]


class Snapshot(models.Model):
    """The segments of a datasource that were in use at one moment, as readers of the catalog were given them.

    By time it has those that were created by ``created_until`` and, if they are unused now, are so since a time after
    ``unused_after``. The files of all of them stay until ``leased_until``.
    """

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="snapshots", db_index=False)
    number = models.BigIntegerField()  # from 1 up, in its datasource
    changed_at = models.DateTimeField()  # since when these are in use; not before that of the snapshot before
    created_until = models.DateTimeField()
    unused_after = models.DateTimeField()
    leased_until = models.DateTimeField()
    last_column = models.IntegerField()  # the highest id of a column at that moment
    root = models.CharField(max_length=1000)  # deep storage's address, which its files have within
    path = models.CharField(max_length=1000)  # of the list of its manifests
    segments = models.BigIntegerField()
    rows = models.BigIntegerField()
    size_bytes = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["datasource", "number"], name="one_snapshot_per_number")]


class Manifest(models.Model):
    """A file that lists the segments in use of one interval; of all snapshots from the first to the last."""

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="+", db_index=False)
    interval = models.ForeignKey(Interval, on_delete=models.CASCADE, related_name="+", db_index=False)
    revision = models.BigIntegerField()  # the interval's
    first_snapshot = models.BigIntegerField()
    last_snapshot = models.BigIntegerField(null=True)  # None: it is true still, as far as is known
    changed_at = models.DateTimeField()  # when the last of its segments came into use
    root = models.CharField(max_length=1000)  # deep storage's address, which it has within
    path = models.CharField(max_length=1000)
    length = models.BigIntegerField()
    segments = models.BigIntegerField()
    rows = models.BigIntegerField()
    size_bytes = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["datasource", "interval"],
                condition=models.Q(last_snapshot=None),
                name="one_manifest_per_interval",
            ),
            models.UniqueConstraint(fields=["path"], name="one_manifest_per_path"),
        ]
        indexes = [
            models.Index(fields=["datasource", "last_snapshot"], name="manifest_by_last"),
            models.Index(fields=["interval"], name="manifest_by_interval"),
        ]


class Spans(models.Field):
    """Ranges of time that do not touch, as PostgreSQL keeps them. For SQL alone."""

    def db_type(self, connection: Any) -> str:
        return "tstzmultirange"


class IntervalDay(models.Model):
    """The intervals that start on one day of UTC and have segments in use, summed.

    True unless an ``IntervalChange`` names the day: ``day_sums.sum_up`` makes it so again. ``DaySum`` is always true.
    """

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateTimeField()
    intervals = models.BigIntegerField()
    segments = models.BigIntegerField()
    rows = models.BigIntegerField()
    size_bytes = models.BigIntegerField()
    start = models.DateTimeField()
    end = models.DateTimeField()  # of an interval that is longer it lies after the day
    min_time = models.DateTimeField(null=True)
    max_time = models.DateTimeField(null=True)
    lowest_version = models.CharField(max_length=30)
    highest_version = models.CharField(max_length=30)
    covered = Spans()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["datasource", "day"], name="one_sum_a_day")]


class IntervalChange(models.Model):
    """An interval of this day has changed since the day was summed up. Several rows say no more than one.

    Triggers on the intervals' table add a row for each day of a statement, so that no publish waits for another.
    """

    # Not checked: when a datasource is deleted, its intervals' trigger writes here once more.
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    day = models.DateTimeField()


class DaySum(models.Model):
    """A day's intervals as they are now. A view: what is summed up where that is true, the rest from the intervals."""

    datasource = models.ForeignKey(Datasource, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False)
    day = models.DateTimeField()
    intervals = models.BigIntegerField()
    segments = models.BigIntegerField()
    rows = models.BigIntegerField()
    size_bytes = models.BigIntegerField()
    start = models.DateTimeField()
    end = models.DateTimeField()
    min_time = models.DateTimeField(null=True)
    max_time = models.DateTimeField(null=True)
    lowest_version = models.CharField(max_length=30)
    highest_version = models.CharField(max_length=30)

    class Meta:
        managed = False
        db_table = "segments_daysum"


class Column(models.Model):
    """Nothing deletes one: its id would be another's then. Rows are written by ``columns`` alone."""

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.TextField()
    type = models.CharField(max_length=100)
    fingerprint = models.CharField(max_length=64)  # of name and type: a name may be longer than an entry of an index
    number = models.IntegerField()  # the id in files
    element = models.IntegerField(null=True)  # that of a list's values

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["datasource", "fingerprint"], name="one_id_per_column"),
            models.UniqueConstraint(fields=["datasource", "number"], name="one_column_per_id"),
        ]
