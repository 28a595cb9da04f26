"""The rounds of imports: some records of a dead-letter topic are read, and each becomes a quarantined record or not.

What its headers say of a record leads to its offset in the topic that the source reads. What became of that offset
decides: a record that has rows, or is in quarantine already, is not imported. One that is not settled yet is left to
its reader or to a repair, and the next import looks at it again: else it could be stored twice. Of a record that its
headers do not lead to, its place in the dead-letter topic is its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.common.changes import Change, notify_pages
from controlplane.common.database import try_advisory_lock
from controlplane.common.errors import HeadgateError
from controlplane.connections import kafka
from controlplane.connections.named_connections import kafka_properties
from controlplane.connections.secrets import SecretsLost
from controlplane.connections.whole_records import ReadRecords, WholeRecord, read_records, records_at
from controlplane.publishing.models import MAX_OFFSET
from controlplane.publishing.selectors.fate import outcomes_at
from controlplane.quarantine import replays
from controlplane.quarantine.dead_letter_origins import Origin, origin_of
from controlplane.quarantine.models import DeadLetter, DeadLetterImport, QuarantinedRecord
from controlplane.sources.models import Source
from controlplane.supervisors.replays import reader_of
from ingestion.specs.causes import cause_of
from ingestion.specs.kafka.providers import Value
from ingestion.specs.source_traits import SHARE_GROUPS
from ingestion.specs.tasks.stored_specs import io_config_of

logger = structlog.get_logger(__name__)
ROUND_RECORDS = 500
REASON = "dead_letter"
Outcome = DeadLetter.Outcome
_LOCK = 0x6465616473  # "deads"
_NEVER_READ = frozenset({"gap", "skipped", "empty"})


def running_imports() -> QuerySet[DeadLetterImport]:
    """Those that have not read all of their topic yet."""
    return DeadLetterImport.objects.filter(running=True)


def run_rounds() -> int:
    """One round of each import that runs; returns how many ran. One process at a time does it."""
    with try_advisory_lock(_LOCK) as locked:
        running = running_imports().select_related("source__datasource__team")
        imports = list(running.order_by("asked_at", "pk")) if locked else []
        for one in imports:
            try:
                run_round(one)
            except (kafka.KafkaProblem, SecretsLost, HeadgateError) as problem:
                _end(one, f"The import ended early: {problem}")
        return len(imports)


def run_round(one: DeadLetterImport) -> None:
    """Read some records and deal with them. Raises ``KafkaProblem``, ``SecretsLost``, ``HeadgateError``."""
    reader = reader_of(one.source)
    io_config = io_config_of(reader["spec"])
    properties = kafka_properties(one.source.datasource.team_id, io_config, reader["sealed"])
    offsets = kafka.topic_offsets(properties, one.topic)
    if offsets is None or offsets.topic_id != one.topic_id:
        raise kafka.KafkaProblem(f"Topic {one.topic!r} was deleted, or deleted and created again. Import it again")
    within = {int(p): (one.positions[p], end) for p, end in one.ends.items()}
    read = read_records(properties, one.topic, within, ROUND_RECORDS)
    letters = _decide(one, read.records)
    letters = _with_originals(properties, one, letters)
    with transaction.atomic():
        _store(one, letters, read, offsets.cluster_id)


@dataclass(frozen=True)
class _Letter:
    """A record of the topic, what it was, and what an import does with it."""

    record: WholeRecord
    origin: Origin | None
    source: Source | None  # whose record it was; None: the dead-letter topic is all that is known
    outcome: Outcome
    missing: bool = False  # neither the topic nor the one that it was in has key and payload

    @property
    def needs_original(self) -> bool:
        """Whether a broker may have written it without a copy of the record."""
        bare = self.record.key is None and self.record.payload is None
        return self.outcome == Outcome.IMPORTED and bare and self.origin is not None and self.origin.by_kafka

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset by which the quarantine knows it."""
        if self.source is None or self.origin is None:
            return self.record.partition, self.record.offset
        return self.origin.partition, self.origin.offset


