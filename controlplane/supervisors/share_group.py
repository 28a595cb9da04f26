"""A supervisor's share group as an operator needs it: members, leases, coverage, repairs, gaps, configuration.

Kafka's clients for Python can't describe a share group: state and members are those of our own indexers' heartbeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput, Unavailable
from controlplane.common.health import Health
from controlplane.connections import kafka
from controlplane.connections.dead_letters import DeadLetterTopic, dead_letter_topic
from controlplane.connections.named_connections import kafka_properties
from controlplane.connections.secrets import SecretsLost
from controlplane.connections.share_group_config import set_share_group_config, share_group_config
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.coverage import PartitionCoverage, coverage
from controlplane.sources.models import Source, SourceEvent
from controlplane.sources.spec_sources import sources_of
from controlplane.supervisors.group_config import GroupSetting, compare_settings
from controlplane.supervisors.leases import HoldTimes, LeaseSums, hold_times, sums_of, warnings_of
from controlplane.supervisors.models import Supervisor, start_accepted_at
from controlplane.supervisors.selectors import current_tasks
from controlplane.supervisors.services import hold_group
from controlplane.tasks.models import Indexer, Task
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.kafka.providers import Value

LISTED = 20
_COUNTERS = ("polled", "published", "unparseable", "thrown_away", "duplicates")
_MEMBERS = frozenset({"reading", "refused", "paused", "finishing"})


@dataclass(frozen=True)
class Member:
    """An indexer with its consumers, as its last heartbeat described it."""

    task_id: str
    number: int
    consumers: int
    state: str
    in_flight: int
    partitions: list[int]
    last_heartbeat_at: datetime | None


@dataclass(frozen=True)
class Repair:
    """A repair task, and how the records that it read ended."""

    task: Task
    polled: int
    published: int
    unparseable: int
    thrown_away: int
    duplicates: int


@dataclass(frozen=True)
class ShareGroup:
    """A supervisor's share group on its page."""

    group: str
    topic: str
    state: str  # stable, while an indexer is a member, else empty
    members: list[Member]
    leases: LeaseSums
    hold: HoldTimes
    warnings: list[Health]
    coverage: list[PartitionCoverage]
    repairs: list[Repair]
    repaired: list[SourceEvent]
    gaps: list[SourceEvent]


def share_group(supervisor: Supervisor) -> ShareGroup:
    """Raises ``InvalidInput`` for a supervisor with stored offsets: it has no share group."""
    io_config = io_config_of(supervisor)
    indexers = [i for task in current_tasks(supervisor) for i in task.indexers.all()]
    sums = sums_of((i.leases, i.redelivery_counts) for i in indexers)
    hold = hold_times(sums, io_config.groupConfig.recordLockDurationMs)
    source = _source(supervisor, io_config)
    members = [_member(i, io_config) for i in indexers if i.state in _MEMBERS]
    return ShareGroup(
        group=io_config.groupId,
        topic=io_config.topic,
        state="stable" if members else "empty",
        members=members,
        leases=sums,
        hold=hold,
        warnings=warnings_of(sums, hold, io_config.groupConfig.deliveryCountLimit),
        coverage=coverage(source, [tuple(h) for i in indexers for h in i.holding]) if source else [],
        repairs=_repairs(supervisor),
        repaired=_events(source, SourceEvent.Kind.REPAIRED),
        gaps=_events(source, SourceEvent.Kind.GAP),
    )


def io_config_of(supervisor: Supervisor) -> ShareGroupIOConfig:
    """Of its current spec. Raises ``InvalidInput`` as above."""
    io_config = supervisor.io_config
    if not io_config.traits.in_share_group:
        how = io_config.traits.progress.label
        raise InvalidInput(f"Supervisor {supervisor.pk} reads with {how}; it has no share group.")
    if io_config.topicPattern is not None:
        raise InvalidInput(f"Supervisor {supervisor.pk} reads several topics. Choose the supervisor of one topic.")
    return cast("ShareGroupIOConfig", io_config.counted_from(start_accepted_at(supervisor.current)))


