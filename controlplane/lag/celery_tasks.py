"""What Celery is asked for: upkeep of the series of lag.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task

from controlplane.lag import samples


@shared_task(name="controlplane.lag.tasks.drop_old_lag")
def drop_old_lag() -> int:
    """Delete samples of lag that have been kept for long enough."""
    return samples.drop_old()
