"""What Celery is asked for: sums of records.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task

from controlplane.metrics import record_sums, usage


@shared_task(name="controlplane.metrics.tasks.sum_up_records")
def sum_up_records() -> int:
    """Add up what tasks have read that ended some minutes ago."""
    return record_sums.sum_up()


@shared_task(name="controlplane.metrics.tasks.fold_usage")
def fold_usage() -> None:
    """Add what teams have used since the last time."""
    usage.fold()
