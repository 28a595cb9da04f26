"""The publish transaction: segments and progress become visible together, or not at all.

Locks are always taken in this order: the indexer's row; stored offsets, sorted (of a source that has them), or of a
replay its quarantined records, sorted, and the rows of the indexers that had read them; (datasource, interval) rows,
sorted; settled ranges, sorted.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from django.db import DatabaseError, transaction

from controlplane.common.errors import InvalidInput, Unavailable
from controlplane.publishing import claims, replay_publish
from controlplane.publishing.fence import LockedFence, LockedSource, PublishRefused
from controlplane.publishing.publication import Publication, check_counters, keep_schemas
from controlplane.publishing.publish_context import publish_context
from controlplane.publishing.selectors.totals import parse_exceptions_of
from controlplane.publishing.spans import Ranges, spans
from controlplane.quarantine import replays
from controlplane.quarantine.models import FaultyRecord, QuarantinedRecord
from controlplane.sources.models import SourceEvent
from ingestion.specs import offsets
from ingestion.specs.causes import cause_of
from ingestion.specs.counters import UNPUBLISHED_OUTCOMES
from ingestion.specs.messages import protocol
from ingestion.specs.messages.protocol import Outcomes, ParseExceptionTotals, PublishAnswer, PublishRequest, Refusal
from ingestion.specs.messages.publish_limits import excess

_RETRIED = {"40001", "40P01", "23P01"}  # serialization, deadlock, and an overlap that arose since it was looked for
_ATTEMPTS = 5
_PLACE = {"id", "source", "partition", "offset"}
_READ_AGAIN = [f.name for f in QuarantinedRecord._meta.concrete_fields if f.name not in {*_PLACE, "replays"}]
Answer = TypeVar("Answer")


def publish(*, task_id: str, number: int, request: PublishRequest) -> PublishAnswer:
    """Register a batch. Sent again with the same id, it answers as the first time.

    Raises ``PublishRefused`` (fenced, duplicates, abandoned, offsets, generation) and ``InvalidInput``, and of what
    contradicts the metadata store ``IntegrityError``; nothing was changed then.
    """
    beyond = excess(request)
    if beyond:
        raise InvalidInput(beyond)
    settling = _settling(request)
    _check_counters(request, settling)
    return retried(lambda: _publish(task_id, number, request, settling))


def retried(attempt: Callable[[], Answer]) -> Answer:
    for _ in range(_ATTEMPTS):
        try:
            return attempt()
        except DatabaseError as error:
            if getattr(error.__cause__, "sqlstate", None) not in _RETRIED:
                raise
            last = error
    raise Unavailable("The metadata store was too busy to publish; send the same publish again.") from last


class _NewSchemas(Unavailable):
    """Files have columns of which no schema is stored yet."""


def _publish(task_id: str, number: int, request: PublishRequest, settling: dict[int, Ranges]) -> PublishAnswer:
    try:
        return _publish_once(task_id, number, request, settling)
    except _NewSchemas:
        keep_schemas(task_id, number, request.segments)
        return _publish_once(task_id, number, request, settling)


@transaction.atomic
def _publish_once(task_id: str, number: int, request: PublishRequest, settling: dict[int, Ranges]) -> PublishAnswer:
    opened = publish_context(task_id, number, request, settling)
    fence, source, duplicates = opened.fence, opened.source, opened.duplicates
    if opened.seen is not None:
        return _answer_again(request.publish_id, *opened.seen, _parse_exceptions(task_id, request))
    if not opened.schemas:
        raise _NewSchemas("The schemas of its files went while it was published; send the same publish again.")
    publication = Publication(
        request.publish_id, fence, request.segments, request.counters, request.outcomes, opened.keys
    )
    if fence.replay:
        return _publish_replay(publication, source, request, settling)
    _check_progress(source, request, settling)
    if duplicates and not request.progress:
        raise PublishRefused(
            Refusal(code="duplicates", detail="Some of these offsets are settled already.", duplicates=duplicates)
        )
    claims.advance(source, opened.keys, request.progress)
    segment_ids = replace(publication, settles=spans(opened.keys, settling)).register()
    _keep_quarantined(fence, source, request)
    _keep_faulty(fence, source, request)
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
    held = replay_publish.Held.locked(source.id, fence.task_id, settling)
    if held.missing:
        detail = "Some of these records are not held by this replay."
        raise PublishRefused(Refusal(code="duplicates", detail=detail, duplicates=held.missing))
    held.conclude(fence.task_id, request, fence.at)
    segment_ids = publication.register()
    _keep_faulty(fence, source, request)
    totals = _parse_exceptions(fence.task_id, request)
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


def _settling(request: PublishRequest) -> dict[int, Ranges]:
    """Per partition, every offset that this publish ends: all but duplicates, which are settled already."""
    ended = _stored(request)
    for partition, outcomes in request.outcomes.items():
        for ranges in (outcomes.thrown_away, outcomes.unparseable, outcomes.empty, outcomes.gap, outcomes.skipped):
            ended.setdefault(partition, []).extend(ranges)
    settling = {p: offsets.merged(ranges) for p, ranges in ended.items() if ranges}
    for partition, ranges in ended.items():
        if offsets.count(ranges) != offsets.count(settling.get(partition, [])):
            raise InvalidInput(f"Partition {partition}: an offset has two outcomes in one publish.")
    return settling


def _stored(request: PublishRequest) -> dict[int, Ranges]:
    """Per partition, the offsets that segments hold; one of a record with several rows may be in several of them."""
    stored: dict[int, list[offsets.Range]] = {}
    for segment in request.segments:
        for partition, ranges in segment.offsets.items():
            stored.setdefault(partition, []).extend(ranges)
    if not request.counters.further_rows:
        return stored
    once = {partition: offsets.merged(ranges) for partition, ranges in stored.items()}
    again = sum(offsets.count(ranges) - offsets.count(once[partition]) for partition, ranges in stored.items())
    if again > request.counters.further_rows:
        raise InvalidInput(f"{again} offsets stand in a further segment, and there are fewer further rows.")
    return once


def _check_progress(source: LockedSource, request: PublishRequest, settling: dict[int, Ranges]) -> None:
    """What moves a stored offset must say what became of every offset in between."""
    if not source.progress.keeps_offsets:
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
    stored = sum(offsets.count(ranges) for ranges in _stored(request).values())
    said = request.counters
    expected = {
        "published + rolled_up - further_rows": (said.stored, stored),
        "published": (said.published, sum(s.rows for s in request.segments)),
        "thrown_away": (said.thrown_away, _counted(request, lambda o: o.thrown_away)),
        "unparseable": (said.unparseable, _counted(request, lambda o: o.unparseable)),
        "duplicates": (said.duplicates, _counted(request, lambda o: o.duplicate)),
        "quarantined": (said.quarantined, len(request.quarantined)),
        **{name: (getattr(said, name), 0) for name in UNPUBLISHED_OUTCOMES},
    }
    if len(request.faulty) > said.processed_with_error:
        expected["processed_with_error"] = (said.processed_with_error, len(request.faulty))
    check_counters(expected, "offsets")


def _counted(request: PublishRequest, of: Callable[[Outcomes], Ranges]) -> int:
    return sum(offsets.count(of(o)) for o in request.outcomes.values())


def _keep_quarantined(fence: LockedFence, source: LockedSource, request: PublishRequest) -> None:
    kept = [
        QuarantinedRecord(
            **_about(record, fence, source),
            reason=record.reason,
            cause=cause_of(record.reason, record.error).fingerprint,
            key=record.key,
            headers=replays.packed(record.headers),
            publish_id=request.publish_id,
        )
        for record in request.quarantined
    ]
    # One that is there already is read again, since stored offsets were moved back.
    QuarantinedRecord.objects.bulk_create(
        kept, update_conflicts=True, unique_fields=["source", "partition", "offset"], update_fields=_READ_AGAIN
    )


def _keep_faulty(fence: LockedFence, source: LockedSource, request: PublishRequest) -> None:
    kept = [
        FaultyRecord(
            **_about(record, fence, source),
            cause=cause_of(FaultyRecord.reason, record.error).fingerprint,
            payload_size=record.payload_size,
        )
        for record in request.faulty
    ]
    FaultyRecord.objects.bulk_create(kept)


def _about(
    record: protocol.QuarantinedRecord | protocol.FaultyRecord, fence: LockedFence, source: LockedSource
) -> dict[str, Any]:
    """What both kinds of kept records have."""
    return {
        "source_id": source.id,
        "datasource_id": fence.datasource,
        "task_id": fence.task_id,
        "created_at": fence.at,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "delivery_count": record.delivery_count,
        "error": record.error,
        "payload": record.payload,
    }


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
