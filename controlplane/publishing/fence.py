"""The fence: every start of an indexer takes a new epoch, and only the newest may publish."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from controlplane.common.database import cursor
from controlplane.common.errors import Conflict
from controlplane.datasources.models import Datasource, append_version
from controlplane.publishing.models import IndexerFence, Publish, RewindPiece
from controlplane.sources.models import Source, SourceEvent
from ingestion.specs.counters import UNPUBLISHED, UNPUBLISHED_OUTCOMES, Counts, Unpublished
from ingestion.specs.inputs.sources import progress_of
from ingestion.specs.messages.protocol import AbandonRequest, Refusal
from ingestion.specs.source_traits import Progress


class PublishRefused(Exception):
    """The publish changed nothing; ``refusal`` says why and is sent back with status 409."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.detail)


@transaction.atomic
def take_epoch(
    *,
    task_id: str,
    number: int = 0,
    datasource: Datasource,
    source: Source | None = None,
    replay: bool = False,
    bounded: bool = False,
    rewinds: bool = False,
    previous_epoch: int = 0,
) -> IndexerFence:
    """Take a new epoch for an indexer; who has an older one may publish no more.

    A task without indexers has one fence, number 0. ``source``: what it reads; none: files or segments. ``replay``:
    what it publishes comes from the quarantine. ``bounded``: it reads given offsets. ``rewinds``: it reads again
    what is settled. What ended unpublished in the last epoch is kept.
    """
    defaults = {"datasource": datasource, "replay": replay, "bounded": bounded, "rewinds": rewinds}
    IndexerFence.objects.get_or_create(task_id=task_id, number=number, defaults=defaults)
    fence = IndexerFence.objects.select_for_update().get(task_id=task_id, number=number)
    fence.epoch = max(fence.epoch, previous_epoch) + 1  # a store that has lost commits may not know the last one
    fence.source = source
    fence.started_at = fence.started_at or timezone.now()
    for name in UNPUBLISHED:
        setattr(fence, f"{name}_before", getattr(fence, f"{name}_before") + getattr(fence, f"{name}_now"))
        setattr(fence, f"{name}_now", 0)
    fence.save()
    return fence


def record_unpublished(*, task_id: str, number: int, epoch: int, unpublished: Unpublished | Counts) -> None:
    """Record what ended without a publish in an indexer's current epoch; an older epoch's word changes nothing."""
    fences = IndexerFence.objects.filter(task_id=task_id, number=number, epoch=epoch)
    grows = {f"{name}_now__lte": getattr(unpublished, name) for name in UNPUBLISHED_OUTCOMES}
    fences.filter(**grows).update(**{f"{name}_now": getattr(unpublished, name) for name in UNPUBLISHED})


@dataclass(frozen=True)
class LockedSource:
    """The topic that an indexer reads, by its topic id."""

    id: int
    topic: str
    topic_id: str
    kind: str

    @property
    def progress(self) -> Progress:
        """How it is remembered what of it has ended."""
        return progress_of(self.kind)


@dataclass(frozen=True)
class LockedFence:
    """The row of an indexer, or of a task without indexers, locked: what a publish needs of it."""

    task_id: str
    number: int
    epoch: int
    id: int
    datasource: int
    folder: str  # its datasource's in deep storage
    version: str  # what its datasource's new intervals get
    replay: bool
    bounded: bool
    rewinds: bool
    at: datetime  # when it was locked, by the database's clock: when it is published (``manifest.publish_watermark``)
    source: LockedSource | None  # none: the task reads files or segments

    def reading(self, topic_id: str) -> LockedSource:
        """Its source. Raises ``PublishRefused`` (fenced) unless that is the topic of this id."""
        if self.source is None or self.source.topic_id != topic_id:
            raise PublishRefused(Refusal(code="fenced", detail="The indexer started on another topic id."))
        return self.source


def lock_fence(task_id: str, number: int, epoch: int) -> LockedFence:
    """Lock the fence's row until the transaction ends. Raises ``PublishRefused`` (fenced) for an old epoch."""
    with cursor() as c:
        return fence_from_row(c.execute(LOCK_FENCE, (task_id, number)).fetchone(), task_id, number, epoch)


