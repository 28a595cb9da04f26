"""Whoever Kafka does not let read says so, and begins only once it may: nobody makes room for it before."""

from __future__ import annotations

from typing import Any

import pytest

from ingestion.client.memory import MemoryControlPlane
from ingestion.sources.base import ReadRefused
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.sources.topic import TopicIdentity
from ingestion.task import indexer
from ingestion.task.control import Control
from tests.support.indexer import FixedTopic, assignment, record, total


class Refusing(FixedTopic):
    """Not to be read at the first two looks. ``seen``: what the indexer shows at each."""

    def __init__(self, control: Control) -> None:
        super().__init__()
        self.control, self.seen = control, list[tuple[str, int, str]]()

    def identity(self) -> TopicIdentity:
        shown = self.control.status
        self.seen.append((shown.state, shown.epoch, shown.message))
        if len(self.seen) < 3:
            raise ReadRefused("This login lacks the right READ on topic 't'.")
        return super().identity()


def test_it_is_refused_and_takes_no_epoch(run_indexer: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "TOPIC_WAIT_S", 0.0)
    control, plane = Control(0, 1), MemoryControlPlane(assignment(tmp_path))
    topic = Refusing(control)
    run_indexer(MemoryLeasedSource([(0, n, record(n)) for n in range(10)]), plane, topic=topic, control=control)
    refused = ("refused", 0, "This login lacks the right READ on topic 't'.")
    assert topic.seen == [("starting", 0, ""), refused, refused]
    assert (control.status.epoch, total(plane).published) == (1, 10)
