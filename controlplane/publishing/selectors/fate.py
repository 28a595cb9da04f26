"""What became of one record: from receipts, the quarantine, and where those were folded, the settled ranges."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from controlplane.common.errors import InvalidInput, NotFound
from controlplane.common.text import storable
from controlplane.datasources.masked_querysets import conceal
from controlplane.publishing.models import (
    MAX_OFFSET,
    MAX_PARTITION,
    OFFSET_BITS,
    ProgressKey,
    Receipt,
    RewindPart,
    SettledRange,
)
from controlplane.publishing.postgres_ranges import span
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import Segment
from controlplane.segments.selectors.lineage import Lineage, current_holders
from controlplane.sources.models import Source
from controlplane.teams.models import User
from controlplane.teams.permissions import visible

_UNREAD = ("gap", "skipped", "empty")  # outcomes of records that no indexer has had
_WAITING = "Not settled yet: Kafka has not delivered it, or an indexer holds it."
_AT_LATEST = (
    "If it was written before the first poll of the {}, Headgate does not read it: without useEarliestOffset, reading "
    "starts at the latest offset."
)

_EXPLANATION = {
    "stored": "It is stored in the segments named here.",
    "thrown_away": "Thrown away: the filter dropped it, its time was outside the window, or it has no value.",
    "unparseable": "Headgate could not read it. Its payload is in quarantine.",
    "duplicate": "Delivered again after it had been settled; this delivery was dropped.",
    "empty": "There is no record at this offset: a transaction marker, an aborted or a compacted record.",
    "gap": "Retention removed it before it was read.",
    "skipped": "Skipped: somebody reset the stored offset to the latest one.",
    "settled": "Its final outcome is recorded. The details are no longer stored.",
}


@dataclass(frozen=True)
class FateSource:
    """The reader of a topic that read (or is to read) the record: a share group, or a supervisor's stored offsets."""

    kind: str
    group: str
    topic: str
    topic_id: str
    cluster_id: str
    datasource: str
    current: bool


@dataclass(frozen=True)
class FateSegment:
    """A segment that holds a row of the record, or one of a few of which one does."""

    id: uuid.UUID
    identifier: str
    path: str
    interval_start: datetime
    interval_end: datetime
    rows: int
    task_id: str  # that wrote it: the one that read the record, or the compaction that merged the segment it was in
    removed: str = ""  # by whom and when it was taken out of use; empty while it is in use


@dataclass(frozen=True)
class Fate:
    """One thing that happened to the record."""

    source: FateSource
    outcome: str  # a receipt's, or ``settled``, or ``unknown``
    explanation: str
    publish_id: uuid.UUID | None = None
    task_id: str = ""
    indexer: int | None = None
    at: datetime | None = None
    segments: list[FateSegment] = field(default_factory=list)
    quarantined_id: int | None = None
    error: str = ""


def record_fate(user: User, *, topic: str, partition: int, offset: int, group: str | None = None) -> list[Fate]:
    """All that is known of a record, by source (the topic's present id first) and time; at least one entry a source.

    Raises ``InvalidInput`` (numbers out of range) and ``NotFound`` (no datasource of the user's reads the topic).
    """
    if not 0 <= partition <= MAX_PARTITION:
        raise InvalidInput(f"partition must be 0 to {MAX_PARTITION}.")
    if not 0 <= offset <= MAX_OFFSET:
        raise InvalidInput(f"offset must be 0 to {MAX_OFFSET}.")
    sources = _sources(user, topic, group)
    if not sources:
        through = f" as {group!r}" if group else ""
        raise NotFound(f"No datasource of yours reads topic {topic!r}{through}.")
    return [fate for source in sources for fate in _fates(user, source, partition, offset)]


