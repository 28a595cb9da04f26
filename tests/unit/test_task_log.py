"""What a task logs: trouble once, and lines handed on within bounds, those of other machines through the board."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from controlplane.embedded.waiting import poll_until
from ingestion.spark.board import Board, Poster
from ingestion.task import log
from ingestion.task.control import Control
from ingestion.task.log import LINES_PER_S, LONGEST_LINE, MAX_WAITING, LineBuffer, OngoingProblem


@pytest.fixture
def said() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def trouble(said: list[dict[str, Any]]) -> OngoingProblem:
    def keep(_: Any, level: str, event: Any) -> str:
        said.append({"level": level, **event})
        raise structlog.DropEvent

    logger = structlog.wrap_logger(None, processors=[keep], wrapper_class=structlog.BoundLogger)
    return OngoingProblem(logger, "Kafka does not answer")


def test_trouble_is_logged_when_it_begins_and_when_it_is_over(
    trouble: OngoingProblem, said: list[dict[str, Any]]
) -> None:
    for attempt in range(1000):
        trouble.report_failure(f"connection refused (after {attempt} ms)")
    trouble.report_recovery()
    trouble.report_recovery()
    trouble.report_failure("connection refused (after 0 ms)")
    assert [(line["level"], line["event"]) for line in said] == [
        ("warning", "Kafka does not answer"),
        ("info", "no more: Kafka does not answer"),
        ("warning", "Kafka does not answer"),
    ]


def test_another_reason_is_logged_too_and_not_without_end(trouble: OngoingProblem, said: list[dict[str, Any]]) -> None:
    for reason in ("refused", "timed out", "refused", "timed out"):
        trouble.report_failure(reason)
    assert [line["reason"] for line in said] == ["refused", "timed out"]
    for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ":
        trouble.report_failure(letter)
    assert len(said) == log.MAX_KINDS


def test_lines_are_handed_on_once_and_as_many_as_there_is_room_for() -> None:
    now = 0.0
    lines = LineBuffer(lambda: now)
    for number in range(MAX_WAITING + 50):
        lines.add(f"line {number}")
    taken = lines.take()
    assert taken[:2] == ["line 0", "line 1"]
    assert len(taken) == MAX_WAITING + 1
    assert taken[-1] == "(50 more lines were not handed on)"
    assert lines.take() == []
    now = 2.0
    for number in range(MAX_WAITING):
        lines.add(f"line {number}")
    assert len(lines.take()) == 2 * LINES_PER_S + 1


def test_a_long_line_is_cut() -> None:
    lines = LineBuffer()
    lines.add("x" * (LONGEST_LINE + 1))
    assert lines.take() == ["x" * LONGEST_LINE + " …"]


def test_what_was_not_heard_waits_before_what_came_since() -> None:
    lines = LineBuffer()
    lines.add("one")
    taken = lines.take()
    lines.add("two")
    lines.put_back(taken)
    assert lines.take() == ["one", "two"]


def test_an_indexer_elsewhere_posts_its_lines(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ingestion.spark.board.LINE_BUFFER", lines := LineBuffer())
    board = Board()
    control = Control(3, 0)
    poster = Poster(control, board.address, board.authkey, with_lines=True)
    lines.add("level=info event=started indexer=3 host=worker-7")
    poster.start()
    poll_until(lambda: board.status(3), timeout_s=30)
    lines.add("level=info event=ended indexer=3 host=worker-7")
    poster.finish()
    assert capfd.readouterr().err.splitlines() == [
        "level=info event=started indexer=3 host=worker-7",
        "level=info event=ended indexer=3 host=worker-7",
    ]


def test_lines_say_what_the_whole_process_is(capfd: pytest.CaptureFixture[str]) -> None:
    before = structlog.get_config()
    try:
        log.configure(host="worker-7")
        log.LINE_BUFFER.take()
        log.logger_for(indexer=2).warning("paused", reason="no room")
    finally:
        structlog.configure(**before)
    [line] = capfd.readouterr().err.splitlines()
    assert line.endswith('level=warning event=paused indexer=2 reason="no room" host=worker-7')
    assert log.LINE_BUFFER.take() == [line]
