"""What a signal asks of an application, and how long it has for that."""

from __future__ import annotations

import os
import signal

import pytest

from ingestion.specs.messages.protocol import Directive
from ingestion.task.control import stricter
from ingestion.task.shutdown import Ending

HOUR_S = 3600.0
NO_TIME_S = 1e-9


def test_nothing_is_asked_before_a_signal() -> None:
    ending = Ending(NO_TIME_S)
    assert (ending.is_requested, ending.directive, ending.overdue, ending.is_time_up) == (
        False,
        "continue",
        False,
        False,
    )


def test_at_first_what_is_held_is_published() -> None:
    ending = Ending(HOUR_S)
    ending.request()
    assert (ending.is_requested, ending.directive, ending.overdue, ending.is_time_up) == (True, "finish", False, False)


def test_at_the_end_of_the_bound_nothing_is_waited_for() -> None:
    ending = Ending(NO_TIME_S)
    ending.request()
    ending.request()
    assert (ending.is_requested, ending.directive, ending.overdue, ending.is_time_up) == (True, "stop", True, True)


def test_sigterm_asks() -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        ending = Ending(HOUR_S).install()
        os.kill(os.getpid(), signal.SIGTERM)
        assert ending.is_requested
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_bound_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_STOP_TIMEOUT", "3600")
    ending = Ending.from_environment()
    ending.request()
    assert ending.directive == "finish"


@pytest.mark.parametrize(
    ("one", "other", "counts"),
    [
        ("continue", "continue", "continue"),
        ("continue", "finish", "finish"),
        ("stop", "finish", "stop"),
        ("finish", "stop", "stop"),
    ],
)
def test_the_stricter_directive_counts(one: Directive, other: Directive, counts: Directive) -> None:
    assert stricter(one, other) == counts
