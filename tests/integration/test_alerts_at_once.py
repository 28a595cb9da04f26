"""Several workers at the same alerts, on committed rows: what fires is told once, and nobody's death loses it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from controlplane.alerts import receivers, services
from controlplane.alerts.evaluating import evaluate
from controlplane.alerts.models import Delivery, Event, Receiver
from controlplane.alerts.sending import send_due
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.states import Detail
from tests.support.django_cast import Cast, make_cast
from tests.support.hooks import Hook, hook_server

AT_ONCE = 6
SENDING = "import django; django.setup(); from controlplane.alerts.sending import send_due; send_due()"


@pytest.fixture
def hook() -> Iterator[Hook]:
    with hook_server() as served:
        yield served


@pytest.fixture
def ill(transactional_db: None, hook: Hook) -> Cast:
    """A supervisor that fails, and a rule that says so to a webhook."""
    cast = make_cast()
    owner = cast.users["owner"]
    to = receivers.create_receiver(
        user=owner, name="hook", kind="webhook", url=hook.url, secret="sixteen or more it is"
    )
    services.create_rule(user=owner, name="ill", kind="unhealthy", hold_s=0, clear_s=0, receivers=[to.pk])
    Supervisor.objects.update(detailed_state=Detail.UNHEALTHY_TASKS, failures=3)
    return cast


def at_once(work: Callable[[], Any]) -> None:
    """Several threads do it, all beginning at one moment."""
    begin = threading.Barrier(AT_ONCE)

    def one() -> None:
        try:
            begin.wait()
            work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(one) for _ in range(AT_ONCE)]:
            done.result()


def test_two_beats_say_it_once_and_two_workers_send_it_once(ill: Cast, hook: Hook) -> None:
    at_once(evaluate)
    assert Event.objects.count() == Delivery.objects.count() == 1
    at_once(send_due)
    assert hook.events == ["fired"]
    assert Delivery.objects.get().attempts == 1


def test_who_comes_back_from_the_dead_records_nothing(ill: Cast, hook: Hook) -> None:
    """Its lease has run out, and another has taken the message: what the first learns then says nothing."""
    evaluate()
    hook.holds = threading.Event()
    hook.answer = (400, {})
    slow = threading.Thread(target=_sent_and_closed)
    slow.start()
    assert hook.came.wait(20)
    Delivery.objects.update(next_at=timezone.now())
    Receiver.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    holds, hook.holds, hook.answer = hook.holds, None, (200, {})
    send_due()
    assert Delivery.objects.get().state == "sent"
    hook.answer = (400, {})
    holds.set()
    slow.join()
    assert Delivery.objects.get().state == "sent"
    assert len({got.told["id"] for got in hook.got}) == 1


def _sent_and_closed() -> None:
    try:
        send_due()
    finally:
        connections.close_all()


def test_a_worker_that_is_killed_while_it_sends_loses_nothing(ill: Cast, hook: Hook) -> None:
    evaluate()
    hook.holds = threading.Event()
    worker = subprocess.Popen([sys.executable, "-c", SENDING], env={**os.environ, "DATABASE_URL": _database()})
    try:
        assert hook.came.wait(60)
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    hook.holds.set()
    hook.holds = None
    send_due()
    assert len(hook.got) == 1  # the lease of the dead is not over
    Delivery.objects.update(next_at=timezone.now())
    Receiver.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    send_due()
    assert Delivery.objects.get().state == "sent"
    assert [got.told["id"] for got in hook.got] == [hook.got[0].told["id"]] * 2


def _database() -> str:
    """This test's."""
    s = connection.settings_dict
    return f"postgresql://{s['USER']}:{s['PASSWORD']}@{s['HOST']}:{s['PORT']}/{s['NAME']}"


def test_one_that_is_deleted_while_its_message_is_under_way(ill: Cast, hook: Hook) -> None:
    evaluate()
    hook.holds = threading.Event()
    slow = threading.Thread(target=_sent_and_closed)
    slow.start()
    assert hook.came.wait(20)
    receivers.delete_receiver(user=ill.users["owner"], receiver=Receiver.objects.get())
    hook.holds.set()
    slow.join()
    assert not Delivery.objects.exists()
    assert Event.objects.count() == 1