def outcomes_at(source: Source, partition: int, offset: int) -> set[str]:
    """What receipts say of an offset; only ``settled`` where they are no longer kept; nothing if it is not settled."""
    key = ProgressKey.objects.filter(source=source, partition=partition).first()
    if key is None or offset > MAX_OFFSET:
        return set()
    number = (key.pk << OFFSET_BITS) + offset
    receipts = Receipt.objects.filter(hull__contains=number)
    outcomes = {outcome for receipt in receipts for outcome, _ in _outcomes(receipt, offset)}
    if outcomes or not SettledRange.objects.filter(span__contains=number).exists():
        return outcomes
    return {"settled"}


def _sources(user: User, topic: str, group: str | None) -> list[Source]:
    if not storable(topic) or not storable(group or ""):
        return []
    sources = Source.objects.filter(visible(user, "datasource__team"), topic=topic).select_related("datasource")
    if group is not None:
        sources = sources.filter(group=group)
    return list(sources.order_by("-current", "group", "-id"))


def _fates(user: User, source: Source, partition: int, offset: int) -> list[Fate]:
    fate_source = _fate_source(source)
    key = ProgressKey.objects.filter(source=source, partition=partition).first()
    if key is None and source.decoded_as_id is not None:
        return [Fate(fate_source, "unknown", "Nobody reads this topic. Its imported records are in quarantine.")]
    if key is None:
        nothing = f"This reader has published nothing of partition {partition} yet."
        return [Fate(fate_source, "unknown", " ".join([nothing, *_latest_caveat(source, partition)]))]
    number = (key.pk << OFFSET_BITS) + offset
    fates = list(_receipt_fates(user, fate_source, source, partition, offset, number))
    if fates:
        return fates
    settled = SettledRange.objects.filter(span__contains=number).first()
    if settled is not None:
        return [Fate(fate_source, "settled", _EXPLANATION["settled"], at=settled.settled_at)]
    return [Fate(fate_source, "unknown", _why_unknown(source, key, offset))]


def _fate_source(source: Source) -> FateSource:
    return FateSource(
        kind=source.get_kind_display(),
        group=source.group,
        topic=source.topic,
        topic_id=source.topic_id,
        cluster_id=source.cluster_id,
        datasource=source.datasource.name,
        current=source.current,
    )


def _receipt_fates(
    user: User, fate_source: FateSource, source: Source, partition: int, offset: int, number: int
) -> Iterator[Fate]:
    quarantined = QuarantinedRecord.objects.filter(source=source, partition=partition, offset=offset)
    poison = quarantined.shown_to(user).defer("payload").first()
    for receipt in Receipt.objects.filter(hull__contains=number).order_by("created_at", "id"):
        for outcome, indexes in _outcomes(receipt, offset):
            record = poison if outcome in ("unparseable", *_UNREAD) else None
            lineage = current_holders(receipt.segment_ids[i] for i in indexes)
            conceal(user, lineage.segments)
            segments = _segments(lineage.segments)
            yield Fate(
                source=fate_source,
                outcome=outcome,
                explanation=_explanation(outcome, receipt, poison, lineage),
                publish_id=receipt.publish_id,
                task_id=receipt.task_id,
                indexer=receipt.indexer,
                at=receipt.created_at,
                segments=segments,
                quarantined_id=record.pk if record else None,
                error=record.error if record else "",
            )


def _explanation(outcome: str, receipt: Receipt, poison: QuarantinedRecord | None, lineage: Lineage) -> str:
    if outcome == "unparseable":
        return _quarantine_text(poison)
    text = _stored_text(lineage) if outcome == "stored" else _EXPLANATION.get(outcome, "")
    if poison is not None and outcome in _UNREAD:
        return f"{text} It was imported from a dead-letter topic into the quarantine."
    if receipt.replay and RewindPart.objects.filter(publish_ids__contains=[receipt.publish_id]).exists():
        return f"A rewind read it again. {text}"
    return f"A replay took it from the quarantine. {text}" if receipt.replay else text