# Of task and number; the row is ``fence_from_row``'s.
LOCK_FENCE = """
    SELECT f.epoch, f.id, f.datasource_id, d.name, d.created_at, f.replay, f.bounded, f.rewinds, clock_timestamp(),
        f.source_id, s.topic, s.topic_id, s.kind
    FROM publishing_indexerfence f
    JOIN datasources_datasource d ON d.id = f.datasource_id LEFT JOIN sources_source s ON s.id = f.source_id
    WHERE f.task_id = %s AND f.number = %s FOR UPDATE OF f
"""


def fence_from_row(row: tuple[Any, ...] | None, task_id: str, number: int, epoch: int) -> LockedFence:
    """Raises ``PublishRefused`` (fenced) for an old epoch."""
    if row is None or row[0] != epoch:
        current = row[0] if row else "none"
        raise PublishRefused(
            Refusal(code="fenced", detail=f"Epoch {epoch} of indexer {number} is over (current: {current}).")
        )
    _, fence, datasource, folder, created_at, replay, bounded, rewinds, at, *source = row
    return LockedFence(
        task_id=task_id,
        number=number,
        epoch=epoch,
        id=fence,
        datasource=datasource,
        folder=folder,
        version=append_version(created_at),
        replay=replay,
        bounded=bounded,
        rewinds=rewinds,
        at=at,
        source=None if source[0] is None else LockedSource(*source),
    )


@transaction.atomic
def abandon(*, task_id: str, number: int, request: AbandonRequest) -> bool:
    """Whether the publish has committed; if not, it never may (its id is marked)."""
    fence = lock_fence(task_id, number, request.epoch)
    existing = Publish.objects.filter(id=request.publish_id).first()
    if existing is not None:
        return not existing.abandoned
    if RewindPiece.objects.filter(pk=request.publish_id).exists():
        return True
    Publish.objects.create(
        id=request.publish_id, fence_id=fence.id, epoch=request.epoch, abandoned=True, created_at=timezone.now()
    )
    return False


@transaction.atomic
def adopt_source(
    *, datasource: Datasource, kind: str, group: str, topic: str, cluster_id: str, topic_id: str
) -> Source:
    """The source an indexer found. Raises ``Conflict`` when it is another datasource's or a topic that is gone."""
    Datasource.objects.select_for_update().get(pk=datasource.pk)  # one adoption a datasource at a time
    source = Source.objects.filter(kind=kind, cluster_id=cluster_id, group=group, topic_id=topic_id).first()
    if source is not None:
        _check_owner(source, datasource)
        return source
    source, created = Source.objects.get_or_create(
        kind=kind,
        cluster_id=cluster_id,
        group=group,
        topic_id=topic_id,
        defaults={"datasource": datasource, "topic": topic},
    )
    if not created:
        _check_owner(source, datasource)
        return source
    _retire_older(source)
    return source


def _check_owner(source: Source, datasource: Datasource) -> None:
    if source.datasource_id != datasource.id:
        what = "Supervisor" if source.progress.keeps_offsets else source.progress.label.capitalize()
        raise Conflict(
            f"{what} {source.group!r} on topic {source.topic!r} already writes to another datasource. "
            "Use another groupId or id."
        )
    if not source.current:
        raise Conflict(f"Topic {source.topic!r} with id {source.topic_id} was deleted and recreated.")


def _retire_older(source: Source) -> None:
    older = Source.objects.filter(
        kind=source.kind,
        cluster_id=source.cluster_id,
        group=source.group,
        topic=source.topic,
        datasource=source.datasource,
        current=True,
    ).exclude(pk=source.pk)
    for old in older:
        Source.objects.filter(pk=old.pk).update(current=False)
        SourceEvent.objects.create(
            datasource_id=source.datasource_id,
            source=source,
            kind=SourceEvent.Kind.TOPIC_RECREATED,
            detail=(
                f"Topic {source.topic!r} was deleted and recreated: its id changed from {old.topic_id} to "
                f"{source.topic_id}. Ingestion continues with the new topic from its first record."
            ),
        )
