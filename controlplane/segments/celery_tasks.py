"""What Celery is asked for: upkeep of segments and of deep storage.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task
from celery.utils.log import get_task_logger
from django.conf import settings

from controlplane.segments import day_sums, orphans

CLEAN_UP_S = 200.0  # under the time limit of tasks; the next run goes on elsewhere
_log = get_task_logger(__name__)


@shared_task(name="controlplane.segments.tasks.sum_up_days")
def sum_up_days() -> int:
    """Sum up the days whose intervals have changed."""
    return day_sums.sum_up()


@shared_task(name="controlplane.segments.tasks.clean_up_orphans")
def clean_up_orphans() -> str:
    """Delete old files that no segment names."""
    summary = orphans.clean_up(grace=settings.ORPHAN_GRACE, seconds=CLEAN_UP_S).summary()
    _log.info("clean-up of deep storage: %s", summary)
    return summary
