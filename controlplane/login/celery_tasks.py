"""What the worker does for logins."""

from celery import shared_task

from controlplane.login import sessions


@shared_task(name="controlplane.login.tasks.drop_over")
def drop_over() -> None:
    """Delete sessions whose time is over."""
    sessions.delete_expired()
