"""What an operator must know about a datasource's sources, and who has seen to it."""

from __future__ import annotations

from django.db import models

from controlplane.datasources.concealing import ConcealingQuerySet, mark
from controlplane.datasources.models import Datasource


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
    source = models.ForeignKey("segments.Source", on_delete=models.CASCADE, null=True, related_name="events")
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

    @property
    def calls(self) -> bool:
        """An alarm that nobody has acknowledged."""
        return self.alarm and self.acknowledged_at is None

    def conceal(self, role: str) -> None:
        """What a task said may quote a value; what Headgate says by itself does not."""
        if self.kind in SAID_BY_TASKS:
            self.concealed_for, self.detail = role, mark(role)


SAID_BY_TASKS = frozenset(
    {
        SourceEvent.Kind.TASK_FAILED,
        SourceEvent.Kind.RESTARTED,
        SourceEvent.Kind.QUARANTINED,
        SourceEvent.Kind.REFUSED,
        SourceEvent.Kind.FAILING,
    }
)
# How ingestion went, over and over; the other kinds say what became of records, and stay.
PASSING = SAID_BY_TASKS - {SourceEvent.Kind.REFUSED} | {SourceEvent.Kind.WOKEN, SourceEvent.Kind.QUOTA}
