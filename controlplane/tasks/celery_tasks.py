"""What Celery is asked for: launching and watching applications.

Messages in the queue carry these names: a renamed task does not run them.
"""

from celery import shared_task
from django.db import transaction

from controlplane.tasks import kills, launcher, watching
from controlplane.tasks.models import Task

_GIVEN_BACK_S = 1.0  # to any host's worker, also this one's


@shared_task(name="controlplane.tasks.tasks.launch")
def launch(task_id: str) -> bool:
    """Start a task's application, once; one that deletes segments has none, and is done here."""
    try:
        return kills.run(task_id) or launcher.launch(task_id)
    except launcher.GivenBack:
        launch.apply_async((task_id,), countdown=_GIVEN_BACK_S)
        return False


@shared_task(name="controlplane.tasks.tasks.watch")
def watch() -> None:
    """Find lost tasks, look at topics, end what is done, and launch what was forgotten."""
    watching.watch(launch_on_commit)


def launch_on_commit(task: Task) -> None:
    """Hand the task to the launcher once its row can be seen."""
    # Robust: without a broker the task is submitted all the same, and handed over again by the next watch.
    transaction.on_commit(lambda: launch.delay(task.pk), robust=True)
