"""What a batch is worked on with, whichever kind its source is of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from ingestion.failpoints import Failpoints
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage
from ingestion.specs.messages.protocol import Assignment
from ingestion.task.batch_splitting import Refusals
from ingestion.task.breaker import Breaker
from ingestion.task.control import Control
from ingestion.task.decoding import Decoding
from ingestion.task.epoch import TopicGuard
from ingestion.task.parse_exceptions import ParseExceptions
from ingestion.task.publishing import Publisher


@dataclass(frozen=True)
class IndexerContext:
    """Handed to ``ImmediatePublisher`` or ``BufferingPublisher``, the two ways of work, for one epoch.

    ``decoding``, ``publisher``, ``topic`` and ``breaker`` are of the epoch; the rest is the indexer's.
    """

    assignment: Assignment
    decoding: Decoding
    publisher: Publisher
    topic: TopicGuard
    breaker: Breaker
    storage: DeepStorage
    ids: ColumnIds
    scratch: Path
    control: Control
    failpoints: Failpoints
    parse_exceptions: ParseExceptions
    refusals: Refusals
    log: FilteringBoundLogger
