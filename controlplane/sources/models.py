"""Readers of topics, and what an operator must know about them."""

from __future__ import annotations

from django.db import models

from controlplane.datasources.masked_querysets import ConcealingQuerySet, hidden_note
from controlplane.datasources.models import Datasource
from ingestion.specs.inputs.sources import all_traits, progress_of
from ingestion.specs.source_traits import SHARE_GROUPS, Progress


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
    # Of a dead-letter topic whose records were imported, which nobody reads: the source whose spec decodes them.
    decoded_as = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    # From the observer, when it last looked: {partition: [log's start, where the reader begins, log's end]} of all
    # partitions of the topic, and how many offsets lie behind an open transaction.
    looked_at = models.DateTimeField(null=True)
    bounds = models.JSONField(default=dict)
    undecided = models.BigIntegerField(default=0)
    # All that Kafka held before it has ended; None until that was seen. ``marks``: see ``publishing.completeness``.
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


class SourceEvent(models.Model):
    """Something an operator must know about a source."""

    class Kind(models.TextChoices):
        TOPIC_RECREATED = "topic_recreated", "The topic was deleted and recreated"
        GAP = "gap", "Retention removed records before they were read"
        REPAIRED = "repaired", "Records that the broker had archived were read again"
        OFFSET_RESET = "offset_reset", "A stored offset was reset"
        PARTITIONS_ADDED = "partitions_added", "Partitions were added to the topic"
        PURGED = "purged", "A rule purged quarantined records"
        EARLY_DUPLICATE = "early_duplicate", "A record was already settled at its first delivery"
        TASK_FAILED = "task_failed", "A task failed"
        RESTARTED = "restarted", "An indexer was restarted"
        QUARANTINED = "quarantined", "Records were quarantined"
        REFUSED = "refused", "A publish was refused because of a record"
        FAILING = "failing", "Repeated failures"
        QUOTA = "quota", "A quota ended a manual task"
        WOKEN = "woken", "An idle supervisor reads again"

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="source_events")
    source = models.ForeignKey(Source, on_delete=models.CASCADE, null=True, related_name="events")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    alarm = models.BooleanField(default=False)  # data may be missing or someone must act
    detail = models.TextField()
    task_id = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # Of an alarm: when somebody said that they see to it, and who.
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)

    objects = ConcealingQuerySet["SourceEvent"].as_manager()
    concealed_for = ""

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["datasource", "kind"],
                name="event_unacknowledged",
                condition=models.Q(alarm=True, acknowledged_at=None),
            )
        ]

    @property
    def calls(self) -> bool:
        """An alarm that nobody has acknowledged."""
        return self.alarm and self.acknowledged_at is None

    def conceal(self, role: str) -> None:
        """What a task said may quote a value; what Headgate says by itself does not."""
        if self.kind in WRITTEN_BY_TASKS:
            self.concealed_for, self.detail = role, hidden_note(role)


WRITTEN_BY_TASKS = frozenset(
    {
        SourceEvent.Kind.TASK_FAILED,
        SourceEvent.Kind.RESTARTED,
        SourceEvent.Kind.QUARANTINED,
        SourceEvent.Kind.REFUSED,
        SourceEvent.Kind.FAILING,
    }
)


# How ingestion went, over and over; the other kinds say what became of records, and stay.
EXPIRING_KINDS = WRITTEN_BY_TASKS - {SourceEvent.Kind.REFUSED} | {SourceEvent.Kind.WOKEN, SourceEvent.Kind.QUOTA}
