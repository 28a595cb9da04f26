"""One indexer on a source and a control plane from memory, with real decoding and real files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ingestion.client.memory import MemoryControlPlane
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.sources.base import LeasedSource, StoredOffsetSource
from ingestion.sources.memory_log import MemoryLog, MemoryStoredSource
from ingestion.sources.stored_offsets import Claim, StoredOffsets
from ingestion.sources.topic import TopicIdentity
from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import Assignment, Directive
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from ingestion.task.control import Control
from ingestion.task.indexer import Indexer, IndexerDependencies
from tests.support.formats import HERE

CREATED_AT = datetime(2025, 6, 1, tzinfo=UTC)
TOPIC = TopicIdentity("cluster", "topic-id")


MakeSource = Callable[[Claim], StoredOffsetSource]


def stored_offsets(log: MemoryLog, claim: Claim, **more: Any) -> StoredOffsets:
    return StoredOffsets(
        **{"topic": "t", "watch": log, "claim": claim, "use_earliest": True, "may_reset": False, **more}
    )


class Rewinding(MemoryStoredSource):
    """Counts how often it went back."""

    rewinds = 0

    def rewind(self, partitions: Iterable[int]) -> None:
        self.rewinds += 1
        super().rewind(partitions)


class OneLog:
    """Makes the source of an indexer with stored offsets: partition 0 of a topic, which tells it how to end.

    ``at_end``: is called instead, each time that there is nothing to take.
    """

    def __init__(
        self,
        payloads: Iterable[bytes | None],
        control: Control,
        end: Directive = "finish",
        batch_records: int = 100,
        at_end: Callable[[], object] | None = None,
    ) -> None:
        self.log = MemoryLog()
        self.log.append(payloads)
        self._at_end = at_end or (lambda: control.update(end))
        self._batch_records = batch_records
        self.made: list[Rewinding] = []

    def __call__(self, claim: Claim) -> Rewinding:
        offsets = stored_offsets(self.log, claim)
        self.made.append(Rewinding(self.log, offsets, batch_records=self._batch_records, at_end=self._at_end))
        return self.made[-1]

    @property
    def rewinds(self) -> int:
        return sum(source.rewinds for source in self.made)


class FixedTopic:
    """A topic that stays as it is, or changes its id after some looks."""

    def __init__(self, change_after: int | None = None) -> None:
        self.looks, self.change_after = 0, change_after

    def identity(self) -> TopicIdentity:
        return TopicIdentity("cluster", self.topic_id())

    def topic_id(self) -> str:
        self.looks += 1
        return "another-id" if self.change_after is not None and self.looks > self.change_after else "topic-id"


def assignment(
    folder: Path,
    input_format: Any = None,
    created_at: datetime = CREATED_AT,
    reads_until: datetime | None = None,
    io_config: dict[str, Any] | None = None,
    kafka: bool = False,
    **data_schema: Any,
) -> Assignment:
    """``kafka``: of that type, and not of a share group."""
    data_schema = {
        "dataSource": "d",
        "timestampSpec": {"column": "time"},
        "dimensionsSpec": {"useSchemaDiscovery": True},
        "granularitySpec": {"rollup": False},
        **data_schema,
    }
    document: dict[str, Any] = {
        "type": "index_kafka_share_group",
        "dataSchema": data_schema,
        "ioConfig": {
            "topic": "t",
            "groupId": "g",
            "consumerProperties": {"bootstrap.servers": "nowhere:1"},
            "inputFormat": input_format or {"type": "json"},
            **(io_config or {}),
        },
        "tuningConfig": data_schema.pop("tuningConfig", {}),
    }
    if kafka:
        document["type"] = "index_kafka"
        del document["ioConfig"]["groupId"]
    return Assignment(
        task_id="task",
        kind="offset_range" if kafka else "share_group",
        spec=parse_task_spec(document).spec,
        consumer_properties={},
        indexers=1,
        deep_storage=str(folder / "segments"),
        version="v1",
        created_at=created_at,
        reads_until=reads_until,
        address_policy=HERE,
    )


@pytest.fixture
def run_indexer(tmp_path: Path) -> Callable[..., MemoryControlPlane]:
    (tmp_path / "segments").mkdir()

    def run_loop(
        source: LeasedSource | MakeSource,
        plane: MemoryControlPlane | None = None,
        topic: Any = None,
        deep_storage: str | None = None,
        control: Control | None = None,
        **data_schema: Any,
    ) -> MemoryControlPlane:
        given = assignment(tmp_path, **data_schema)
        plane = plane or MemoryControlPlane(given)
        control = control or Control(0, 1)
        control.update("continue")
        surroundings = IndexerDependencies(
            client=plane,
            topic=topic or FixedTopic(),
            make_source=(lambda _: source) if isinstance(source, LeasedSource) else source,
            storage=open_deep_storage(deep_storage or given.deep_storage),
            scratch=tmp_path / "scratch",
            host="here",
        )
        (tmp_path / "scratch").mkdir(exist_ok=True)
        Indexer(given, control, surroundings).run()
        return plane

    return run_loop


def record(n: int, day: int = 1) -> bytes:
    return json.dumps({"time": f"2025-06-{day:02d}T00:00:00Z", "n": n}).encode()


def total(plane: MemoryControlPlane) -> Counters:
    return sum((p.counters for p in plane.published), Counters())


def stored(plane: MemoryControlPlane, folder: Path) -> list[int]:
    files = [folder / "segments" / s.path for p in plane.published for s in p.segments]
    return sorted(n for f in files for n in pq.read_table(f)["n"].to_pylist())
