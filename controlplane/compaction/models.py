"""Jobs of compaction, what users have set of it, and its applications."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from controlplane.datasources.masked_querysets import ConcealingQuerySet, hidden_note
from controlplane.datasources.models import Datasource
from controlplane.tasks.models import Resident, Task


class State(models.TextChoices):
    """What has become of a job. REFUSED: its segments were no longer those in use; it is planned anew."""

    WAITING = "waiting", "waiting for a slot"
    RUNNING = "running", "runs"
    DONE = "done", "done"
    REFUSED = "refused", "refused: its segments changed"
    FAILED = "failed", "failed"


OPEN = (State.WAITING, State.RUNNING)


class Job(models.Model):
    """Some segments of one interval that become fewer."""

    id = models.CharField(primary_key=True, max_length=300)
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="compactions")
    interval_start = models.DateTimeField()
    interval_end = models.DateTimeField()
    tier = models.IntegerField()
    # That asked for it; None where it was due by itself.
    task = models.ForeignKey(Task, on_delete=models.SET_NULL, null=True, related_name="merges")
    priority = models.IntegerField(default=0)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    # Who runs it: its attempts are numbered, and only the newest may replace anything.
    application = models.ForeignKey(Resident, on_delete=models.SET_NULL, null=True, related_name="jobs")
    attempt = models.IntegerField(default=0)
    inputs = ArrayField(models.UUIDField())
    data_schema = models.JSONField()  # of those who wrote the segments
    index_spec = models.JSONField(default=dict)
    rollup = models.BooleanField()
    max_rows_per_segment = models.IntegerField()
    # Of one that writes its interval anew: as which batch task, and how that deals out the rows.
    anew = models.JSONField(null=True)
    partitioned_by = models.TextField(blank=True, default="", db_default="")
    rows_before = models.BigIntegerField()
    bytes_before = models.BigIntegerField()
    rows_after = models.BigIntegerField(null=True)
    bytes_after = models.BigIntegerField(null=True)
    segments_after = models.IntegerField(null=True)
    error = models.TextField(blank=True)
    permanent = models.BooleanField(default=False)  # tried again unchanged, it would fail again
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = ConcealingQuerySet["Job"].as_manager()
    concealed_for = ""

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["datasource", "interval_start", "interval_end", "tier"],
                condition=models.Q(state__in=OPEN, task=None),
                name="one_open_job_per_interval_and_tier",
            )
        ]
        indexes = [
            models.Index(fields=["datasource", "-created_at", "-id"], name="job_by_datasource"),
            models.Index(fields=["state", "-priority", "created_at"], name="job_by_state"),
        ]

    def __str__(self) -> str:
        return self.id

    def conceal(self, role: str) -> None:
        """Its error may name a file."""
        self.concealed_for = role
        self.error = self.error and hidden_note(role)


class Rewrite(models.Model):
    """A ``compact`` task that nobody has asked for: it writes an interval anew, by the partitions of a config."""

    task = models.OneToOneField(Task, on_delete=models.CASCADE, primary_key=True, related_name="rewrite")
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="rewrites")
    interval_start = models.DateTimeField()
    interval_end = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["datasource", "interval_start", "interval_end"], name="rewrite_by_interval"),
        ]


class Configured(models.Model):
    """What was set of a datasource's automatic compaction. Without a row it is on, as nobody has said anything else."""

    datasource = models.OneToOneField(Datasource, on_delete=models.CASCADE, related_name="compaction")
    enabled = models.BooleanField(default=True)
    suspended = models.BooleanField(default=False, db_default=False)  # then it is not enabled, and may be once more
    document = models.JSONField()  # Druid's compaction config, as it was given
    updated_at = models.DateTimeField()


class ConfigChange(models.Model):
    """One change of what was set."""

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="compaction_changes")
    document = models.JSONField(null=True)  # None: it was turned off
    suspended = models.BooleanField(default=False, db_default=False)
    author = models.CharField(max_length=150)
    comment = models.CharField(max_length=500, blank=True)
    address = models.CharField(max_length=45, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