def outcome_of(held: bool, ended: Collection[str]) -> Outcome:
    """What an import does with a record whose offset ended so. ``held``: the quarantine has it."""
    if "stored" in ended:
        return Outcome.STORED
    if held or "unparseable" in ended:
        return Outcome.QUARANTINED
    if not ended:
        return Outcome.WAITING
    return Outcome.IMPORTED if _NEVER_READ.issuperset(ended) else Outcome.SETTLED


def _decide(one: DeadLetterImport, records: list[WholeRecord]) -> list[_Letter]:
    """Those that no import has dealt with, and that belong to the source."""
    done = _done_places(one, records)
    sources = _sources_of_topic(one.source)
    letters: list[_Letter] = []
    imported: set[tuple[int, tuple[int, int]]] = set()  # a broker may write a record twice
    for record in records:
        origin = origin_of(record.headers)
        if (record.partition, record.offset) in done or (origin and _belongs_elsewhere(one, origin)):
            continue
        letter = _Letter(record, origin, _origin_source(sources, origin, record), Outcome.IMPORTED)
        if (source := letter.source) is not None:
            partition, offset = letter.place
            rows = QuarantinedRecord.objects.filter(source=source, partition=partition, offset=offset)
            held = (source.pk, letter.place) in imported or rows.exists()
            letter = replace(letter, outcome=outcome_of(held, outcomes_at(source, partition, offset)))
            imported |= {(source.pk, letter.place)} if letter.outcome == Outcome.IMPORTED else set()
        letters.append(letter)
    return letters


def _done_places(one: DeadLetterImport, records: list[WholeRecord]) -> set[tuple[int, int]]:
    settled = one.letters.exclude(outcome=Outcome.WAITING)
    offsets = [record.offset for record in records]
    return set(settled.filter(offset__in=offsets).values_list("partition", "offset"))


def _belongs_elsewhere(one: DeadLetterImport, origin: Origin) -> bool:
    """Whether another share group gave it up, whose own datasource imports it; or another topic's reader."""
    source = one.source
    if not origin.by_kafka or (source.kind, source.group) == (SHARE_GROUPS.kind, origin.group):
        return origin.by_kafka and origin.topic != source.topic
    return one.own or Source.objects.filter(kind=SHARE_GROUPS.kind, group=origin.group).exists()


def _sources_of_topic(source: Source) -> list[Source]:
    """The source, and those of the topics of its name that were deleted, newest first."""
    same = {name: getattr(source, name) for name in ("datasource", "kind", "cluster_id", "group", "topic")}
    return list(Source.objects.filter(**same).order_by("-created_at", "-pk"))


