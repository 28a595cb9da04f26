"""What the worker does for drafts."""

from celery import shared_task

from controlplane.loading.services import drop_old_drafts


@shared_task(name="controlplane.loading.tasks.drop_old_drafts")
def drop_old() -> None:
    drop_old_drafts()
