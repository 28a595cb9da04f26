"""What Celery is asked for: large snapshots, and the end of those that readers are not given any more.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task

from controlplane.catalog import building, listing
from controlplane.datasources.models import Datasource


@shared_task(name="controlplane.catalog.tasks.build")
def build(datasource: int) -> bool:
    """Build the next snapshot of a datasource, unless it was deleted meanwhile; whether it is there."""
    present = Datasource.objects.present().filter(pk=datasource).first()
    outcome = None if present is None else building.build(present, building.LONGEST_S)
    if outcome is building.Outcome.UNFINISHED:
        build.delay(datasource)
    return outcome is building.Outcome.BUILT


@shared_task(name="controlplane.catalog.tasks.expire")
def expire() -> int:
    """Delete snapshots that readers are not given any more."""
    return listing.expire()
