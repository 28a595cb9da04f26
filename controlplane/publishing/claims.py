"""Stored offsets: where a source that keeps them here goes on, and how a publish moves them.

A publish names for each partition the offset it began at, and the generation if partitions change hands while it runs;
both must be what is stored (compare and set), or nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection, transaction

from controlplane.common.database import cursor
from controlplane.common.errors import InvalidInput
from controlplane.publishing.fence import LockedFence, LockedSource, PublishRefused, lock_fence
from controlplane.publishing.models import MAX_OFFSET, ProgressKey, Publish
from controlplane.publishing.offset_gaps import extents
from controlplane.publishing.pieces import Piece, first_unsettled
from controlplane.publishing.postgres_ranges import get_or_create_keys, span
from controlplane.sources.models import Source, SourceEvent
from ingestion.specs.messages.protocol import Advance, ClaimAnswer, Claimed, ClaimRequest, Refusal, Reset
from ingestion.specs.offsets import Range


@dataclass(frozen=True)
class _StoredOffset:
    next_offset: int | None
    generation: int
    attempts: int


@transaction.atomic
def claim(
    *, task_id: str, number: int, request: ClaimRequest, may_reset: bool, topic_missed: bool = False
) -> ClaimAnswer:
    """Tell an indexer where to go on; see ``ClaimRequest``. Raises ``PublishRefused`` (fenced), ``InvalidInput``.

    ``may_reset``: whether the spec lets stored offsets be moved that Kafka has no records for.
    ``topic_missed``: the topic came to be after the reader, which begins with all of it whatever the spec says.
    """
    fence = lock_fence(task_id, number, request.epoch)
    source = fence.reading(request.topic_id)
    _check(source, request, may_reset)
    keys = get_or_create_keys(source.id, {*request.partitions, *request.starts, *request.resets})
    stored = _lock_stored(keys)
    first_run = not topic_missed and _is_first_run(source.id)
    if request.starts and first_run == request.first_run:
        first = {p: o for p, o in request.starts.items() if stored[p].next_offset is None}
        _store_offsets(keys, first, begins=True)
    for partition, reset in request.resets.items():
        if stored[partition].next_offset == reset.stored:
            _reset(fence, source, keys[partition], partition, reset)
    if request.new_generation or request.new_process:
        _bump_generation([keys[p] for p in request.partitions], request)
    after = _pass_settled(_lock_stored({p: keys[p] for p in request.partitions}), keys)
    return ClaimAnswer(partitions=after, first_run=not topic_missed and _is_first_run(source.id))


def _pass_settled(stored: Mapping[int, _StoredOffset], keys: Mapping[int, int]) -> dict[int, Claimed]:
    """Where each partition goes on. A bounded read may have settled what comes next: a stored offset moves past it."""
    begun = {p: s.next_offset for p, s in stored.items() if s.next_offset is not None}
    pieces = first_unsettled([Piece(keys[p], offset, MAX_OFFSET) for p, offset in begun.items()])
    next_pieces = {p: piece for p, piece in zip(begun, pieces, strict=True) if piece is not None}
    passed = {p: piece.start for p, piece in next_pieces.items() if piece.start != begun[p]}
    if passed:
        _store_offsets(keys, passed)
    return {p: _claimed(s, next_pieces.get(p)) for p, s in stored.items()}


def _claimed(stored: _StoredOffset, piece: Piece | None) -> Claimed:
    start, end = (stored.next_offset, MAX_OFFSET) if piece is None else (piece.start, piece.end)
    until = None if end == MAX_OFFSET else end
    return Claimed(next_offset=start, until=until, generation=stored.generation, attempts=stored.attempts)


@transaction.atomic
def claim_within(
    *, task_id: str, number: int, request: ClaimRequest, ranges: Sequence[tuple[int, int, int]]
) -> ClaimAnswer:
    """Tell an indexer of a bounded read what comes next of its partitions: what is settled already is left out.

    ``ranges``: partition, start and end of all that the task reads. Raises ``PublishRefused`` (fenced).
    """
    fence = lock_fence(task_id, number, request.epoch)
    source = fence.reading(request.topic_id)
    keys = get_or_create_keys(source.id, request.partitions)
    if not source.progress.keeps_offsets:
        _note_beginning(source.id)
    wanted = [(p, Piece(keys[p], start, end)) for p, start, end in sorted(ranges) if p in keys]
    pieces = first_unsettled([piece for _, piece in wanted])
    next_pieces: dict[int, Piece] = {}
    for (partition, _), piece in zip(wanted, pieces, strict=True):
        if piece is not None:
            next_pieces.setdefault(partition, piece)
    attempts = fence.epoch - _last_published_epoch(fence)
    claimed = {
        p: Claimed(next_offset=None, generation=0)
        if (piece := next_pieces.get(p)) is None
        else Claimed(next_offset=piece.start, until=piece.end, generation=0, attempts=attempts)
        for p in request.partitions
    }
    return ClaimAnswer(partitions=claimed, first_run=False)


def _note_beginning(source: int) -> None:
    """Of a share group: what it has settled so far begins where it began itself."""
    begins = {p: extent.start for p, extent in extents(Source.objects.get(pk=source)).items()}
    for partition, offset in begins.items():
        ProgressKey.objects.filter(source=source, partition=partition, began_at=None).update(began_at=offset)


def _last_published_epoch(fence: LockedFence) -> int:
    """0 before the first publish."""
    publishes = Publish.objects.filter(fence_id=fence.id, abandoned=False).order_by("-created_at")
    return publishes.values_list("epoch", flat=True).first() or 0


def _check(source: LockedSource, request: ClaimRequest, may_reset: bool) -> None:
    if not source.progress.keeps_offsets:
        label = source.progress.label
        raise InvalidInput(f"The broker distributes a {label}'s records: there is nothing to claim.")
    if request.resets and not may_reset:
        raise InvalidInput("tuningConfig.resetOffsetAutomatically is false: stored offsets are not moved.")


class StoreWentBack(PublishRefused):
    """A stored offset is before one up to which the indexer's publishes were answered, and nobody has reset it.

    The metadata store has lost commits: its standby did not have them when it took over.
    """

    def __init__(self, refusal: Refusal, source_id: int) -> None:
        super().__init__(refusal)
        self._source_id = source_id

    def raise_alarm(self, task_id: str) -> None:
        """In a transaction of its own: that of the publish is rolled back."""
        source = Source.objects.get(pk=self._source_id)
        report_lost_publishes(source.datasource_id, source.pk, task_id, self.refusal.detail)


def report_lost_publishes(datasource_id: int, source_id: int | None, task_id: str, detail: str) -> None:
    """Raise an alarm. ``detail``: a sentence that says what the indexer believed, and what is stored."""
    SourceEvent.objects.create(
        datasource_id=datasource_id,
        source_id=source_id,
        kind=SourceEvent.Kind.OFFSET_RESET,
        alarm=True,
        task_id=task_id,
        detail=(
            f"PostgreSQL has lost publishes that it had answered, as after a failover with asynchronous "
            f"replication. {detail} The records from the stored offsets on are read again. Check "
            "what people changed shortly before, and begin readers of the feed again."
        ),
    )


def advance(source: LockedSource, keys: Mapping[int, int], progress: Mapping[int, Advance]) -> None:
    """Move the stored offsets of a publish. Raises ``PublishRefused`` (offsets, generation)."""
    if not progress:
        return
    stored = _lock_stored({p: keys[p] for p in progress})
    old = [p for p, a in progress.items() if a.generation not in (None, stored[p].generation)]
    if old:
        detail = f"{_partition_names(source, old)} went to another member meanwhile."
        raise PublishRefused(
            Refusal(code="generation", detail=detail, stored={p: stored[p].next_offset for p in sorted(old)})
        )
    mismatched = [p for p, a in progress.items() if a.start != stored[p].next_offset]
    if mismatched:
        where = ", ".join(f"{p}: {progress[p].start}, stored {stored[p].next_offset}" for p in sorted(mismatched))
        refusal = Refusal(
            code="offsets",
            detail=f"This publish of {source.topic} does not begin at the stored offsets ({where}).",
            stored={p: stored[p].next_offset for p in sorted(mismatched)},
        )
        behind = [p for p in mismatched if progress[p].start > (stored[p].next_offset or 0)]
        raise StoreWentBack(refusal, source.id) if behind else PublishRefused(refusal)
    _store_offsets(keys, {p: a.end for p, a in progress.items()}, published=True)


def _partition_names(source: LockedSource, partitions: list[int]) -> str:
    noun = "partition" if len(partitions) == 1 else "partitions"
    return f"{noun.capitalize()} {', '.join(map(str, sorted(partitions)))} of {source.topic}"


def _lock_stored(keys: Mapping[int, int]) -> dict[int, _StoredOffset]:
    """What is stored of each partition; its row is locked, in the order of keys, until the transaction ends."""
    by_key = {key: partition for partition, key in keys.items()}
    with cursor() as c:
        rows = c.execute(
            "SELECT id, next_offset, generation, attempts FROM publishing_progresskey WHERE id = ANY(%s)"
            " ORDER BY id FOR UPDATE",
            (sorted(by_key),),
        ).fetchall()
    return {by_key[row[0]]: _StoredOffset(*row[1:]) for row in rows}


def _store_offsets(
    keys: Mapping[int, int], offsets: Mapping[int, int], published: bool = False, begins: bool = False
) -> None:
    """``begins``: reading begins there, or before."""
    with cursor() as c:
        c.execute(
            "UPDATE publishing_progresskey k SET next_offset = w.next, attempts = k.attempts * %s,"
            " began_at = CASE WHEN %s THEN least(k.began_at, w.next) ELSE k.began_at END"
            " FROM unnest(%s::int8[], %s::int8[]) AS w(key, next)"
            " WHERE k.id = w.key",
            (int(not published), begins, [keys[p] for p in offsets], list(offsets.values())),
        )


def _bump_generation(keys: list[int], request: ClaimRequest) -> None:
    with cursor() as c:
        c.execute(
            "UPDATE publishing_progresskey SET generation = generation + %s, attempts = attempts + %s"
            " WHERE id = ANY(%s)",
            (int(request.new_generation), int(request.new_process), keys),
        )


@transaction.atomic
def store_first_offsets(source: Source, offsets: Mapping[int, int]) -> None:
    """Store where a source begins that was never read, by partition; of one that was, nothing is changed."""
    keys = get_or_create_keys(source.pk, offsets)
    _lock_stored(keys)  # an indexer that claims them is before this or after
    if _is_first_run(source.pk):
        _store_offsets(keys, offsets, begins=True)


def _is_first_run(source_id: int) -> bool:
    """Whether nothing was ever stored for the source, nor for an older topic of its name."""
    source = Source.objects.get(pk=source_id)
    same = Source.objects.filter(
        kind=source.kind, cluster_id=source.cluster_id, group=source.group, topic=source.topic
    ).values("pk")
    others = Source.objects.filter(pk__in=same).exclude(pk=source_id)
    return not others.exists() and not ProgressKey.objects.filter(source=source, next_offset__isnull=False).exists()


def _reset(fence: LockedFence, source: LockedSource, key: int, partition: int, reset: Reset) -> None:
    """Move a stored offset that lies beyond the log's end back to it; what was settled beyond is forgotten."""
    if reset.to >= reset.stored:
        raise InvalidInput(
            "A stored offset moves forward only by a publish that has the outcomes of the offsets between."
        )
    _forget_settled(key, reset.to, reset.stored)
    _store_offsets({partition: key}, {partition: reset.to}, begins=True)
    SourceEvent.objects.create(
        datasource_id=fence.datasource,
        source_id=source.id,
        kind=SourceEvent.Kind.OFFSET_RESET,
        alarm=True,
        task_id=fence.task_id,
        detail=(
            f"The stored offset {reset.stored} of {source.topic} partition {partition} lies beyond the log's end. It "
            f"was reset to {reset.to}. The broker lost records that are stored here."
        ),
    )


