"""One epoch of an indexer on one topic id, and the guard that notices when the topic is another one."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from ingestion.sources.base import SourceProblem, TopicChanged
from ingestion.sources.topic import Topic


@dataclass(frozen=True)
class Epoch:
    """Whose publishes they are."""

    indexer: int
    number: int  # the epoch's; a newer one of the same indexer fences it
    topic_id: str


@dataclass(frozen=True)
class TopicGuard:
    """Nothing that was read of another topic than the epoch's is published."""

    topic: Topic
    epoch: Epoch
    background: ThreadPoolExecutor  # where it may ask aside

    def check_now(self) -> None:
        """Raises ``TopicChanged`` when the topic is another one, ``SourceProblem`` when Kafka does not say which."""
        topic_id = self.topic.topic_id()
        if topic_id != self.epoch.topic_id:
            raise TopicChanged(f"the topic's id was {self.epoch.topic_id} and is {topic_id}")

    def check(self) -> None:
        """Raises ``TopicChanged`` when the topic is another one, or Kafka does not say which."""
        try:
            self.check_now()
        except SourceProblem as problem:
            raise TopicChanged(str(problem)) from None

    def check_in_background(self) -> Future[None]:
        """``check`` beside what is done meanwhile."""
        return self.background.submit(self.check)
