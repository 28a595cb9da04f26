"""The publish transaction: segments and progress become visible together, or not at all.

Locks are always taken in this order: the indexer's row; stored offsets, sorted (of a source that has them), or of a
replay its quarantined records, sorted, and the rows of the indexers that had read them, or of a rewind its part and
those; (datasource, interval) rows, sorted; settled ranges, sorted.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from django.db import DatabaseError, transaction

from controlplane.common.errors import InvalidInput, Unavailable
from controlplane.publishing import claims, replay_publish, rewind_pieces, rewinds
from controlplane.publishing.fence import LockedFence, LockedSource, PublishRefused
from controlplane.publishing.kept_records import insert_faulty, insert_quarantined
from controlplane.publishing.postgres_ranges import Ranges, spans
from controlplane.publishing.publication import Publication, check_counters, store_schemas
from controlplane.publishing.publish_context import publish_context
from controlplane.publishing.selectors.totals import parse_exceptions_of
from controlplane.sources.models import SourceEvent
from ingestion.specs import offsets
from ingestion.specs.counters import UNPUBLISHED_OUTCOMES
from ingestion.specs.messages.protocol import Outcomes, ParseExceptionTotals, PublishAnswer, PublishRequest, Refusal
from ingestion.specs.messages.publish_limits import excess

_RETRY_SQLSTATES = {
    "40001",
    "40P01",
    "23P01",
}  # serialization, deadlock, and an overlap that arose since it was looked for
_ATTEMPTS = 5
Answer = TypeVar("Answer")


def publish(*, task_id: str, number: int, request: PublishRequest) -> PublishAnswer:
    """Register a batch. Sent again with the same id, it answers as the first time.

    Raises ``PublishRefused`` (fenced, duplicates, abandoned, offsets, generation) and ``InvalidInput``, and of what
    contradicts the metadata store ``IntegrityError``; nothing was changed then.
    """
    fault = excess(request)
    if fault:
        raise InvalidInput(fault)
    settling = _ended_offsets(request)
    _check_counters(request, settling)
    try:
        return with_retries(lambda: _publish(task_id, number, request, settling))
    except claims.StoreWentBack as refused:
        refused.raise_alarm(task_id)
        raise


def with_retries(attempt: Callable[[], Answer]) -> Answer:
    for _ in range(_ATTEMPTS):
        try:
            return attempt()
        except DatabaseError as error:
            if getattr(error.__cause__, "sqlstate", None) not in _RETRY_SQLSTATES:
                raise
            last = error
    raise Unavailable("The metadata store was too busy to publish; send the same publish again.") from last


class _NewSchemas(Unavailable):
    """Files have columns of which no schema is stored yet."""


def _publish(task_id: str, number: int, request: PublishRequest, settling: dict[int, Ranges]) -> PublishAnswer:
    try:
        return _publish_once(task_id, number, request, settling)
    except _NewSchemas:
        store_schemas(task_id, number, request.segments)
        return _publish_once(task_id, number, request, settling)


@transaction.atomic
def _publish_once(task_id: str, number: int, request: PublishRequest, settling: dict[int, Ranges]) -> PublishAnswer:
    context = publish_context(task_id, number, request, settling)
    fence, source, duplicates = context.fence, context.source, context.duplicates
    if context.earlier_publish is not None:
        return _answer_again(request.publish_id, *context.earlier_publish, _parse_exceptions(task_id, request))
    if not context.schemas:
        raise _NewSchemas("The schemas of its files went while it was published; send the same publish again.")
    publication = Publication(
        request.publish_id, fence, request.segments, request.counters, request.outcomes, context.keys
    )
    if fence.replay:
        return _publish_replay(publication, source, request, settling)
    if fence.rewinds:
        return _publish_rewind(publication, source, request, settling)
    _check_progress(fence, source, request, settling)
    if duplicates and not request.progress:
        raise PublishRefused(
            Refusal(code="duplicates", detail="Some of these offsets are settled already.", duplicates=duplicates)
        )
    if not fence.bounded:
        claims.advance(source, context.keys, request.progress)
    if duplicates:  # another reader of the source was first: what is left of these comes with the next claim
        where = ", ".join(f"{p}: {start} to {end - 1}" for p, ranges in duplicates.items() for start, end in ranges[:3])
        detail = f"Another reader has settled some of these offsets ({where})."
        raise PublishRefused(Refusal(code="offsets", detail=detail, stored=dict.fromkeys(duplicates)))
    segment_ids = replace(publication, settles=spans(context.keys, settling)).register()
    insert_quarantined(fence, source, request)
    insert_faulty(fence, source, request)
    _raise_alarms(fence, source, request)
    return PublishAnswer(
        publish_id=request.publish_id, segment_ids=segment_ids, parse_exceptions=_parse_exceptions(task_id, request)
    )


def _publish_replay(
    publication: Publication, source: LockedSource, request: PublishRequest, settling: dict[int, Ranges]
) -> PublishAnswer:
    """The offsets are settled since the records went into quarantine: what makes it once is the records' state."""
    if request.progress:
        raise InvalidInput("A replay has no stored offsets to move.")
    fence = publication.fence
    records = replay_publish.HeldRecords.locked(source.id, fence.task_id, settling)
    if records.missing:
        detail = "Some of these records are not held by this replay."
        raise PublishRefused(Refusal(code="duplicates", detail=detail, duplicates=records.missing))
    records.conclude(fence.task_id, request, fence.at)
    segment_ids = publication.register()
    insert_faulty(fence, source, request)
    totals = _parse_exceptions(fence.task_id, request)
    return PublishAnswer(publish_id=request.publish_id, segment_ids=segment_ids, parse_exceptions=totals)


