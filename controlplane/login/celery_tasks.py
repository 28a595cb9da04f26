"""What the worker does for logins."""

from celery import shared_task

from controlplane.login import sessions
from controlplane.teams import answered_requests


@shared_task(name="controlplane.login.tasks.drop_over")
def drop_over() -> None:
    """Delete sessions whose time is over, and answers that were kept for a repeated request."""
    sessions.delete_expired()
    answered_requests.delete_old()
