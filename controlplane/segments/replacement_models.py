"""Which segments took the place of which."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from controlplane.datasources.models import Datasource


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
