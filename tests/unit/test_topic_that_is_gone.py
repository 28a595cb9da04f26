"""Who reads one topic and no other of its name comes to an end when that is gone."""

from __future__ import annotations

from typing import Any

import pytest

from ingestion.client.memory import MemoryControlPlane
from ingestion.sources.base import SourceProblem
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.sources.topic import PinnedTopic, TopicIdentity
from tests.support.indexer import FixedTopic, assignment, record


class Deleted(FixedTopic):
    """It is there when it is first asked for, and then no more."""

    def identity(self) -> TopicIdentity | None:  # type: ignore[override]
        return super().identity() if not self.looks else None

    def topic_id(self) -> str | None:  # type: ignore[override]
        self.looks += 1
        return "topic-id" if self.looks == 1 else None


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        (Deleted(), "Topic 't' was deleted"),
        (FixedTopic(change_after=1), "was deleted and recreated: its id was topic-id and is another-id"),
        (FixedTopic(change_after=0), "was deleted and recreated"),
    ],
    ids=["deleted", "made again meanwhile", "made again before"],
)
def test_nothing_is_published_and_nobody_waits(run_indexer: Any, tmp_path: Any, topic: FixedTopic, said: str) -> None:
    plane = MemoryControlPlane(assignment(tmp_path))
    source = MemoryLeasedSource([(0, n, record(n)) for n in range(10)])
    with pytest.raises(SourceProblem, match=said) as problem:
        run_indexer(source, plane, topic=PinnedTopic(topic, "t", "topic-id"))
    assert problem.value.permanent
    assert plane.published == []
