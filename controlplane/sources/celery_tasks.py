"""What Celery is asked for: upkeep of events.

Messages name these functions, so the names stay wherever they are.
"""

from celery import shared_task
from django.conf import settings

from controlplane.sources import events


@shared_task(name="controlplane.sources.tasks.drop_old_events")
def drop_old_events() -> int:
    """Delete events of how ingestion went that have been kept for long enough."""
    return events.drop_old(settings.EVENT_RETENTION)
