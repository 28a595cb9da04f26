"""The control plane's log: what fails every two seconds is said once a minute."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.common.log_repeats import EVERY_S, Repeats


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


class Ear:
    """A logger with the filter, a clock in hand, and what it let through."""

    def __init__(self) -> None:
        self.now = 0.0
        self.kept = Kept()
        self.kept.addFilter(Repeats(lambda: self.now))
        self.logger = logging.getLogger("tests.repeats")
        self.logger.propagate = False

    @property
    def said(self) -> list[str]:
        return self.kept.said


@pytest.fixture
def ear() -> Iterator[Ear]:
    ear = Ear()
    ear.logger.addHandler(ear.kept)
    ear.logger.setLevel(logging.INFO)
    yield ear
    ear.logger.removeHandler(ear.kept)


def failed(ear: Ear, task: str, error: Exception) -> None:
    """What Celery logs."""
    context: dict[str, Any] = {"name": task, "id": str(ear.now), "exc": error}
    ear.logger.error("Task %(name)s[%(id)s] raised unexpected: %(exc)r", context, exc_info=error)


def test_the_same_trouble_is_said_once_a_minute_with_how_often(ear: Ear) -> None:
    for second in range(0, int(EVERY_S) + 2, 2):
        ear.now = float(second)
        ear.logger.warning("task %s: no answer for %s s", "a", second)
    assert ear.said == [
        "task a: no answer for 0 s",
        "task a: no answer for 60 s (and 29 more times since it was last said)",
    ]


def test_other_trouble_is_said_at_once(ear: Ear) -> None:
    ear.logger.warning("Kafka is away")
    ear.logger.warning("PostgreSQL is away")
    ear.logger.error("PostgreSQL is away")
    assert ear.said == ["Kafka is away", "PostgreSQL is away"]


def test_an_exception_is_of_one_kind_for_each_job(ear: Ear) -> None:
    for attempt in range(3):
        failed(ear, "watch", ConnectionError(f"attempt {attempt}"))
        failed(ear, "run_all", ConnectionError(f"attempt {attempt}"))
    failed(ear, "watch", ValueError("other"))
    assert [line.split("[")[0] for line in ear.said] == ["Task watch", "Task run_all", "Task watch"]


def test_what_is_refused_for_different_reasons_is_said_of_each(ear: Ear) -> None:
    for kind in ("pickle", "yaml", "yaml"):
        ear.logger.critical("Refusing to deserialize %s", kind, exc_info=ValueError(kind))
    assert ear.said == ["Refusing to deserialize pickle", "Refusing to deserialize yaml"]


def test_what_is_no_trouble_is_always_said(ear: Ear) -> None:
    for _ in range(3):
        ear.logger.info("succeeded")
    assert ear.said == ["succeeded"] * 3
