"""Rules, receivers, and a round of the alerts: looked at, and sent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.alerts import receivers, services
from controlplane.alerts.evaluating import evaluate
from controlplane.alerts.models import Delivery, Receiver, Rule
from controlplane.alerts.sending import send_due
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.states import Detail
from tests.integration.test_health_of_supervisors import sample
from tests.support.django_cast import Cast
from tests.support.hooks import Hook, hook_server

SECRET = "a secret of sixteen or more"


@pytest.fixture
def hook() -> Iterator[Hook]:
    with hook_server() as served:
        yield served


def receiver_of(cast: Cast, hook: Hook, name: str = "hook", kind: str = "webhook") -> Receiver:
    secret = {"secret": SECRET} if kind == "webhook" else {}
    return receivers.create_receiver(user=cast.users["owner"], name=name, kind=kind, url=hook.url, **secret)


def rule_of(cast: Cast, kind: str = "unhealthy", *to: Receiver, **more: Any) -> Rule:
    usual = {"name": kind, "hold_s": 0, "clear_s": 0, "receivers": [r.pk for r in to]}
    return services.create_rule(user=cast.users["owner"], kind=kind, **{**usual, **more})


def ill() -> None:
    Supervisor.objects.update(detailed_state=Detail.UNHEALTHY_TASKS, failures=3)


def well(cast: Cast) -> None:
    """It keeps up with its topic, as was just seen."""
    Supervisor.objects.update(detailed_state=Detail.RUNNING, failures=0)
    sample(cast.source, timedelta(), 0)


def look_and_send() -> None:
    evaluate()
    send_due()


def now_due() -> None:
    """All pauses are over."""
    Receiver.objects.update(next_try_at=None, leased_until=None)
    Delivery.objects.filter(state="waiting").update(next_at=timezone.now())
