"""Which columns segments have: kept once for all segments that have the same, hidden ones included."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from django.db import models

from controlplane.datasources.models import Datasource
from ingestion.specs.protocol import Column


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


def plain(columns: Iterable[Column]) -> list[dict[str, str]]:
    """What is stored of them."""
    return [{"name": c.name, "type": c.type} for c in columns]


def fingerprint(columns: Iterable[dict[str, str]], extents: bool = False) -> str:
    """SHA-256 of names and types in their order, and of ``extents`` if it has them, in hexadecimal digits."""
    told = [[c["name"], c["type"]] for c in columns]
    return hashlib.sha256(json.dumps([*told, ["extents"]] if extents else told).encode()).hexdigest()
