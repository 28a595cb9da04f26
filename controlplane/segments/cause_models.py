"""How many records are in quarantine for what cause: sums that triggers keep, and the view that adds them up."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import models

from controlplane.datasources.models import Datasource
from ingestion.specs.causes import FINGERPRINT_LENGTH


class CauseSum(models.Model):
    """How many records of a datasource are in quarantine for a cause since an hour; several rows add up.

    Triggers on the records' table add a row for each statement, so that no writer waits for another; ``causes.fold``
    joins them. Hours of long ago become one, ``LONG_AGO``.
    """

    LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

    # Not checked: when a datasource is deleted, its records' trigger writes here once more.
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    cause = models.CharField(max_length=FINGERPRINT_LENGTH)
    reason = models.CharField(max_length=20)
    hour = models.DateTimeField()
    records = models.BigIntegerField()  # whatever their state
    kept = models.BigIntegerField()  # those that nothing has been done with
    # Of what was added: when they were quarantined. None where something was only taken away.
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["datasource", "cause"], name="cause_sum")]


class QuarantineCause(models.Model):
    """A cause of records in a datasource's quarantine. A view: its id is that of one of its sums, and changes."""

    datasource = models.ForeignKey(Datasource, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False)
    cause = models.CharField(max_length=FINGERPRINT_LENGTH)
    reason = models.CharField(max_length=20)
    records = models.BigIntegerField()  # whatever their state
    kept = models.BigIntegerField()  # those that nothing has been done with
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "segments_quarantinecause"
