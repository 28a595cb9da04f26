"""What Celery is asked for: upkeep of events.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task
from django.conf import settings

from controlplane.sources import events


@shared_task(name="controlplane.sources.tasks.drop_old_events")
def drop_old_events() -> int:
    """Delete events of how ingestion went that have been kept for long enough."""
    return events.drop_old(settings.EVENT_RETENTION)