def _source(supervisor: Supervisor, io_config: ShareGroupIOConfig) -> Source | None:
    sources = sources_of(supervisor.datasource_id, io_config, supervisor.owner).filter(current=True)
    return sources.order_by("-id").first()


def _member(indexer: Indexer, io_config: ShareGroupIOConfig) -> Member:
    return Member(
        task_id=indexer.task_id,
        number=indexer.number,
        consumers=io_config.consumersPerIndexer,
        state=indexer.state,
        in_flight=indexer.in_flight,
        partitions=indexer.partitions,
        last_heartbeat_at=indexer.last_heartbeat_at,
    )


def _events(source: Source | None, kind: SourceEvent.Kind) -> list[SourceEvent]:
    return list(source.events.filter(kind=kind)[:LISTED]) if source else []


def _repairs(supervisor: Supervisor) -> list[Repair]:
    repair_tasks = Task.objects.filter(datasource=supervisor.datasource_id, kind=Task.Kind.REPAIR)
    tasks = list(repair_tasks.filter(supervisor_id=supervisor.pk)[:LISTED])
    fences = {f.task_id: f for f in IndexerFence.objects.filter(task_id__in=[t.pk for t in tasks])}  # it has one reader
    return [Repair(t, **{n: getattr(fences.get(t.pk), n, 0) for n in _COUNTERS}) for t in tasks]


@dataclass(frozen=True)
class GroupConfiguration:
    """What the broker has against the spec, when it was asked."""

    group: str
    asked_at: datetime
    settings: list[GroupSetting]
    dead_letter_topic: DeadLetterTopic | None = None

    @property
    def drifted(self) -> bool:
        return any(setting.drifted for setting in self.settings)


def group_configuration(supervisor: Supervisor) -> GroupConfiguration:
    """Ask Kafka; blocks for some seconds at most. Raises ``InvalidInput`` and ``Unavailable``."""
    io_config = io_config_of(supervisor)
    try:
        properties = _properties(supervisor)
        broker_config = share_group_config(properties, io_config.topic, io_config.groupId)
    except (kafka.KafkaProblem, SecretsLost) as problem:
        raise Unavailable(f"The group's configuration is not known: {problem}") from None
    settings = compare_settings(io_config.group_settings(timezone.now()), broker_config)
    clear_drift(supervisor, settings)
    dead_letters = dead_letter_topic(properties, broker_config)
    return GroupConfiguration(io_config.groupId, timezone.now(), settings, dead_letters)


def clear_drift(supervisor: Supervisor, settings: list[GroupSetting]) -> None:
    """What was seen ends what home says of it; that something differs is said by the supervisor's own looks alone.

    Before its task has set the configuration, it differs and nothing is wrong.
    """
    if supervisor.group_drift and not any(setting.drifted for setting in settings):
        Supervisor.objects.filter(pk=supervisor.pk).update(group_drift=[])


def apply_group_config(*, user: User, supervisor: Supervisor) -> GroupConfiguration:
    """Set on the broker what the spec says, as a task does when it starts; answers with what is there then.

    Raises ``NotAllowed``, ``InvalidInput``, ``Unavailable`` (with the broker's reason), ``Conflict`` (terminated, or
    another team's group).
    """
    require(user, Action.OPERATE, supervisor.datasource.team)
    io_config = io_config_of(supervisor)
    if supervisor.terminated_at is not None:
        raise Conflict(f"Supervisor {supervisor.pk} is terminated.")
    hold_group(supervisor)
    try:
        properties = _properties(supervisor)
        settings_to_try = io_config.group_settings_to_try(timezone.now())
        set_share_group_config(properties, io_config.topic, io_config.groupId, settings_to_try)
    except (kafka.KafkaProblem, SecretsLost) as problem:
        raise Unavailable(f"The group's configuration was not changed: {problem}") from None
    audit.record(
        user=user,
        team=supervisor.datasource.team,
        target="supervisor",
        target_id=supervisor.pk,
        action="apply_group_config",
        group=io_config.groupId,
        settings=settings_to_try[0],
    )
    return group_configuration(supervisor)


def _properties(supervisor: Supervisor) -> dict[str, Value]:
    return kafka_properties(supervisor.datasource.team_id, supervisor.io_config, supervisor.current.secrets)