def _origin_source(sources: list[Source], origin: Origin | None, record: WholeRecord) -> Source | None:
    """The newest that was there before the record was given up: headers name a topic, and not which of its name."""
    if origin is None or origin.topic != sources[0].topic or origin.offset > MAX_OFFSET:
        return None
    try:
        written_at = datetime.fromtimestamp((record.timestamp_ms or 0) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return sources[0]
    return next((source for source in sources if source.created_at <= written_at), sources[-1])


def _with_originals(properties: Mapping[str, Value], one: DeadLetterImport, letters: list[_Letter]) -> list[_Letter]:
    """Key, payload and headers from the topic in which the record was, where the broker has copied none."""
    places = {letter.place for letter in letters if letter.needs_original and letter.source == one.source}
    offsets = kafka.topic_offsets(properties, one.source.topic) if places else None
    if offsets is None or offsets.topic_id != one.source.topic_id:
        places = set()
    else:
        starts, ends = offsets.start_offsets, offsets.end_offsets
        places = {(p, offset) for p, offset in places if starts.get(p, 0) <= offset < ends.get(p, 0)}
    originals = records_at(properties, one.source.topic, sorted(places))
    return [_with_original(letter, originals) if letter.needs_original else letter for letter in letters]


def _with_original(letter: _Letter, originals: Mapping[tuple[int, int], WholeRecord]) -> _Letter:
    original = originals.get(letter.place) if letter.source is not None else None
    if original is None:
        return replace(letter, missing=True)
    whole = replace(
        letter.record,
        timestamp_ms=original.timestamp_ms,
        key=original.key,
        payload=original.payload,
        headers=[*original.headers, *letter.record.headers],
    )
    return replace(letter, record=whole)


def _store(one: DeadLetterImport, letters: list[_Letter], read: ReadRecords, cluster_id: str) -> None:
    """In the caller's transaction: the records, what became of each, and where the next round begins."""
    DeadLetterImport.objects.select_for_update().get(pk=one.pk)
    imported = [letter for letter in letters if letter.outcome == Outcome.IMPORTED]
    own_place = _letters_source(one, cluster_id) if any(letter.source is None for letter in imported) else None
    now = timezone.now()
    # Who has quarantined one of them meanwhile knows more of it.
    QuarantinedRecord.objects.bulk_create(
        [_quarantined(one, letter, letter.source or own_place, now) for letter in imported], ignore_conflicts=True
    )
    DeadLetter.objects.bulk_create(
        _rows(one, letters),
        update_conflicts=True,
        unique_fields=["dead_letter_import", "partition", "offset"],
        update_fields=["outcome"],
    )
    one.positions = {str(partition): position for partition, position in read.positions.items()}
    one.save(update_fields=["positions"])
    if all(one.positions[partition] >= end for partition, end in one.ends.items()):
        _end(one, "")
    else:
        _notify(one)


def _rows(one: DeadLetterImport, letters: Iterable[_Letter]) -> list[DeadLetter]:
    return [
        DeadLetter(
            dead_letter_import=one,
            partition=letter.record.partition,
            offset=letter.record.offset,
            origin_partition=letter.place[0] if letter.source else None,
            origin_offset=letter.place[1] if letter.source else None,
            outcome=letter.outcome,
        )
        for letter in letters
    ]


def _letters_source(one: DeadLetterImport, cluster_id: str) -> Source:
    """The dead-letter topic as a place of records. Nobody reads it; its name is no group's."""
    source, _ = Source.objects.get_or_create(
        kind=one.source.kind,
        cluster_id=cluster_id,
        group=f"dead-letters:{one.source_id}",
        topic_id=one.topic_id,
        defaults={
            "datasource": one.source.datasource,
            "topic": one.topic,
            "current": False,
            "decoded_as": one.source,
        },
    )
    return source


def _quarantined(one: DeadLetterImport, letter: _Letter, source: Any, now: datetime) -> QuarantinedRecord:
    record, (partition, offset) = letter.record, letter.place
    error = _error_text(one, letter)
    return QuarantinedRecord(
        source=source,
        datasource=one.source.datasource,
        partition=partition,
        offset=offset,
        timestamp_ms=record.timestamp_ms,
        delivery_count=letter.origin.deliveries if letter.origin else 0,
        reason=REASON,
        error=error,
        cause=cause_of(REASON, error).fingerprint,
        key=record.key,
        payload=record.payload,
        headers=replays.encode_headers(record.headers),
        cut=letter.missing,
        publish_id=uuid.uuid4(),
        created_at=now,
    )


def _error_text(one: DeadLetterImport, letter: _Letter) -> str:
    sentences = [letter.origin.sentence if letter.origin else "Another program gave this record up."]
    place = f"partition {letter.record.partition}, offset {letter.record.offset}"
    sentences.append(f"It was imported from dead-letter topic {one.topic!r}, {place}.")
    if letter.missing:
        sentences.append("Key and payload are missing: Kafka copied none, and the record's own topic has lost it.")
    return " ".join(sentences)


def _end(one: DeadLetterImport, problem: str) -> None:
    DeadLetterImport.objects.filter(pk=one.pk).update(running=False, problem=problem, ended_at=timezone.now())
    logger.info("dead letters imported", datasource=one.source.datasource.name, topic=one.topic, problem=problem)
    _notify(one)


def _notify(one: DeadLetterImport) -> None:
    datasource = one.source.datasource
    notify_pages(Change(team=datasource.team_id, datasource=datasource.name))