def reset_stored_offsets(
    source: Source, task_ids: list[str], offsets: Mapping[int, int] | None, who: str, position: str = ""
) -> None:
    """Set stored offsets, or with None forget them all; in the caller's transaction.

    ``position``: what ``who`` asked for, where the offsets come from one.

    The tasks' indexers are fenced first, under the locks that a publish takes: what is on its way is refused whole, and
    they begin again where the offsets are then.
    """
    _fence_tasks(task_ids)
    all_keys = dict(ProgressKey.objects.filter(source=source).values_list("partition", "id"))
    keys = all_keys if offsets is None else get_or_create_keys(source.pk, offsets)
    before = _lock_stored(keys)
    for partition, key in keys.items():
        first = 0 if offsets is None else offsets[partition]
        _forget_settled(key, first, MAX_OFFSET)
    if offsets is None:
        forgotten = ProgressKey.objects.filter(source=source)
        forgotten.update(next_offset=None, began_at=None, begin_offset=None, attempts=0)
    else:
        _store_offsets(keys, offsets, published=True, begins=True)
    old_text = ", ".join(f"{p}: {s.next_offset}" for p, s in sorted(before.items()))
    new_text = "forgotten" if offsets is None else ", ".join(f"{p}: {o}" for p, o in sorted(offsets.items()))
    to = f" to {position}" if position else ""
    SourceEvent.objects.create(
        datasource_id=source.datasource_id,
        source=source,
        kind=SourceEvent.Kind.OFFSET_RESET,
        detail=(
            f"{who} reset the stored offsets of {source.topic}{to}. They were {old_text or 'none'}, and are {new_text}."
        ),
    )


