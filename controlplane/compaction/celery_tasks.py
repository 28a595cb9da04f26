"""What Celery is asked for: rounds of compaction.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task

from controlplane.compaction import jobs, rounds


@shared_task(name="controlplane.compaction.tasks.round")
def round() -> None:
    """Plan what is to be merged, and see to it that somebody does."""
    rounds.run()


@shared_task(name="controlplane.compaction.tasks.drop_old")
def drop_old() -> int:
    """Forget jobs that came to nothing long ago."""
    return jobs.drop_old()
