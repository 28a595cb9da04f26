"""What Celery is asked for: the supervisors' rounds and the repair of holes.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task

from controlplane.supervisors import dead_letter_rounds, lag, repairs, rewind_rounds, run, topic_checks, unread_times

_EXPIRES_S = 5  # a later round has sent it again by then


@shared_task(name="controlplane.supervisors.tasks.run_all")
def run_all() -> None:
    """A round over all supervisors; then a message for each job that has something to do.

    A message costs 20 to 60 ms of a processor, and these jobs mostly have nothing to do. Beat sends them less often.
    """
    run.run_all()
    for job, has_work in (
        (iterate, topic_checks.due_supervisors().exists),
        (import_dead_letters, dead_letter_rounds.running_imports().exists),
        (rewind, rewind_rounds.open_rewinds().exists),
    ):
        if has_work():
            job.apply_async(expires=_EXPIRES_S)


@shared_task(name="controlplane.supervisors.tasks.run_one")
def run_one(supervisor_id: str) -> None:
    """A round at once, after a change."""
    run.run_now(supervisor_id)


@shared_task(name="controlplane.supervisors.tasks.iterate")
def iterate() -> None:
    """Ask Kafka for the supervisors whose period is over."""
    run.iterate()


@shared_task(name="controlplane.supervisors.tasks.repair")
def repair() -> list[str]:
    """Start repair tasks where there are old holes."""
    return repairs.start_repairs()


@shared_task(name="controlplane.supervisors.tasks.rewind")
def rewind() -> list[str]:
    """Start the next tasks of rewinds."""
    return rewind_rounds.run_rewinds()


@shared_task(name="controlplane.supervisors.tasks.look_at_waiting")
def look_at_waiting() -> None:
    """Follow the lag of supervisors none of whose tasks runs."""
    lag.observe_waiting()


@shared_task(name="controlplane.supervisors.tasks.observe_unread")
def observe_unread() -> None:
    """Ask Kafka from when the oldest unread records are."""
    unread_times.observe_unread()


@shared_task(name="controlplane.supervisors.tasks.import_dead_letters")
def import_dead_letters() -> int:
    """A round of each import of a dead-letter topic."""
    return dead_letter_rounds.run_rounds()