def _publish_rewind(
    publication: Publication, source: LockedSource, request: PublishRequest, settling: dict[int, Ranges]
) -> PublishAnswer:
    """The offsets are settled already: what makes it once is the state of the rewind's part."""
    if rewind_pieces.is_held(request.publish_id):
        return PublishAnswer(publish_id=request.publish_id, segment_ids=[])
    segment_ids = rewinds.publish_part(publication, source, request, settling)
    totals = _parse_exceptions(publication.fence.task_id, request)
    return PublishAnswer(publish_id=request.publish_id, segment_ids=segment_ids, parse_exceptions=totals)


def _answer_again(
    publish_id: uuid.UUID, abandoned: bool, segment_ids: list[str], totals: ParseExceptionTotals | None
) -> PublishAnswer:
    if abandoned:
        raise PublishRefused(Refusal(code="abandoned", detail="This publish was given up and may not commit."))
    return PublishAnswer(publish_id=publish_id, segment_ids=segment_ids, parse_exceptions=totals)


def _parse_exceptions(task_id: str, request: PublishRequest) -> ParseExceptionTotals | None:
    """Summed up only for a publish that adds to them: most do not."""
    brings_some = request.counters.unparseable or request.counters.processed_with_error
    return parse_exceptions_of(task_id) if brings_some else None


def _ended_offsets(request: PublishRequest) -> dict[int, Ranges]:
    """Per partition, every offset that this publish ends: all but duplicates, which are settled already."""
    ended = _stored_offsets(request)
    for partition, outcomes in request.outcomes.items():
        for ranges in (outcomes.thrown_away, outcomes.unparseable, outcomes.empty, outcomes.gap, outcomes.skipped):
            ended.setdefault(partition, []).extend(ranges)
    settling = {p: offsets.merged(ranges) for p, ranges in ended.items() if ranges}
    for partition, ranges in ended.items():
        if offsets.count(ranges) != offsets.count(settling.get(partition, [])):
            raise InvalidInput(f"Partition {partition}: an offset has two outcomes in one publish.")
    return settling


