"""Tasks about segments: their documents, and who wrote what they are about."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.utils import timezone

from controlplane.sources.models import Source
from controlplane.tasks.models import Task
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.django_cast import spec_for


def compact(**changes: Any) -> dict[str, Any]:
    """Druid's, of June 2025."""
    interval = {"type": "interval", "interval": "2025-06-01/2025-07-01"}
    return {
        "type": "compact",
        "dataSource": "flights",
        "ioConfig": {"type": "compact", "inputSpec": interval},
    } | changes


def kill(**changes: Any) -> dict[str, Any]:
    """Druid's, of June 2025."""
    return {"type": "kill", "dataSource": "flights", "interval": "2025-06-01/2025-07-01"} | changes


def a_writer(source: Source, name: str, **schema: Any) -> None:
    """A task that has ended, by whose schema segments were written."""
    spec = spec_for("flights", groupId="group")
    spec["dataSchema"] |= schema
    values = {"kind": "share_group", "datasource": source.datasource, "created_at": timezone.now()}
    Task.objects.create(pk=name, spec=parse_task_spec(spec).canonical(), status="SUCCESS", **values)


def statuses(clients: dict[str, Client], document: dict[str, Any]) -> dict[str, int]:
    """What Druid's address answers each, one after the other."""
    roles = ("owner", "operator", "viewer", "outsider")
    path = "/druid/indexer/v1/task"
    return {r: clients[r].post(path, document, content_type="application/json").status_code for r in roles}
