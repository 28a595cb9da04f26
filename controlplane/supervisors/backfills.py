"""Backfills: a reader goes on at the end of its topic, and a bounded supervisor reads beside it what was skipped.

A backfill belongs to the source of the supervisor that it fills, so no offset can be stored by both: what one of them
has settled the other passes over. Known gaps are filled in this way too, also those of a share group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from controlplane.common.errors import Conflict, InvalidInput, invalid_spec
from controlplane.connections.named_connections import kafka_properties
from controlplane.datasources.groups import claim_group
from controlplane.publishing import claims
from controlplane.publishing.offset_gaps import unsettled
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import FILL_MARK, sources_of
from controlplane.supervisors import autoscaler
from controlplane.supervisors.bounded import bounded_progresses
from controlplane.supervisors.known_gaps import read_by_backfills
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.offset_reset import backfill_conflict, movable_source
from controlplane.supervisors.position_reset import PartitionReset, plan_reset
from controlplane.supervisors.services import record_action, run_soon
from controlplane.supervisors.topic_supervisors import LONGEST_ID
from controlplane.tasks import bounds
from controlplane.tasks.bounded_reads import BoundedProgress
from controlplane.tasks.models import Task
from controlplane.tasks.services import check_room
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.errors import SpecError
from ingestion.specs.inputs.bounded import BoundedStreamConfig
from ingestion.specs.kafka.positions import Position
from ingestion.specs.offsets import Range, subtracted
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec, parse_supervisor_spec
from ingestion.specs.tasks.stored_specs import for_ranges

LISTED = 100


@dataclass(frozen=True)
class PartitionFill:
    """What a backfill reads of one partition."""

    partition: int
    start: int
    end: int
    unsettled: int  # offsets that it has still to read


@dataclass(frozen=True)
class BackfillPlan:
    """What a backfill reads."""

    supervisor: Supervisor
    topic_id: str
    partitions: list[PartitionFill]
    task_count: int
    backfill: Supervisor | None = None  # which does that; None in a preview

    @property
    def left(self) -> int:
        return sum(p.unsettled for p in self.partitions)

    @property
    def backfill_id(self) -> str | None:
        return self.backfill.pk if self.backfill is not None else None

    @property
    def ranges(self) -> dict[int, Range]:
        return {p.partition: (p.start, p.end) for p in self.partitions}


@dataclass(frozen=True)
class BackfillStatus:
    """A backfill, and how far it is."""

    backfill: Supervisor
    progress: BoundedProgress

    @property
    def partitions(self) -> dict[int, Range]:
        bounded = self.backfill.io_config.boundedStreamConfig
        return {} if bounded is None else bounded.ranges

    @property
    def is_gap(self) -> bool:
        """Whether it was terminated before it had read all: another one can fill what is left."""
        return self.backfill.terminated_at is not None and self.progress.left > 0


def backfill_statuses(supervisor: Supervisor) -> list[BackfillStatus]:
    """The newest first."""
    newest = supervisor.backfills.order_by("-created_at", "-id")[:LISTED]
    listed = newest.select_related("datasource__team").with_current()
    progress = bounded_progresses(listed)
    return [BackfillStatus(backfill, progress[backfill.pk]) for backfill in listed]


def can_skip(supervisor: Supervisor) -> bool:
    """Whether its kind lets it skip, as far as that is known without Kafka."""
    return supervisor.io_config.traits.keeps_offsets and can_fill(supervisor)


def can_fill(supervisor: Supervisor) -> bool:
    """Whether its kind lets backfills read for it."""
    io_config = supervisor.io_config
    reads_on = io_config.topicPattern is None and io_config.boundedStreamConfig is None
    return reads_on and supervisor.terminated_at is None


def skip_and_fill(
    *, user: User, supervisor: Supervisor, task_count: int | None = None, dry_run: bool = False
) -> BackfillPlan:
    """Let a reader go on at the end of its topic; a backfill reads what it has skipped, and no offset is in both.

    ``task_count``: the backfill's indexers, as many as the supervisor's if it is not said. Asks Kafka. Raises
    ``NotAllowed``, ``InvalidInput``, ``Conflict``, ``Unavailable``.
    """
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    _check_fillable(supervisor)
    if not supervisor.io_config.traits.keeps_offsets:
        raise InvalidInput(
            f"The broker keeps the position of a {supervisor.io_config.traits.label}, so it can't skip. "
            "Add indexers, or fill a range of offsets."
        )
    [topic] = plan_reset(user=user, supervisor=supervisor, position=Position.parse("latest")).topics
    source = movable_source(supervisor)
    if supervisor.io_config.start.kind != "earliest" and all(p.stored is None for p in topic.partitions):
        raise Conflict("No offsets are stored: this supervisor has not read its topic yet.")
    begins = {p.to.partition: _goes_on(p) for p in topic.partitions}
    ends = topic.resolved.offsets
    skipped = {p: (begins[p], end) for p, end in ends.items() if begins[p] < end}
    if not skipped:
        raise Conflict("There is nothing to skip: the supervisor has reached the end of its topic.")
    count = _task_count(supervisor, task_count)
    if dry_run:
        return _plan(supervisor, source, skipped, count)
    with transaction.atomic():
        locked, identifier = _lock(supervisor)
        _check_fillable(locked)
        source = movable_source(locked)
        if source.topic_id != topic.resolved.topic_id:
            raise Conflict(f"Topic {source.topic!r} was deleted and created again meanwhile. Nothing was changed.")
        tasks = list(Task.objects.active().ingesting().filter(supervisor_id=locked.pk).values_list("pk", flat=True))
        why = f"{user} let the reader of {source.topic} go on at its end. Backfill {identifier} reads what it skips."
        passed = claims.skip_stored_offsets(source, tasks, begins, ends, why)
        if not passed:
            raise Conflict("There is nothing to skip: the supervisor has reached the end of its topic.")
        locked.wake()
        locked.save(update_fields=["ends_seen", "inactive_since", "idle_since", "calm_until"])
        plan = _plan(locked, source, passed, count)
        return _begin(user, plan, identifier, "skip_and_fill")


def fill(
    *,
    user: User,
    supervisor: Supervisor,
    wanted: Mapping[str, Any],
    task_count: int | None = None,
    dry_run: bool = False,
) -> BackfillPlan:
    """Let a backfill read what of some offsets is not settled.

    ``wanted``: fields of a ``boundedStreamConfig``. Asks Kafka, and refuses as a bounded read does. Raises as
    ``skip_and_fill``; ``Conflict`` where all of it is settled, as a settled offset is not read again.
    """
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    _check_fillable(supervisor)
    count = _task_count(supervisor, task_count)
    spec = _spec(supervisor, wanted, count)
    document = {"id": supervisor.owner, **for_ranges(supervisor.current.spec, wanted, count)}
    resolved = bounds.with_offsets(
        user=user,
        document=document,
        spec=spec,
        team_name=supervisor.datasource.team.name,
        action=Action.ADMINISTER,
        properties=lambda: kafka_properties(
            supervisor.datasource.team_id, supervisor.io_config, supervisor.current.secrets
        ),
    )
    bounded = resolved.spec.ioConfig.boundedStreamConfig or BoundedStreamConfig.model_validate(wanted)
    sources = sources_of(supervisor.datasource_id, supervisor.io_config, supervisor.owner)
    source = sources.filter(topic_id=bounded.topicId or "").first()
    if source is None:
        raise Conflict("This supervisor has not read its topic yet, so there is no gap to fill.")
    ranges = {p: (start, end) for p, (start, end) in bounded.ranges.items() if start < end}
    if not ranges:
        raise Conflict("There are no offsets between this start and this end.")
    plan = _plan(supervisor, source, ranges, count)
    if not plan.left:
        raise Conflict("All of these offsets are settled already. What is settled is not read again.")
    if dry_run:
        _check_unread(plan, source)
        return plan
    with transaction.atomic():
        locked, identifier = _lock(supervisor)
        _check_fillable(locked)
        _check_unread(plan, source)
        return _begin(user, replace(plan, supervisor=locked), identifier, "fill")


def fill_again(
    *, user: User, backfill: Supervisor, task_count: int | None = None, dry_run: bool = False
) -> BackfillPlan:
    """Let another backfill read what a terminated one has left. Raises as ``fill``.

    ``task_count``: its indexers, as many as the terminated one's if it is not said.
    """
    bounded, target = backfill.io_config.boundedStreamConfig, backfill.fills
    if bounded is None or target is None:
        raise InvalidInput(f"{backfill.pk} is no backfill.")
    fields = ("startSequenceNumbers", "endSequenceNumbers", "topicId")
    wanted = {name: value for name, value in bounded.model_dump().items() if name in fields}
    count = backfill.io_config.taskCount if task_count is None else task_count
    return fill(user=user, supervisor=target, wanted=wanted, task_count=count, dry_run=dry_run)


def _check_fillable(supervisor: Supervisor) -> None:
    if supervisor.terminated_at is not None:
        raise Conflict(f"Supervisor {supervisor.pk} is terminated.")
    if supervisor.fills_id is not None:
        raise backfill_conflict(supervisor)
    if supervisor.io_config.topicPattern is not None:
        raise InvalidInput(
            f"Supervisor {supervisor.pk} reads several topics. Do this for the supervisor of each topic."
        )
    if supervisor.io_config.boundedStreamConfig is not None:
        raise InvalidInput(f"Supervisor {supervisor.pk} reads given offsets only. Submit another bounded supervisor.")
    if len(supervisor.owner) > LONGEST_ID - len(FILL_MARK) - 6:
        raise InvalidInput("The supervisor's id is too long for a backfill's id, which begins with it.")


def _check_unread(plan: BackfillPlan, source: Source) -> None:
    """Twice the same would only take slots: what one backfill has settled the other one passes over."""
    read = read_by_backfills(plan.supervisor, source)
    if all(not subtracted([span], read.get(partition, [])) for partition, span in plan.ranges.items()):
        raise Conflict("Other backfills read all of these offsets already. Terminate them to begin another one.")


def _task_count(supervisor: Supervisor, wanted: int | None) -> int:
    count = autoscaler.task_count(supervisor) if wanted is None else wanted
    if count < 1:
        raise InvalidInput("The number of indexers must be 1 or more.")
    check_room(supervisor.io_config.model_copy(update={"taskCount": count, "replicas": 1}), supervisor.datasource.team)
    return count


def _goes_on(reset: PartitionReset) -> int:
    """Where reading would go on. What retention has taken is the backfill's, which names it as a gap."""
    return reset.to.log_start if reset.stored is None else reset.stored


