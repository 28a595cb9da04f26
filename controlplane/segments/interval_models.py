"""Intervals, and their sums by day, so that a million intervals are drawn and listed as soon as a thousand."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.indexes import GistIndex
from django.db import models

from controlplane.datasources.models import Datasource


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
    # By what one task has dealt out all its rows (``ingestion.specs.partitions.effect_of``), at which revision: true
    # as long as that is the interval's.
    partitioned_by = models.TextField(default="", db_default="")
    partitioned_revision = models.BigIntegerField(default=-1, db_default=-1)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["datasource", "start", "end"], name="one_row_per_interval")]
        # By time span, whatever the lengths of intervals: see ``selectors.planning``.
        indexes = [GistIndex(models.Func("start", "end", function="tstzrange"), name="interval_by_span")]


class Spans(models.Field):
    """Ranges of time that do not touch, as PostgreSQL keeps them. For SQL alone."""

    def db_type(self, connection: Any) -> str:
        return "tstzmultirange"


class IntervalDay(models.Model):
    """The intervals that start on one day of UTC and have segments in use, summed.

    True unless an ``IntervalChange`` names the day: ``days.sum_up`` makes it so again. ``DaySum`` is always true.
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
