"""Imports of dead-letter topics: a person asks for one, or for the next part of one, and sees what came of it.

``dead_letter_rounds`` does the reading, in a worker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from django.db import transaction
from django.db.models import Count, Min
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput, Unavailable
from controlplane.connections import kafka
from controlplane.connections.named_connections import kafka_properties
from controlplane.connections.secrets import SecretsLost
from controlplane.datasources.masking import require_topic_access
from controlplane.quarantine.models import DeadLetter, DeadLetterImport
from controlplane.quarantine.services import record_action
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import sources_of
from controlplane.supervisors.models import Supervisor
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.inputs.io_config import ShareGroupIOConfig

LISTED = 20
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class ImportStatus:
    """An import, and what became of the topic's records that belong to its source."""

    dead_letter_import: DeadLetterImport
    counts: dict[str, int]  # by outcome, each of them
    stored: list[DeadLetter]  # some of those that have rows

    @property
    def read(self) -> int:
        return sum(self.counts.values())


def import_statuses(supervisor: Supervisor) -> list[ImportStatus]:
    """The newest first. Kafka is not asked."""
    sources = sources_of(supervisor.datasource_id, supervisor.io_config, supervisor.owner)
    imports = DeadLetterImport.objects.filter(source__in=sources).select_related("source").order_by("-asked_at", "-id")
    return [_status(one) for one in imports]


def _status(one: DeadLetterImport) -> ImportStatus:
    counted = dict(one.letters.order_by().values_list("outcome").annotate(Count("pk")))
    stored = one.letters.filter(outcome=DeadLetter.Outcome.STORED).order_by("-pk")[:LISTED]
    return ImportStatus(one, {outcome: counted.get(outcome, 0) for outcome in DeadLetter.Outcome.values}, list(stored))


def start_import(*, user: User, supervisor: Supervisor, topic: str = "") -> ImportStatus:
    """Import what a dead-letter topic holds now and no import has read. While one runs, it is left as it is.

    ``topic``: empty for the one that the spec names. Asks Kafka; nothing is changed if it refuses. Raises
    ``NotAllowed``, ``InvalidInput``, ``Conflict`` (no such topic, or nothing was read yet), ``Unavailable``.
    """
    require(user, Action.OPERATE, supervisor.datasource.team)
    own_topic = own_dead_letter_topic(supervisor)
    name = _check_name(supervisor, topic or own_topic)
    require_topic_access(user, name, "importing its records", besides=supervisor.datasource)
    source = _read_source(supervisor)
    offsets = _topic_offsets(supervisor, name)
    if offsets.cluster_id != source.cluster_id:
        raise Conflict(f"Supervisor {supervisor.pk} has read nothing of this cluster yet. Start it, then import.")
    with transaction.atomic():
        one, _ = DeadLetterImport.objects.select_for_update(of=("self",)).get_or_create(
            source=source,
            topic_id=offsets.topic_id,
            defaults={"topic": name, "own": False, "asked_by": user.username, "asked_at": timezone.now()},
        )
        if not one.running:
            _begin(one, offsets, user, own=name == own_topic)
            record_action(user, supervisor.datasource, "import", topic=name, supervisor=supervisor.pk)
    return _status(one)


def own_dead_letter_topic(supervisor: Supervisor) -> str:
    """The one that the spec gives its share group; empty if it gives none."""
    if not supervisor.io_config.traits.in_share_group:
        return ""
    return cast("ShareGroupIOConfig", supervisor.io_config).groupConfig.deadLetterTopic or ""


def _check_name(supervisor: Supervisor, name: str) -> str:
    io_config = supervisor.io_config
    if io_config.topicPattern is not None:
        raise InvalidInput(f"Supervisor {supervisor.pk} reads several topics. Choose the supervisor of one topic.")
    if not name:
        raise InvalidInput(f"The spec of supervisor {supervisor.pk} names no dead-letter topic. Give the topic's name.")
    if not _TOPIC.fullmatch(name):
        raise InvalidInput("The topic's name must be 1 to 249 letters, digits, '.', '_' or '-'.")
    if name == io_config.topic:
        raise InvalidInput(f"Supervisor {supervisor.pk} reads topic {name!r} itself. Name another one.")
    return name


def _read_source(supervisor: Supervisor) -> Source:
    if supervisor.datasource.deleted_at is not None:
        raise Conflict(f"The datasource {supervisor.datasource.name} is deleted: submit a spec that names it first.")
    sources = sources_of(supervisor.datasource_id, supervisor.io_config, supervisor.owner).filter(current=True)
    source = sources.order_by("-id").first()
    if source is None:
        raise Conflict(f"Supervisor {supervisor.pk} has read nothing yet. Start it, then import.")
    return source


def _topic_offsets(supervisor: Supervisor, topic: str) -> kafka.TopicOffsets:
    try:
        properties = kafka_properties(supervisor.datasource.team_id, supervisor.io_config, supervisor.current.secrets)
        offsets = kafka.topic_offsets(properties, topic)
        if offsets is not None:
            kafka.check_rights(properties, topic, "")
    except (kafka.KafkaProblem, SecretsLost) as problem:
        raise Unavailable(f"Nothing was imported: {problem}") from None
    if offsets is None:
        raise Conflict(f"There is no topic {topic!r}, so nothing was imported.")
    return offsets


def _begin(one: DeadLetterImport, offsets: kafka.TopicOffsets, user: User, own: bool) -> None:
    """From where the last import ended, and from each record before it that was not settled then."""
    for partition, start in offsets.start_offsets.items():
        one.letters.filter(partition=partition, offset__lt=start).delete()  # the topic no longer has them
    waiting = one.letters.filter(outcome=DeadLetter.Outcome.WAITING).order_by().values_list("partition")
    again = dict(waiting.annotate(Min("offset")))
    for partition, start in offsets.start_offsets.items():
        position = max(start, one.positions.get(str(partition), 0))
        one.positions[str(partition)] = min(position, again.get(partition, position))
    one.ends = {str(partition): end for partition, end in offsets.end_offsets.items()}
    one.running, one.problem, one.own, one.ended_at = True, "", own, None
    one.asked_by, one.asked_at = user.username, timezone.now()
    one.save()
