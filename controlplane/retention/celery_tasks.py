"""What Celery is asked for: to carry out rules, and to delete what is not in use, or nobody's.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task
from celery.utils.log import get_task_logger

from controlplane.retention import datasource_deletion, rule_runner
from controlplane.segments import killing

KILL_S = 200.0  # under the time limit of tasks; the next run goes on
_log = get_task_logger(__name__)


@shared_task(name="controlplane.retention.tasks.kill")
def kill() -> str:
    """Delete the files of segments that have been unused for long enough, and their rows."""
    summary = killing.run(seconds=KILL_S).summary()
    _log.info("retention: %s", summary)
    return summary


@shared_task(name="controlplane.retention.tasks.apply_rules")
def apply_rules() -> int:
    """Take out of use what the rules in force say."""
    return rule_runner.run()


@shared_task(name="controlplane.retention.tasks.clear")
def clear() -> int:
    """Go on with datasources that were deleted, and have segments left."""
    return datasource_deletion.continue_deleting(KILL_S)
