"""Celery tasks: upkeep of progress and receipts."""

from celery import shared_task

from controlplane.segments import services, settled


@shared_task
def fold() -> int:
    """Join settled neighbours."""
    return settled.fold()


@shared_task
def make_receipt_partitions() -> list[str]:
    """Make the coming week's receipt partitions."""
    return services.make_receipt_partitions()
