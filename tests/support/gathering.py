"""A ``BufferingPublisher`` by itself on a log and a control plane from memory, with real decoding and real files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ingestion.client.memory import MemoryControlPlane
from ingestion.failpoints import Failpoints
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.sources.memory_log import MemoryLog, MemoryStoredSource
from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import PublishAnswer, PublishRequest, StartRequest
from ingestion.task.batch_splitting import Refusals
from ingestion.task.breaker import Breaker
from ingestion.task.buffering_publisher import BufferingPublisher
from ingestion.task.claims import Claims
from ingestion.task.control import Control
from ingestion.task.decoding import Decoders, Decoding
from ingestion.task.epoch import Epoch, TopicGuard
from ingestion.task.indexer_context import IndexerContext
from ingestion.task.log import logger_for
from ingestion.task.parse_exceptions import ParseExceptions
from ingestion.task.publishing import Publisher, column_ids
from tests.support.indexer import TOPIC, FixedTopic, stored_offsets


class Plane(MemoryControlPlane):
    """``before``: called once, when the next publish arrives."""

    before: Callable[[], object] | None = None

    def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
        before, self.before = self.before, None
        if before is not None:
            before()
        return super().publish(number, request)


class Looking(MemoryStoredSource):
    """``at_looks``: what happens when it is asked to look for another replica. ``rewound``: what it went back on."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.rewound: list[set[int]] = []
        self.at_looks: list[Callable[[], object]] = []

    def notice_replicas(self) -> None:
        if self.at_looks:
            self.at_looks.pop(0)()
        super().notice_replicas()

    def rewind(self, partitions: Iterable[int]) -> None:
        self.rewound.append(set(partitions))
        super().rewind(self.rewound[-1])


class Gathering:
    """One indexer's gatherer and its source, which is open. ``partitions``: those it reads; by default all."""

    def __init__(
        self,
        plane: Plane,
        log: MemoryLog,
        folder: Path,
        number: int = 0,
        partitions: Iterable[int] | None = None,
        batch_records: int = 100,
    ) -> None:
        given, self.plane = plane.prepared_assignment, plane
        self.control, self.topic = Control(number, 1), FixedTopic()
        asked = StartRequest(cluster_id=TOPIC.cluster_id, topic_id=TOPIC.topic_id, host="here", pid=1)
        epoch = Epoch(number, plane.start(number, asked).epoch, TOPIC.topic_id)
        replicas, in_group = given.spec.ioConfig.replicas, given.kind == "consumer_group"
        claims = Claims(plane, self.control, epoch)
        stored = stored_offsets(log, claims, replicas=replicas, with_generation=in_group)
        self.source = Looking(log, stored, partitions, batch_records)
        self._decoders, self._background = Decoders(given), ThreadPoolExecutor(1)
        scratch = folder / f"scratch-{number}"
        scratch.mkdir()
        logger = logger_for()
        breaker = Breaker(self.control, self.source, logger)
        parse_exceptions = ParseExceptions(given.spec.tuningConfig, logger)
        bench = IndexerContext(
            assignment=given,
            decoding=Decoding(given, self._decoders, breaker),
            publisher=Publisher(plane, epoch, breaker, self.control, parse_exceptions),
            topic=TopicGuard(self.topic, epoch, self._background),
            breaker=breaker,
            storage=open_deep_storage(given.deep_storage),
            ids=column_ids(plane),
            scratch=scratch,
            control=self.control,
            failpoints=Failpoints({}),
            parse_exceptions=parse_exceptions,
            refusals=Refusals(given.spec.dataSchema, logger),
            log=logger,
        )
        self.gatherer = BufferingPublisher(bench, self.source)
        self.source.open()

    def read(self) -> None:
        """Gather all that there is, as the loop does between two handoffs."""
        while (batch := self.source.poll(0.0)) is not None:
            self.gatherer.catch_up()
            self.gatherer.process(batch)
        self.gatherer.catch_up()

    @property
    def unpublished(self) -> Counters:
        return self.control.status.unpublished

    def close(self) -> None:
        self.source.close()
        self.gatherer.close()
        self._decoders.close()
        self._background.shutdown()