def _stored_text(lineage: Lineage) -> str:
    removals = [s.removal for s in lineage.segments if not s.used and s.removal is not None] + lineage.killed
    if not removals:
        return _EXPLANATION["stored"]
    if any(s.used for s in lineage.segments):
        return "It is stored in segments named here, or was in one that was removed since."
    if all(r.rewound for r in removals):
        return f"Stored, then replaced {removals[0].sentence}."
    return f"Stored, then removed {removals[0].sentence}. It is not read again."


def _quarantine_text(poison: QuarantinedRecord | None) -> str:
    """What has become of a record that could not be read."""
    if poison is None:
        return "It could not be read as a row. Its payload has been purged from the quarantine."
    states = QuarantinedRecord.State
    if poison.state == states.PRODUCED:
        where = f"partition {poison.produced_partition}, offset {poison.produced_offset}"
        return f"It could not be read as a row. It was produced again at {where} of the topic."
    if poison.state == states.REPLAYING:
        return f"{_EXPLANATION['unparseable']} Task {poison.replay_id} is replaying it."
    if poison.state in (states.STORED, states.THROWN_AWAY):
        return f"It could not be read as a row then. Task {poison.replay_id} has replayed it since."
    return _EXPLANATION["unparseable"]


def _outcomes(receipt: Receipt, offset: int) -> Iterator[tuple[str, list[int]]]:
    """The outcomes that this receipt gives the offset, with indexes into its segments."""
    hits = {name: [r for r in ranges if r[0] <= offset < r[1]] for name, ranges in receipt.outcomes.items()}
    further = hits.pop("further", [])
    for outcome, matches in hits.items():
        if matches:
            among = [*matches, *further] if outcome == "stored" else matches
            yield outcome, sorted({r[2] for r in among if len(r) > 2})


def _segments(segments: list[Segment]) -> list[FateSegment]:
    return [
        FateSegment(s.pk, s.identifier, s.path, s.interval_start, s.interval_end, s.rows, s.task_id, _removal_text(s))
        for s in segments
    ]


def _removal_text(segment: Segment) -> str:
    return "" if segment.used or segment.removal is None else segment.removal.sentence


def _why_unknown(source: Source, key: ProgressKey, offset: int) -> str:
    if key.end_offset is not None and offset >= key.end_offset:
        when = f" at {key.observed_at:%Y-%m-%d %H:%M:%S} UTC" if key.observed_at else ""
        return f"Beyond the log's end, which was {key.end_offset:,}{when}: not written yet."
    if key.log_start_offset is not None and offset < key.log_start_offset:
        return f"Below the log's start ({key.log_start_offset}): removed before it was read."
    if key.next_offset is not None:
        return _skipped_text(key, key.next_offset, offset) if offset < key.next_offset else _WAITING
    if key.begin_offset is not None:
        if offset < key.begin_offset:
            return f"Before its reader's start: reading of this partition begins at offset {key.begin_offset}."
        return _WAITING
    return " ".join([_WAITING, *_latest_caveat(source, key.partition)])


def _skipped_text(key: ProgressKey, next_offset: int, offset: int) -> str:
    """Stored offsets are settled one after the other: what is below and is not, its reader does not read."""
    known = [begin for begin in (key.began_at, key.begin_offset) if begin is not None]
    if not known:
        first = SettledRange.objects.filter(span__overlap=span(key.pk, 0, MAX_OFFSET)).order_by("span").first()
        known = [next_offset if first is None else min(next_offset, first.span.lower - (key.pk << OFFSET_BITS))]
    if offset < min(known):
        return f"Before its reader's start: reading of this partition began at offset {min(known)}."
    return f"Skipped: the stored offset was set beyond it, to {next_offset}. Only a backfill reads it."


def _latest_caveat(source: Source, partition: int) -> list[str]:
    """Where a share group began only the broker knows. ``bounds``: the log's start, and where reading begins."""
    start, begins, *_ = source.bounds.get(str(partition), (0, 0))
    if source.progress.keeps_offsets or begins <= start:
        return []
    return [_AT_LATEST.format(source.progress.label)]
