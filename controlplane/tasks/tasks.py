"""Celery tasks: launching and watching applications."""

from celery import shared_task

from controlplane.tasks import launcher, watching


@shared_task
def launch(task_id: str) -> bool:
    """Start a task's application, once."""
    return launcher.launch(task_id)


@shared_task
def watch() -> None:
    """Find lost tasks, look at topics, end what is done."""
    watching.watch()
