"""What the worker does for alerts."""

from celery import shared_task

from controlplane.alerts import evaluating, sending, services


@shared_task(name="controlplane.alerts.tasks.evaluate")
def evaluate() -> None:
    """Look at what all rules are about."""
    evaluating.evaluate()


@shared_task(name="controlplane.alerts.tasks.send")
def send() -> None:
    """Send what waits."""
    sending.send_waiting()


@shared_task(name="controlplane.alerts.tasks.drop_old")
def drop_old() -> None:
    """Delete history of long ago."""
    services.drop_old()