def _plan(supervisor: Supervisor, source: Source, ranges: Mapping[int, Range], task_count: int) -> BackfillPlan:
    left = unsettled(source, ranges, 1)
    partitions = [PartitionFill(p, start, end, left[p].lag) for p, (start, end) in sorted(ranges.items())]
    return BackfillPlan(supervisor, source.topic_id, partitions, task_count)


def _lock(supervisor: Supervisor) -> tuple[Supervisor, str]:
    """The supervisor, locked, and the id of its next backfill: all of one owner are counted together."""
    names = {supervisor.owner, supervisor.pk}
    list(Supervisor.objects.select_for_update().filter(pk__in=names).order_by("pk"))  # its pattern's first
    prefix = f"{supervisor.owner}{FILL_MARK}"
    taken = Supervisor.objects.filter(pk__startswith=prefix).values_list("pk", flat=True)
    number = max((int(pk.removeprefix(prefix)) for pk in taken), default=0) + 1
    return Supervisor.objects.select_related("datasource__team").get(pk=supervisor.pk), f"{prefix}{number}"


def _begin(user: User, plan: BackfillPlan, identifier: str, action: str) -> BackfillPlan:
    """The backfill, with the spec that its supervisor has now; in the caller's transaction."""
    supervisor = plan.supervisor
    wanted = {
        "startSequenceNumbers": {str(p): start for p, (start, _) in plan.ranges.items()},
        "endSequenceNumbers": {str(p): end for p, (_, end) in plan.ranges.items()},
        "topicId": plan.topic_id,
    }
    canonical = {**_spec(supervisor, wanted, plan.task_count).canonical(), "suspended": False}
    claim_group(supervisor.datasource.team, supervisor.io_config.group, identifier)
    backfill = Supervisor.objects.create(id=identifier, datasource=supervisor.datasource, fills=supervisor)
    SpecVersion.objects.create(
        supervisor=backfill,
        version=1,
        spec={name: value for name, value in canonical.items() if name != "id"},
        secrets=supervisor.current.secrets,
        created_by=user,
    )
    ranges = [{"partition": p, "start": start, "end": end} for p, (start, end) in plan.ranges.items()]
    record_action(user, supervisor, action, backfill=identifier, ranges=ranges, task_count=plan.task_count)
    run_soon(identifier)
    if action == "skip_and_fill":
        run_soon(supervisor.pk)
    return replace(plan, backfill=backfill)


def _spec(supervisor: Supervisor, wanted: Mapping[str, Any], task_count: int) -> SupervisorSpec:
    """Raises ``InvalidInput``."""
    document = {**for_ranges(supervisor.current.spec, wanted, task_count), "id": supervisor.owner}
    try:
        return parse_supervisor_spec(document)
    except SpecError as error:
        raise invalid_spec(error) from None
