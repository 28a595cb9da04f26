"""What a team may use at most."""

from __future__ import annotations

from django.db import models

from controlplane.teams.models import Team


class Quota(models.Model):
    """A team's limits; None for none. A team without a row has no limit."""

    class UsedUp(models.TextChoices):
        """Of which limit nothing is left: no task of the team's reads on."""

        NO = "", "nothing"
        ROWS = "rows_a_day", "rows a day"
        BYTES = "stored_bytes", "stored bytes"

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="quota")
    indexers = models.PositiveIntegerField(null=True)  # at once
    rows_a_day = models.PositiveBigIntegerField(null=True)  # a day of UTC
    stored_bytes = models.PositiveBigIntegerField(null=True)
    # Of each query in SQL on the team's datasources, and of those at a time.
    sql_seconds = models.PositiveIntegerField(null=True)
    sql_mebibytes = models.PositiveIntegerField(null=True)
    sql_rows = models.PositiveIntegerField(null=True)
    sql_queries = models.PositiveIntegerField(null=True)
    # What the last look found, for all who ask: whether they read on must not differ from what they are told.
    used_up = models.CharField(max_length=12, choices=UsedUp.choices, default="", blank=True)
    used_up_since = models.DateTimeField(null=True)
