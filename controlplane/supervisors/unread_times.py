"""Asks Kafka from when the oldest unread records are, of supervisors with records that wait for longer than a minute.

Kafka gives one record for each partition, and none again as long as the oldest unread one is the same. A supervisor
whose records are settled sooner, or that is idle, costs no request.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from controlplane.common.database import try_advisory_lock
from controlplane.common.parallel import ask_all
from controlplane.connections import kafka
from controlplane.connections.named_connections import kafka_properties
from controlplane.lag.models import UnreadTimes
from controlplane.publishing.offset_gaps import unsettled
from controlplane.sources.models import Source
from controlplane.supervisors.health_queries import sources_read_by
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.retention_countdown import Countdown, Look, OldestUnread, Retention, countdown
from ingestion.specs.kafka.providers import Value
from ingestion.specs.offsets import Range

logger = logging.getLogger(__name__)
WAITING_FOR = timedelta(minutes=1)
ROUND_LIMIT_S = 20.0
MAX_PARTITIONS = 200  # of a topic, that are asked for in one round: those first that nothing is known of
_LOCK = 0x554E5244
_SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes")


@dataclass(frozen=True)
class _Question:
    """What to ask for one source. Properties hold secrets: never shown."""

    source: Source
    topic: str
    properties: Mapping[str, Value] = field(repr=False)
    known: Mapping[int, OldestUnread]  # partitions that need not be asked, or not in this round
    unread: Mapping[int, Range]  # of the others, from the oldest unread offset to the log's end


@dataclass(frozen=True)
class _Answer:
    config: Mapping[str, str | None]
    oldest: Mapping[int, OldestUnread]


def observe_unread() -> None:
    """One round over all supervisors; one caller at a time."""
    with try_advisory_lock(_LOCK) as acquired:
        if not acquired:
            return
        behind = _supervisors_behind(timezone.now())
        UnreadTimes.objects.exclude(source__in=[source.pk for _, source in behind]).delete()
        questions = [q for supervisor, source in behind if (q := _question(supervisor, source)) is not None]
        for question, answer in ask_all(_ask, questions, within_s=ROUND_LIMIT_S):
            if isinstance(answer, Exception):
                _store_problem(question.source, answer)
            else:
                _store(question.source, answer)


def countdowns(supervisors: Iterable[Supervisor]) -> dict[str, Countdown]:
    """By supervisor, of those whose records wait for a minute or longer, as far as Kafka was asked: two statements."""
    now, sources = timezone.now(), sources_read_by(list(supervisors))
    rows = UnreadTimes.objects.in_bulk([source.pk for source in sources.values()])
    return {pk: countdown(_look(rows[source.pk]), now) for pk, source in sources.items() if source.pk in rows}


def _look(row: UnreadTimes) -> Look:
    return Look(row.observed_at, Retention.of(row.retention), _oldest(row), row.problem)


def _oldest(row: UnreadTimes) -> dict[int, OldestUnread]:
    return {int(p): OldestUnread(*values) for p, values in row.oldest.items()}


def _supervisors_behind(now: datetime) -> list[tuple[Supervisor, Source]]:
    """With the source that each reads."""
    live = Supervisor.objects.filter(terminated_at=None, idle_since=None).select_related("datasource")
    supervisors = {s.pk: s for s in live.with_current() if s.io_config.topicPattern is None}
    read = sources_read_by(list(supervisors.values()))
    late = {
        pk: source.pk
        for pk, source in read.items()
        if source.looked_at is not None and (source.complete_until is None or now - source.complete_until > WAITING_FOR)
    }
    sources = Source.objects.select_related("unread_times").in_bulk(list(late.values()))
    return [(supervisors[pk], sources[source]) for pk, source in late.items() if source in sources]


def _question(supervisor: Supervisor, source: Source) -> _Question | None:
    """None where nothing is unread, or where it can't be asked."""
    unread = _unread(source)
    row = getattr(source, "unread_times", None)
    before = _oldest(row) if row is not None else {}
    known = {p: before[p] for p, (start, _) in unread.items() if p in before and _is_known(before[p], start)}
    left = sorted(unread.keys() - known.keys(), key=lambda p: (p in before and before[p].was_read, p))
    later = {p: OldestUnread(unread[p][0], was_read=False) for p in left[MAX_PARTITIONS:]}
    if not unread:
        UnreadTimes.objects.filter(source=source).delete()
        return None
    try:
        version = supervisor.current
        properties = kafka_properties(supervisor.datasource.team_id, version.io_config, version.secrets)
    except Exception as problem:  # whatever it is, it is this supervisor's and not the others'
        _store_problem(source, problem)
        return None
    return _Question(
        source, source.topic, properties, {**known, **later}, {p: unread[p] for p in left[:MAX_PARTITIONS]}
    )


def _is_known(before: OldestUnread, start: int) -> bool:
    return before.was_read and before.offset == start


def _unread(source: Source) -> dict[int, Range]:
    """By partition, from the first offset that is to be read and is not settled, to the log's end."""
    bounds = {int(p): (max(start, begin), end) for p, (start, begin, end) in source.bounds.items()}
    unread = {
        p: (found.ranges[0][0], bounds[p][1]) for p, found in unsettled(source, bounds, 1).items() if found.ranges
    }
    for key in source.keys.all():
        if key.next_offset is not None and key.partition in bounds:
            start, end = bounds[key.partition]
            unread[key.partition] = (max(key.next_offset, start), end)
    return {p: (start, end) for p, (start, end) in unread.items() if start < end}


def _ask(question: _Question) -> _Answer:
    try:
        config = kafka.topic_config(question.properties, question.topic)
    except kafka.KafkaRefuses:
        right = f"This login lacks the right DESCRIBE_CONFIGS on topic {question.topic!r}."
        raise kafka.KafkaRefuses(right) from None
    oldest = dict(question.known)
    if question.unread:
        times, silent = kafka.first_record_times(question.properties, question.topic, question.unread)
        oldest |= {p: OldestUnread(question.unread[p][0], time_ms) for p, time_ms in times.items()}
        oldest |= {p: OldestUnread(question.unread[p][0], None, was_read=False) for p in silent}
    return _Answer({name: config.get(name) for name in _SETTINGS}, oldest)


def _store(source: Source, answer: _Answer) -> None:
    if not answer.oldest:  # no record is there: a transaction's markers, or what was compacted away
        UnreadTimes.objects.filter(source=source).delete()
        return
    values = {
        "observed_at": timezone.now(),
        "problem": "",
        "retention": answer.config,
        "oldest": {str(p): astuple(unread) for p, unread in answer.oldest.items()},
    }
    UnreadTimes.objects.update_or_create(source=source, defaults=values)


def _store_problem(source: Source, problem: Exception) -> None:
    """What Kafka said before stays: the oldest unread record can only have become a younger one."""
    logger.warning("source %s: it is not known when its unread records expire: %s", source.pk, problem)
    values = {"observed_at": timezone.now(), "problem": f"Kafka does not say what it deletes: {problem}"}
    UnreadTimes.objects.update_or_create(source=source, defaults=values)


def countdown_of(supervisor: Supervisor) -> Countdown | None:
    """None while no record waits for a minute, and before Kafka was asked."""
    return countdowns([supervisor]).get(supervisor.pk)
