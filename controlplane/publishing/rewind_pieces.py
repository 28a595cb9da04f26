"""Publishes of a rewind's part that nobody sees before the last of them: kept whole, with their files, until it comes.

A part may have more segments, or quarantined records, than one publish. What is held stays when its process dies: the
next one reads only what is left. It goes with the end of the part, or when the part is planned again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from controlplane.common.database import cursor
from controlplane.common.errors import InvalidInput
from controlplane.publishing.fence import LOCK_FENCE, LockedFence, LockedSource, fence_from_row
from controlplane.publishing.kept_records import insert_faulty, insert_quarantined
from controlplane.publishing.models import RewindPart, RewindPiece, ranges_by_partition
from controlplane.publishing.postgres_ranges import Ranges, get_or_create_keys
from controlplane.publishing.publication import Publication, check_paths
from controlplane.publishing.replay_publish import HeldRecords, ReplayOutcome
from controlplane.segments.models import HeldFile, Segment
from ingestion.specs import offsets
from ingestion.specs.messages.protocol import PublishRequest


@dataclass(frozen=True)
class Piece:
    """One publish of a part."""

    publication: Publication
    source: LockedSource
    request: PublishRequest
    read: dict[int, Ranges]  # which offsets it ends

    def outcome(self, held: HeldRecords) -> ReplayOutcome:
        """What became of its records that the part had taken from the quarantine."""
        bad = {(q.partition, q.offset): (q.reason, q.error) for q in self.request.quarantined}
        mine = {number: place for place, number in held.numbers.items() if _is_in(place, self.read)}
        thrown = {p: o.thrown_away for p, o in self.request.outcomes.items()}
        still_bad = {number: bad[place] for number, place in mine.items() if place in bad}
        thrown_away = [number for number, place in mine.items() if _is_in(place, thrown)]
        return ReplayOutcome(sorted({*mine} - {*still_bad} - {*thrown_away}), thrown_away, still_bad)

    def register(self, held: HeldRecords) -> list[str]:
        """Write all of it, in the caller's transaction. ``held``: what is in quarantine already."""
        made = self.publication.register()
        new = [q for q in self.request.quarantined if (q.partition, q.offset) not in held.numbers]
        fence = self.publication.fence
        insert_quarantined(fence, self.source, self.request.model_copy(update={"quarantined": new}))
        insert_faulty(fence, self.source, self.request)
        return made

    def counted(self, again: int) -> dict[str, int]:
        """What an undo takes away: all that it has counted, but for what is in quarantine as before."""
        counters = {name: count for name, count in self.request.counters if count}
        for name in ("polled", "unparseable", "quarantined") if again else ():
            counters[name] = counters.get(name, 0) - again
        return {name: count for name, count in counters.items() if count}


def is_held(publish_id: uuid.UUID) -> bool:
    """Whether this publish was taken, and waits for the others of its part."""
    return RewindPiece.objects.filter(pk=publish_id).exists()


def unread(part: RewindPart, pieces: Iterable[RewindPiece]) -> list[dict[int, Ranges]]:
    """What of each of the part's readings none of these has read."""
    left = [ranges_by_partition(reading["ranges"]) for reading in part.readings]
    for piece in pieces:
        some = left[piece.reading]
        left[piece.reading] = {p: offsets.subtracted(ranges, piece.read.get(p, [])) for p, ranges in some.items()}
    return [{p: ranges for p, ranges in some.items() if ranges} for some in left]


def hold(part: RewindPart, piece: Piece) -> None:
    """Keep it, in the caller's transaction. Raises ``InvalidInput`` for paths that are not its own."""
    fence, files = piece.publication.fence, piece.request.segments
    request = piece.request
    if part.rewind.dry_run:
        request = request.model_copy(update={"segments": [], "quarantined": [], "faulty": []})
    else:
        check_paths(fence.folder, files)
        paths = [f.path for f in files]
        if any(rows.objects.filter(path__in=paths).exists() for rows in (Segment, HeldFile)):
            raise InvalidInput("One of its files is another publish's.")
        HeldFile.objects.bulk_create(
            [HeldFile(path=path, datasource_id=fence.datasource, holder=request.publish_id) for path in paths]
        )
    RewindPiece.objects.create(
        pk=request.publish_id,
        part=part,
        fence_id=fence.id,
        epoch=fence.epoch,
        reading=part.reading,
        ranges=[[p, start, end] for p, some in piece.read.items() for start, end in some],
        request=request.model_dump_json(),
        rows=sum(f.rows for f in files),
        created_at=fence.at,
    )
    # It has gone on: what fails after it is another failure.
    RewindPart.objects.filter(pk=part.pk).update(attempts=1)


def held_pieces(part: RewindPart, at: datetime) -> Iterator[Piece]:
    """Those of the part, to be written at this time; the rows of their indexers are locked."""
    for row in part.pieces.select_related("fence"):
        fence, source = _locked(row, at)
        request = PublishRequest.model_validate_json(row.request)
        keys = get_or_create_keys(source.id, row.read)
        publication = Publication(row.pk, fence, request.segments, request.counters, request.outcomes, keys)
        yield Piece(publication, source, request, row.read)


@transaction.atomic
def drop(pieces: QuerySet[RewindPiece]) -> None:
    """Forget them. No segment names their files: these are orphans, or were registered."""
    holders = list(pieces.values_list("pk", flat=True))
    HeldFile.objects.filter(holder__in=holders).delete()
    RewindPiece.objects.filter(pk__in=holders).delete()


def drop_unneeded() -> None:
    """Forget those of parts that wait no more, and of deleted datasources."""
    over = ~Q(part__state=RewindPart.State.WAITING) | Q(part__rewind__datasource__deleted_at__isnull=False)
    drop(RewindPiece.objects.filter(over))


def _locked(row: RewindPiece, at: datetime) -> tuple[LockedFence, LockedSource]:
    """Of the indexer that has read it, whatever its epoch is now."""
    task, number = row.fence.task_id, row.fence.number
    with cursor() as c:
        found = c.execute(LOCK_FENCE, (task, number)).fetchone()
    fence = fence_from_row(found, task, number, found[0] if found else row.epoch)
    if fence.source is None:
        raise InvalidInput(f"Task {task} has read no topic.")
    return replace(fence, epoch=row.epoch, at=at), fence.source


def _is_in(place: tuple[int, int], ranges: dict[int, Ranges]) -> bool:
    partition, offset = place
    return any(low <= offset < high for low, high in ranges.get(partition, []))
