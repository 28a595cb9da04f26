"""Repairs and replays that die say why, whatever it is: the task fails with that reason."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.tasks.lifecycle import new_token
from controlplane.tasks.models import Status, Task
from ingestion.client.http import HttpControlPlane
from ingestion.decode.errors import DecoderBroken, TooSlow
from ingestion.segments.errors import SegmentError
from ingestion.task.errors import TooManyParseExceptions
from ingestion.task.standalone import run_standalone
from tests.contracts.test_control_plane import make_task

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (TooManyParseExceptions("There are 3 parse exceptions."), "There are 3 parse exceptions."),
        (DecoderBroken("DuckDB cannot decode even an empty object."), "DuckDB cannot decode even an empty object."),
        (TooSlow("records can't be decoded in time"), "records can't be decoded in time"),
        (SegmentError("a column of type void can't be stored"), "a column of type void can't be stored"),
        (KeyError("what nobody thought of"), "KeyError: 'what nobody thought of'"),
        (ValueError("a\0b\ud800" + 5000 * "x"), "ValueError: a\u2400b\ufffdxxx"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_task_that_dies_says_why(
    live_server: Any, monkeypatch: pytest.MonkeyPatch, problem: Exception, reason: str
) -> None:
    task = make_task(Task.Kind.REPAIR)
    for name, value in (("ID", task.pk), ("TOKEN", new_token(task))):
        monkeypatch.setenv(f"HEADGATE_TASK_{name}", value)
    monkeypatch.setenv("HEADGATE_URL", live_server.url)

    def work(*_: Any) -> None:
        raise problem

    assert run_standalone(work, HttpControlPlane) == 1
    task.refresh_from_db()
    assert task.status == Status.FAILED
    assert task.error.startswith(reason)
