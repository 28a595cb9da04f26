"""What Celery is asked for: upkeep of progress and receipts.

Messages name these functions, so the names stay wherever they are.
"""

from datetime import timedelta

from celery import shared_task
from celery.utils.log import get_task_logger
from django.conf import settings

from controlplane.segments import causes, days, folding, lag_store, old_events, orphans, quarantine, receipts

CLEAN_UP_S = 200.0  # under the time limit of tasks; the next run goes on elsewhere
FOLDED_LATE = timedelta(seconds=20)  # several rounds of ``fold``
_log = get_task_logger(__name__)


@shared_task(name="controlplane.segments.tasks.fold")
def fold() -> int:
    """Join settled neighbours where something was settled of late."""
    return folding.fold(since=FOLDED_LATE)


@shared_task(name="controlplane.segments.tasks.fold_everywhere")
def fold_everywhere() -> int:
    """Join settled neighbours that a fold has missed."""
    return folding.fold()


@shared_task(name="controlplane.segments.tasks.fold_causes")
def fold_causes() -> int:
    """Join what the quarantine's triggers have counted."""
    return causes.fold()


@shared_task(name="controlplane.segments.tasks.sum_up_days")
def sum_up_days() -> int:
    """Sum up the days whose intervals have changed."""
    return days.sum_up()


@shared_task(name="controlplane.segments.tasks.drop_old_lag")
def drop_old_lag() -> int:
    """Delete samples of lag that have been kept for long enough."""
    return lag_store.drop_old()


@shared_task(name="controlplane.segments.tasks.drop_old_events")
def drop_old_events() -> int:
    """Delete events of how ingestion went that have been kept for long enough."""
    return old_events.drop_old(settings.EVENT_RETENTION)


@shared_task(name="controlplane.segments.tasks.make_receipt_partitions")
def make_receipt_partitions() -> list[str]:
    """Make the coming week's receipt partitions."""
    return receipts.make_receipt_partitions()


@shared_task(name="controlplane.segments.tasks.purge_quarantine")
def purge_quarantine() -> int:
    """Delete what is too old, or too much."""
    return quarantine.purge_by_rules(retention=settings.QUARANTINE_RETENTION, most_bytes=settings.QUARANTINE_BYTES)


@shared_task(name="controlplane.segments.tasks.clean_up_orphans")
def clean_up_orphans() -> str:
    """Delete old files that no segment names."""
    said = orphans.clean_up(grace=settings.ORPHAN_GRACE, seconds=CLEAN_UP_S).summary()
    _log.info("clean-up of deep storage: %s", said)
    return said
