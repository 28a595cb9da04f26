"""The columns that a datasource's files have had: by name and type, each with an id of its own for ever."""

from __future__ import annotations

from django.db import models

from controlplane.datasources.models import Datasource


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
