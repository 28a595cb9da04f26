"""Publishes as an indexer would send them, straight to the metadata store."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from controlplane.datasources.models import Datasource
from controlplane.publishing import fence, settled
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.publish import publish
from controlplane.sources.models import Source
from controlplane.teams.models import Team
from ingestion.specs.counters import Counters
from ingestion.specs.messages.column_ids import ColumnsRequest
from ingestion.specs.messages.protocol import Advance, Column, Outcomes, PublishRequest, SegmentFile
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord
from ingestion.specs.messages.publish_limits import MAX_COLUMNS
from ingestion.specs.source_traits import SHARE_GROUPS

DAY = datetime(2025, 6, 1, tzinfo=UTC)
TASK = "task-1"


def make_source(name: str, topic_id: str = "topic-id-1", group: str = "group", kind: str = SHARE_GROUPS.kind) -> Source:
    """A source of the datasource ``name``, which is made if need be."""
    team, _ = Team.objects.get_or_create(name="alpha")
    datasource, _ = Datasource.objects.get_or_create(name=name, defaults={"team": team})
    return fence.adopt_source(
        datasource=datasource,
        kind=kind,
        group=group,
        topic="topic",
        cluster_id="cluster",
        topic_id=topic_id,
    )


def start(source: Source, number: int = 0, task: str = TASK) -> int:
    return fence.take_epoch(task_id=task, number=number, datasource=source.datasource, source=source).epoch


def segment(offsets: dict[int, list[tuple[int, int]]], day: datetime = DAY) -> SegmentFile:
    rows = sum(end - start for ranges in offsets.values() for start, end in ranges)
    return SegmentFile(
        path=f"flights/{uuid.uuid4()}.parquet",
        interval_start=day,
        interval_end=day + timedelta(days=1),
        rows=rows,
        size_bytes=10 * rows,
        sha256="a" * 64,
        min_time=day,
        max_time=day + timedelta(hours=1),
        columns=[Column(name="item", type="string")],
        offsets=offsets,
    )


def too_many_columns() -> ColumnsRequest:
    """That asks for more than a publish may have."""
    names = map(str, range(MAX_COLUMNS + 1))
    return ColumnsRequest.model_construct(columns=[Column.model_construct(name=n, type="long") for n in names])


def request(
    epoch: int,
    stored: dict[int, list[tuple[int, int]]] | None = None,
    outcomes: dict[int, Outcomes] | None = None,
    segments: list[SegmentFile] | None = None,
    quarantined: list[WireRecord] | None = None,
    topic_id: str = "topic-id-1",
    progress: dict[int, Advance] | None = None,
) -> PublishRequest:
    """A publish whose counters say what its offsets say."""
    segments = segments if segments is not None else ([segment(stored)] if stored else [])
    outcomes = outcomes or {}
    rows = sum(s.rows for s in segments)

    def ended(name: str) -> int:
        return sum(end - start for o in outcomes.values() for start, end in getattr(o, name))

    return PublishRequest(
        publish_id=uuid.uuid4(),
        epoch=epoch,
        topic_id=topic_id,
        segments=segments,
        outcomes=outcomes,
        counters=Counters(
            polled=rows + ended("thrown_away") + ended("unparseable") + ended("duplicate"),
            published=rows,
            thrown_away=ended("thrown_away"),
            unparseable=ended("unparseable"),
            duplicates=ended("duplicate"),
            quarantined=len(quarantined or []),
        ),
        quarantined=quarantined or [],
        progress=progress or {},
    )


def send(what: PublishRequest, number: int = 0, task: str = TASK) -> list[str]:
    """The segments' ids. Files are where an indexer puts them: in its datasource's folder."""
    held = IndexerFence.objects.filter(task_id=task, number=number).select_related("datasource").first()
    folder = held.datasource.name if held else "flights"
    files = [s.model_copy(update={"path": f"{folder}/{s.path.rpartition('/')[2]}"}) for s in what.segments]
    return publish(task_id=task, number=number, request=what.model_copy(update={"segments": files})).segment_ids


def settled_offsets(source: Source) -> dict[int, list[tuple[int, int]]]:
    return {key.partition: settled.settled_ranges(key) for key in source.keys.order_by("partition")}
