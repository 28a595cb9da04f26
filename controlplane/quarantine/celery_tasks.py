"""What Celery is asked for: upkeep of the quarantine.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task
from django.conf import settings

from controlplane.quarantine import cause_sums, services


@shared_task(name="controlplane.quarantine.tasks.fold_causes")
def fold_causes() -> int:
    """Join what the quarantine's triggers have counted."""
    return cause_sums.fold_sums()


@shared_task(name="controlplane.quarantine.tasks.purge_quarantine")
def purge_quarantine() -> int:
    """Delete what is too old, or too much."""
    return services.purge_by_rules(retention=settings.QUARANTINE_RETENTION, most_bytes=settings.QUARANTINE_BYTES)
