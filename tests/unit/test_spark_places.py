"""How many indexers an application starts: no more than have something to read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from ingestion.sources.base import SourceProblem
from ingestion.spark import sources
from ingestion.spark.sources import IndexerLimit
from ingestion.specs.messages.protocol import Assignment
from ingestion.specs.tasks.ingestion_spec import parse_task_spec


def assignment(kind: Any, indexers: int) -> Assignment:
    io_config: dict[str, Any] = {
        "topic": "t",
        "consumerProperties": {"bootstrap.servers": "nowhere:1"},
        "inputFormat": {"type": "json"},
    }
    io_config |= {"groupId": "g"} if kind == "share_group" else {"assignment": kind}
    document = {
        "type": "index_kafka_share_group" if kind == "share_group" else "index_kafka",
        "dataSchema": {"dataSource": "d", "timestampSpec": {"column": "time"}},
        "ioConfig": io_config,
    }
    return Assignment(
        task_id="task",
        kind=kind,
        spec=parse_task_spec(document).spec,
        consumer_properties={},
        indexers=indexers,
        deep_storage="",
        version="v",
        created_at=datetime(2025, 6, 1, tzinfo=UTC),
    )


class Watch:
    """A topic that has so many partitions each time it is looked at; None: Kafka does not answer."""

    def __init__(self, *answers: int | None) -> None:
        self._answers: Iterator[int | None] = iter(answers)
        self.told = threading.Semaphore(0)

    def partitions(self) -> list[int]:
        answer = next(self._answers, None)
        self.told.release()
        if answer is None:
            raise SourceProblem("Kafka does not answer")
        return list(range(answer))


def fitting(monkeypatch: pytest.MonkeyPatch, watch: Watch, wanted: int, kind: str, indexers: int, looks: int) -> int:
    """After the watch was asked so many times, and once more to be sure that the last answer was taken."""
    monkeypatch.setattr(sources, "TopicWatch", lambda *_: watch)
    monkeypatch.setattr(sources, "PARTITION_CHECK_S", 0.01)
    with closing(IndexerLimit(assignment(kind, indexers))) as places:
        for _ in range(looks + 1 if looks else 0):
            assert watch.told.acquire(timeout=20)
        return places.fitting(wanted)


@pytest.mark.parametrize(
    ("partitions", "wanted", "started"),
    [(1, 4, 1), (3, 4, 3), (4, 4, 4), (9, 4, 4), (0, 4, 1), (None, 4, 1), (3, 0, 0)],
)
def test_no_more_indexers_than_partitions(
    monkeypatch: pytest.MonkeyPatch, partitions: int | None, wanted: int, started: int
) -> None:
    """Of a topic that is not there, or not known, one waits."""
    watch = Watch(*[partitions] * 3)
    assert fitting(monkeypatch, watch, wanted, "offset_range", 4, looks=1) == started


def test_partitions_that_are_added_bring_indexers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fitting(monkeypatch, Watch(1, 3, 3, 3), 4, "offset_range", 4, looks=3) == 3


@pytest.mark.parametrize("kind", ["consumer_group", "share_group"])
def test_in_groups_as_many_as_wanted(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A member without a partition takes over when another dies; of a share group each has something to read."""
    watch = Watch(1)
    assert fitting(monkeypatch, watch, 4, kind, 4, looks=0) == 4
    assert not watch.told.acquire(blocking=False), "nobody has to look"
