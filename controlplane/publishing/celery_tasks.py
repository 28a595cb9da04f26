"""What Celery is asked for: upkeep of progress and receipts.

Messages in the queue carry these names: a renamed task does not run them.
"""

from datetime import timedelta

from celery import shared_task

from controlplane.publishing import folding, receipts

FOLD_WINDOW = timedelta(seconds=20)  # several rounds of ``fold``


@shared_task(name="controlplane.publishing.tasks.fold")
def fold() -> int:
    """Join settled neighbours where something was settled of late."""
    return folding.fold(since=FOLD_WINDOW)


@shared_task(name="controlplane.publishing.tasks.fold_everywhere")
def fold_everywhere() -> int:
    """Join settled neighbours that a fold has missed."""
    return folding.fold()


@shared_task(name="controlplane.publishing.tasks.make_receipt_partitions")
def make_receipt_partitions() -> list[str]:
    """Make the coming week's receipt partitions."""
    return receipts.make_receipt_partitions()
