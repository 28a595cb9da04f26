"""What Celery is asked for: large snapshots, and the end of those that readers are not given any more.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task

from controlplane.catalog import building, listing
from controlplane.datasources.models import Datasource


@shared_task(name="controlplane.catalog.tasks.build")
def build(datasource: int) -> bool:
    """Build the next snapshot of a datasource."""
    return building.build(Datasource.objects.get(pk=datasource))


@shared_task(name="controlplane.catalog.tasks.expire")
def expire() -> int:
    """Delete snapshots that readers are not given any more."""
    return listing.expire()
