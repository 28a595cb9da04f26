"""What was taken out of use, by whom and why."""

from __future__ import annotations

from django.db import models

from controlplane.datasources.models import Datasource


class Removal(models.Model):
    """Segments of one datasource that somebody, or a rule, has marked unused."""

    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="removals")
    by = models.CharField(max_length=200)  # the user's name, or the rule's
    what = models.CharField(max_length=500)  # was asked for, in words
    # Of what it marked; of that some may be in use again since.
    segments = models.BigIntegerField(default=0)
    rows = models.BigIntegerField(default=0)
    size_bytes = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["datasource", "-id"], name="removal_by_datasource")]

    @property
    def sentence(self) -> str:
        """Who did it and when, for people: it goes on after 'removed'."""
        return f"by {self.by} at {self.created_at:%Y-%m-%d %H:%M:%S} UTC ({self.what})"


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