def skip_stored_offsets(
    source: Source, task_ids: list[str], begins: Mapping[int, int], ends: Mapping[int, int], why: str
) -> dict[int, Range]:
    """Set stored offsets forward to ``ends``, in the caller's transaction; answer what was passed over, by partition.

    Nothing settled is forgotten, and no stored offset goes back: a partition that is already as far is left out.
    ``begins``: where a partition without a stored offset would begin. What is on its way is refused whole, as in a
    reset. Where each reader began is kept, or what was passed over would not count as its lag.
    """
    _fence_tasks(task_ids)
    keys = get_or_create_keys(source.pk, ends)
    stored = _lock_stored(keys)
    starts = {p: begins[p] if (offset := stored[p].next_offset) is None else offset for p in ends}
    passed = {p: (starts[p], end) for p, end in sorted(ends.items()) if starts[p] < end}
    _store_offsets(keys, {p: end for p, (_, end) in passed.items()}, published=True)
    for partition, (start, _) in passed.items():
        ProgressKey.objects.filter(pk=keys[partition], begin_offset=None).update(begin_offset=start)
    if passed:
        SourceEvent.objects.create(
            datasource_id=source.datasource_id, source=source, kind=SourceEvent.Kind.OFFSET_RESET, detail=why
        )
    return passed


def _fence_tasks(task_ids: list[str]) -> None:
    with cursor() as c:
        c.execute("SELECT id FROM publishing_indexerfence WHERE task_id = ANY(%s) ORDER BY id FOR UPDATE", (task_ids,))
        c.execute("UPDATE publishing_indexerfence SET epoch = epoch + 1 WHERE task_id = ANY(%s)", (task_ids,))


def _forget_settled(key: int, start: int, end: int) -> None:
    """What is settled of ``[start, end)`` is not any more."""
    with connection.cursor() as c:
        removed = span(key, start, end)
        c.execute("UPDATE publishing_settledrange SET span = span - %s WHERE span && %s", [removed, removed])
        c.execute("DELETE FROM publishing_settledrange WHERE isempty(span)")