def _stored_offsets(request: PublishRequest) -> dict[int, Ranges]:
    """Per partition, the offsets that segments hold; one of a record with several rows may be in several of them."""
    stored: dict[int, list[offsets.Range]] = {}
    for segment in request.segments:
        for partition, ranges in segment.offsets.items():
            stored.setdefault(partition, []).extend(ranges)
    if not request.counters.further_rows:
        return stored
    merged = {partition: offsets.merged(ranges) for partition, ranges in stored.items()}
    repeated = sum(offsets.count(ranges) - offsets.count(merged[partition]) for partition, ranges in stored.items())
    if repeated > request.counters.further_rows:
        raise InvalidInput(f"{repeated} offsets stand in a further segment, and there are fewer further rows.")
    return merged


def _check_progress(
    fence: LockedFence, source: LockedSource, request: PublishRequest, settling: dict[int, Ranges]
) -> None:
    """What moves a stored offset must say what became of every offset in between; a bounded read's publish, too."""
    if not (source.progress.keeps_offsets or fence.bounded):
        if request.progress:
            raise InvalidInput(f"A {source.progress.label} has no stored offsets to move.")
        return
    moved = {p: [(a.start, a.end)] for p, a in request.progress.items()}
    for partition in sorted({*moved, *settling}):
        if moved.get(partition) != settling.get(partition):
            raise InvalidInput(
                f"Partition {partition}: the progress is {moved.get(partition)}, "
                f"but the outcomes are those of {settling.get(partition)}."
            )


def _check_counters(request: PublishRequest, settling: dict[int, Ranges]) -> None:
    """The counters must say what the offsets say."""
    stored = sum(offsets.count(ranges) for ranges in _stored_offsets(request).values())
    counters = request.counters
    expected = {
        "published + rolled_up - further_rows": (counters.stored, stored),
        "published": (counters.published, sum(s.rows for s in request.segments)),
        "thrown_away": (counters.thrown_away, _count_offsets(request, lambda o: o.thrown_away)),
        "unparseable": (counters.unparseable, _count_offsets(request, lambda o: o.unparseable)),
        "duplicates": (counters.duplicates, _count_offsets(request, lambda o: o.duplicate)),
        "quarantined": (counters.quarantined, len(request.quarantined)),
        **{name: (getattr(counters, name), 0) for name in UNPUBLISHED_OUTCOMES},
    }
    if len(request.faulty) > counters.processed_with_error:
        expected["processed_with_error"] = (counters.processed_with_error, len(request.faulty))
    check_counters(expected, "offsets")


def _count_offsets(request: PublishRequest, ranges_of: Callable[[Outcomes], Ranges]) -> int:
    return sum(offsets.count(ranges_of(o)) for o in request.outcomes.values())


def _raise_alarms(fence: LockedFence, source: LockedSource, request: PublishRequest) -> None:
    def alarm(kind: SourceEvent.Kind, detail: str) -> None:
        SourceEvent.objects.create(
            datasource_id=fence.datasource,
            source_id=source.id,
            kind=kind,
            alarm=True,
            task_id=fence.task_id,
            detail=detail,
        )

    for partition, outcomes in request.outcomes.items():
        for start, end in outcomes.gap:
            where = f"{source.topic} partition {partition}"
            alarm(
                SourceEvent.Kind.GAP,
                f"Retention removed offsets {start} to {end - 1} of {where} before they were read.",
            )
        for start, end in outcomes.skipped:
            alarm(
                SourceEvent.Kind.OFFSET_RESET,
                f"Offsets {start} to {end - 1} of {source.topic} partition {partition} were skipped: the stored offset "
                "no longer existed, and the spec says to continue at the latest.",
            )
    refused = [r for r in request.quarantined if r.reason == "refused"]
    if refused:
        place = f"partition {refused[0].partition}, offset {refused[0].offset}"
        alarm(
            SourceEvent.Kind.REFUSED,
            f"Publishes were refused because of {len(refused)} records of {source.topic}. These are in quarantine now. "
            f"The first, at {place}: {refused[0].error[:500]}",
        )
    if request.early_duplicates:
        alarm(
            SourceEvent.Kind.EARLY_DUPLICATE,
            f"{request.early_duplicates} records were already settled at their first delivery and were dropped. "
            "This is normal after a repair, or after a restart of Kafka, which forgets deliveries. Otherwise "
            "investigate it.",
        )
