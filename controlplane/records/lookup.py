"""Looks into Kafka for a record: at its place, or for a key in a time, with the connection of who reads the topic.

A process of the data plane does it, bounded, and says what it did not look at. Needs the role operator, as samples do.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from pydantic import ValidationError

from controlplane.common.errors import Conflict, InvalidInput, NotAllowed, NotFound, Unavailable
from controlplane.common.fair_queue import FairPlaces, NoPlace
from controlplane.common.processes import bare_environment, start_module
from controlplane.common.text import storable
from controlplane.connections.client_properties import client_properties
from controlplane.connections.named_connections import kafka_properties
from controlplane.datasources.masking import hidden_records, require_topic_access
from controlplane.publishing.models import MAX_OFFSET, MAX_PARTITION
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import Source
from controlplane.supervisors.replays import reader_of
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, may, require, visible
from ingestion.specs.messages.lookup import LookupAnswer, LookupOrder
from ingestion.specs.tasks.stored_specs import io_config_of

MODULE = "ingestion.task.lookup"
MAX_CONCURRENT, MAX_CONCURRENT_PER_USER = 2, 1  # of one web process
WAIT_S = 5.0
START_S = 15.0  # beside what the order gives for looking
MAX_IN_QUARANTINE = 50

_slots = FairPlaces(places=MAX_CONCURRENT, per_user=MAX_CONCURRENT_PER_USER, waiting=4)


@dataclass(frozen=True)
class RecordQuery:
    """The record at a place, or those with a key that were written in a time. Check it first."""

    topic: str
    partition: int | None = None
    offset: int | None = None
    key: bytes | None = None
    # When it was written, as Kafka has it; half-open.
    since: datetime | None = None
    until: datetime | None = None

    def check(self) -> None:
        """Raises ``InvalidInput``."""
        if self.partition is not None and not 0 <= self.partition <= MAX_PARTITION:
            raise InvalidInput(f"partition must be 0 to {MAX_PARTITION}.")
        if self.key is None:
            if self.partition is None or self.offset is None:
                raise InvalidInput("Give partition and offset, or key, from and to.")
            if not 0 <= self.offset <= MAX_OFFSET:
                raise InvalidInput(f"offset must be 0 to {MAX_OFFSET}.")
        elif self.offset is not None:
            raise InvalidInput("Give an offset or a key, not both.")
        elif self.since is None or self.until is None or self.since >= self.until:
            raise InvalidInput("With a key, give the time at which the record was written: from, and a later to.")


@dataclass(frozen=True)
class KafkaLookup:
    """What Kafka holds."""

    source: Source  # with whose reader's connection it was looked for
    answer: LookupAnswer

    @property
    def same_topic(self) -> bool:
        """Whether it is still the topic that was read: one that was made again has other records at its offsets."""
        return self.answer.topic_id == self.source.topic_id


@dataclass(frozen=True)
class Search:
    """What is known of the records that are wanted, beside what became of each."""

    kafka: KafkaLookup | None
    problem: str  # why Kafka was not looked into; empty if it was
    quarantined: list[QuarantinedRecord]  # by key; without payloads


def search(*, user: User, query: RecordQuery, group: str = "") -> Search:
    """In Kafka, for who may look there, and in quarantine. Raises ``InvalidInput``, ``NotFound``."""
    query.check()
    quarantined = find_quarantined(user, query, group)
    try:
        return Search(look_up(user=user, query=query, group=group), "", quarantined)
    except (NotAllowed, Conflict, Unavailable) as error:
        return Search(None, error.detail, quarantined)


def sources_of_topic(user: User, topic: str, group: str = "") -> list[Source]:
    """Readers of a topic that the user may see, the present topic first. Raises ``NotFound``."""
    sources = Source.objects.none()
    if storable(topic) and storable(group):
        sources = Source.objects.filter(visible(user, "datasource__team"), topic=topic)
        sources = sources.filter(group=group) if group else sources
    visible_sources = list(sources.select_related("datasource__team").order_by("-current", "-id"))
    if not visible_sources:
        through = f" as {group!r}" if group else ""
        raise NotFound(f"No datasource of yours reads topic {topic!r}{through}.")
    return visible_sources


def may_look_up(user: User, sources: list[Source]) -> bool:
    """Whether the user's role allows to look into Kafka through one of them."""
    try:
        require_topic_access(user, sources[0].topic if sources else None, "looking")
    except NotAllowed:
        return False
    return any(may(user, Action.OPERATE, source.datasource.team) for source in sources)


def look_up(*, user: User, query: RecordQuery, group: str = "") -> KafkaLookup:
    """Raises ``InvalidInput``, ``NotFound``, ``NotAllowed``, ``Conflict`` (nobody reads it now), ``Unavailable``."""
    query.check()
    sources = sources_of_topic(user, query.topic, group)
    source = next((s for s in sources if may(user, Action.OPERATE, s.datasource.team)), sources[0])
    require(user, Action.OPERATE, source.datasource.team)
    require_topic_access(user, query.topic, "viewing its topic's records")
    order = _lookup_order(source, query)
    try:
        with _slots.place(user.pk, WAIT_S):
            answer = _run_lookup(order)
    except NoPlace:
        raise Unavailable("Too many searches in Kafka are running. Try again in a few seconds.") from None
    if answer.failure:
        raise Unavailable(answer.failure)
    return KafkaLookup(source, answer)


def find_quarantined(user: User, query: RecordQuery, group: str = "") -> list[QuarantinedRecord]:
    """Records of this key and time that are in quarantine, newest first, without payloads. Raises ``NotFound``."""
    if query.key is None or query.since is None or query.until is None:
        return []
    sources = sources_of_topic(user, query.topic, group)
    hidden = hidden_records(user)  # a key may be a masked value: who may not see it may not ask for it
    sources = [s for s in sources if s.datasource_id not in hidden]
    records = QuarantinedRecord.objects.extra(where=["md5(key) = md5(%s)"], params=[query.key])
    records = records.filter(source__in=sources, key=query.key, timestamp_ms__gte=_ms(query.since))
    if query.partition is not None:
        records = records.filter(partition=query.partition)
    records = records.filter(timestamp_ms__lt=_ms(query.until)).select_related("source", "datasource")
    return list(records.defer("payload", "headers").order_by("-id")[:MAX_IN_QUARANTINE])


def _lookup_order(source: Source, query: RecordQuery) -> LookupOrder:
    reader = reader_of(source)
    io_config = io_config_of(reader["spec"])
    properties = kafka_properties(source.datasource.team_id, io_config, reader["sealed"])
    return LookupOrder.model_construct(
        topic=source.topic,
        consumer_properties=client_properties(properties),
        address_policy=settings.ADDRESS_POLICY,
        isolation=io_config.isolation,
        partition=query.partition,
        offset=query.offset if query.key is None else None,
        key=query.key,
        from_ms=0 if query.since is None else _ms(query.since),
        to_ms=0 if query.until is None else _ms(query.until),
    )


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _run_lookup(order: LookupOrder) -> LookupAnswer:
    seconds = order.timeout_ms / 1000 + START_S
    with start_module(MODULE, bare_environment()) as process:
        try:
            answer_json, _ = process.communicate(order.model_dump_json(), timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"The search in Kafka took longer than {seconds:.0f} s.") from None
        finally:
            process.kill()
    try:
        return LookupAnswer.model_validate_json(answer_json)
    except ValidationError:
        raise Unavailable(f"The process that searches Kafka ended with exit code {process.returncode}.") from None
