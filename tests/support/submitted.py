"""A task whose driver a cluster has, for tests of what the rounds make of the cluster's answers."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from controlplane.tasks.models import ClusterDriver, Status, Task
from tests.support.django_cast import Cast


def submitted(cast: Cast, driver_id: str) -> Task:
    """The cast's: its driver was submitted a minute ago, and has said nothing."""
    ago = timezone.now() - timedelta(seconds=60)
    fields = {"status": Status.PENDING, "launched_at": ago, "last_heartbeat_at": None, "host": "ingest-1"}
    Task.objects.filter(pk=cast.task.pk).update(**fields)
    ClusterDriver.objects.create(pk=cast.task.pk, driver_id=driver_id, submitted_at=ago)
    return Task.objects.get(pk=cast.task.pk)
