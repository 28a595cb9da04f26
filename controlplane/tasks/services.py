"""What users and supervisors ask for: tasks submitted, created, stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput, NotAllowed
from controlplane.common.ids import task_id
from controlplane.connections import named_connections
from controlplane.connections.admission import check_complete
from controlplane.connections.secrets import seal
from controlplane.datasources.groups import claim_group
from controlplane.datasources.masking import require_topic_access
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import team_of_spec
from controlplane.datasources.services import datasource_for_ingestion
from controlplane.publishing.models import Rewind
from controlplane.publishing.offset_gaps import OffsetGap
from controlplane.quotas.services import check_indexers
from controlplane.sources.models import Source
from controlplane.tasks import bounded_reads, bounds
from controlplane.tasks.batches import submit_batch
from controlplane.tasks.celery_tasks import launch_on_commit
from controlplane.tasks.checking import read_spec
from controlplane.tasks.lifecycle import set_goal
from controlplane.tasks.models import Goal, Status, Task
from controlplane.tasks.segment_tasks import submit_segment_task
from controlplane.tasks.sources import supervisor_tasks
from controlplane.teams import audit
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, require
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.kafka import secrets as spec_secrets
from ingestion.specs.tasks.batch import is_batch
from ingestion.specs.tasks.ingestion_spec import TaskSpec, parse_task_spec
from ingestion.specs.tasks.segment_tasks import is_segment_task
from ingestion.specs.tasks.stored_specs import io_config_of


def submit_task(*, user: User, document: Any, team_name: str | None = None) -> Task:
    """Take a manual task. Raises ``InvalidInput`` with every fault, ``NotAllowed``, ``Conflict``."""
    if is_batch(document):
        return submit_batch(user=user, document=document, team_name=team_name)
    if is_segment_task(document):
        return submit_segment_task(user=user, document=document)
    spec = read_spec(user, document, parse_task_spec)
    check_slots("taskCount", spec.spec.ioConfig.taskCount)
    reached = named_connections.admit(document, team_of_spec(user, spec.datasource, team_name), spec.spec.ioConfig)
    check_complete(document, reached.properties)
    spec = bounds.with_offsets(
        user=user,
        document=document,
        spec=spec,
        team_name=team_name,
        action=Action.OPERATE,
        properties=lambda: reached.properties,
    )
    if spec.spec.ioConfig.replicas > 1:
        raise InvalidInput("ioConfig.replicas is for supervisors: a manual task has no replicas.")
    with transaction.atomic():
        datasource = datasource_for_ingestion(
            user=user, name=spec.datasource, team_name=team_name, action=Action.OPERATE
        )
        check_indexers(datasource.team, "taskCount", spec.spec.ioConfig.taskCount)
        claim_group(datasource.team, spec.spec.ioConfig.group, datasource.name)
        named_connections.lock_connections(datasource.team, spec.spec.ioConfig)
        _check_masks(user, datasource, spec)
        _check_offsets_are_free(datasource, spec)
        task = create_task(datasource=datasource, spec=spec, user=user)
        _record(user, task, "submit", **({"ranges": task.ranges} if task.is_bounded else {}))
        return task


def _check_masks(user: User, datasource: Datasource, spec: TaskSpec) -> None:
    """Raise ``NotAllowed`` for a task that may store a masked column's values in another column, or elsewhere.

    A task may do what a supervisor of the datasource does with its records: an admin has written that spec.
    """
    what = "a task that reads its topic otherwise than its supervisor does"
    try:
        require_topic_access(user, spec.spec.ioConfig.topic, what, datasource.team)
    except NotAllowed:
        supervised = Task.objects.filter(datasource=datasource).exclude(supervisor_id="").reading()
        newest = supervised.order_by("supervisor_id", "-created_at").distinct("supervisor_id")
        if _reading_key(spec_secrets.split_secrets(spec.canonical())[0]) not in [
            _reading_key(task.spec) for task in newest
        ]:
            raise


def _reading_key(canonical: dict[str, Any]) -> tuple[Any, ...]:
    """What a spec makes of a topic's records. One of an earlier version, which can't be read, is like no other."""
    io_config = io_config_of(canonical)
    return canonical["spec"]["dataSchema"], getattr(io_config, "topic", None), getattr(io_config, "inputFormat", None)


def _check_offsets_are_free(datasource: Datasource, spec: TaskSpec) -> None:
    """Raise ``Conflict`` while tasks of a supervisor called like the datasource move the same stored offsets."""
    io_config = spec.spec.ioConfig
    if not io_config.traits.keeps_offsets or io_config.boundedStreamConfig is not None:
        return
    others = Task.objects.active().reading().filter(supervisor_tasks(datasource.name))
    if any(o.io_config.traits.keeps_offsets and o.io_config.topic == io_config.topic for o in others):
        raise Conflict(
            f"Supervisor {datasource.name!r} reads topic {io_config.topic!r} now, with the same stored offsets as "
            "this task. Change the supervisor's spec instead. Or suspend the supervisor, and wait until its task has "
            "ended."
        )


def check_room(io_config: IOConfig, team: Team | None = None) -> None:
    """Raise ``InvalidInput`` when a supervisor may want more indexers than can ever run: they would wait for ever.

    ``team``: whose it is or would be, if that is known.
    """
    scaler = io_config.auto_scaler
    field = "taskCount" if scaler is None else "autoScalerConfig.taskCountMax"
    most = io_config.taskCount if scaler is None else scaler.bounds[1]
    check_slots(field, most, io_config.replicas)
    check_indexers(team, field, most * io_config.replicas)


def check_slots(field: str, indexers: int, replicas: int = 1) -> None:
    """Check one number of a spec. A task has Spark's slots to itself; all tasks share the pool."""
    if indexers > settings.SPARK_SLOTS:
        raise InvalidInput(
            f"ioConfig.{field} is {indexers}, but one Spark application has {settings.SPARK_SLOTS} slots. Reduce it, "
            "or raise HEADGATE_SPARK_SLOTS."
        )
    if settings.WORKER_CAPACITY and indexers * replicas > settings.WORKER_CAPACITY:
        times = f" (times {replicas} replicas)" if replicas > 1 else ""
        raise InvalidInput(
            f"ioConfig.{field} is {indexers}{times}, but this installation runs at most {settings.WORKER_CAPACITY} "
            "indexers. Reduce it, or raise HEADGATE_WORKER_CAPACITY."
        )


def create_task(
    *,
    datasource: Datasource,
    spec: TaskSpec,
    user: User | None = None,
    supervisor_id: str = "",
    spec_version: int | None = None,
    sealed: str | None = None,
    replica_group: str = "",
    topic_missed: bool = False,
    accepted_at: datetime | None = None,
    shares_application: bool = False,
) -> Task:
    """A PENDING task, launched once the transaction commits. What has no other words here: see ``Task``.

    ``accepted_at``: when the spec was; None: now.
    """
    now = timezone.now()
    canonical, hidden = spec_secrets.split_secrets(spec.counted_from(accepted_at or now).canonical())
    identifier = spec.id or task_id(spec.type, datasource.name, now)
    if Task.objects.filter(pk=identifier).exists():
        raise Conflict(f"There is a task {identifier!r} already.")
    io_config, task_count = spec.spec.ioConfig, spec.spec.ioConfig.taskCount
    bounded, ranges = io_config.boundedStreamConfig is not None, bounded_reads.ranges_of(io_config)
    is_empty = bounded and not ranges
    task = Task.objects.create(
        id=identifier,
        kind=Task.Kind.BOUNDED if bounded else io_config.traits.kind,
        ranges=ranges,
        status=Status.SUCCESS if is_empty else Status.PENDING,
        ended_at=now if is_empty else None,
        datasource=datasource,
        supervisor_id=supervisor_id,
        spec_version=spec_version,
        replica_group=replica_group,
        topic_missed=topic_missed,
        spec=canonical,
        secrets=seal(hidden) if sealed is None else sealed,
        indexers_wanted=min(task_count, len(ranges)) if bounded else task_count,
        slots=settings.SPARK_SLOTS,
        shares_application=shares_application,
        submitted_by=user,
        created_at=now,
    )
    if not is_empty:
        launch_on_commit(task)
    return task


def create_repair(*, like: Task, holes: list[OffsetGap], topic_id: str) -> Task:
    """A task that reads holes of a source with an ordinary reader; spec and secrets are those of ``like``."""
    now = timezone.now()
    task = Task.objects.create(
        id=task_id("repair", like.datasource.name, now),
        kind=Task.Kind.REPAIR,
        datasource=like.datasource,
        supervisor_id=like.supervisor_id,
        spec_version=like.spec_version,
        spec=like.spec,
        secrets=like.secrets,
        ranges=[{"partition": h.partition, "start": h.start, "end": h.end, "topic_id": topic_id} for h in holes],
        indexers_wanted=1,
        slots=1,
        created_at=now,
    )
    launch_on_commit(task)
    return task


@dataclass(frozen=True)
class RewindSpec:
    """With which spec a rewind's task reads: canonical, its secrets sealed; whose it is; and the id of its topic."""

    spec: dict[str, Any]
    secrets: str = field(repr=False)
    supervisor_id: str
    version: int | None
    topic_id: str


def create_rewind_task(
    *, rewind: Rewind, identifier: str, ranges: Sequence[tuple[int, int, int]], spec: RewindSpec
) -> Task:
    """A task that reads a part of a rewind: ``ranges`` of partition, start and end."""
    task = Task.objects.create(
        id=identifier,
        kind=Task.Kind.REWIND,
        datasource=rewind.datasource,
        supervisor_id=spec.supervisor_id,
        spec_version=spec.version,
        spec=spec.spec,
        secrets=spec.secrets,
        ranges=[{"partition": p, "start": s, "end": e, "topic_id": spec.topic_id} for p, s, e in ranges],
        indexers_wanted=1,
        slots=1,
        created_at=timezone.now(),
    )
    launch_on_commit(task)
    return task


def create_replay(
    *,
    identifier: str,
    datasource: Datasource,
    source: Source | None,
    mode: Task.Replay,
    spec: dict[str, Any],
    sealed: str,
    user: User,
    **more: Any,
) -> Task:
    """A task for quarantined records that it holds already, under this id.

    ``source``: theirs; None: they are of files, and the spec is a batch task's. ``spec``: canonical, its secrets in
    ``sealed``. ``more``: the supervisor's id and spec version, if it has one.
    """
    task = Task.objects.create(
        id=identifier,
        kind=Task.Kind.REPLAY,
        datasource=datasource,
        spec=spec,
        secrets=sealed,
        replay_mode=mode,
        replay_source=source,
        indexers_wanted=1,
        slots=1,
        submitted_by=user,
        created_at=timezone.now(),
        **more,
    )
    launch_on_commit(task)
    return task


class EndedAlready(Conflict):
    """It can't be told to end any more."""


def stop_task(*, user: User, task: Task, finish: bool = False) -> Task:
    """Ask a task to end: with ``finish`` it publishes what it holds, else it releases it. Raises ``EndedAlready``."""
    require(user, Action.OPERATE, task.datasource.team)
    with transaction.atomic():
        if not set_goal(task, Goal.FINISH if finish else Goal.STOP):
            raise EndedAlready(f"Task {task.pk} has ended already.")
        _record(user, task, "finish" if finish else "stop")
    task.refresh_from_db()
    return task


def _record(user: User, task: Task, action: str, **detail: Any) -> None:
    audit.record(user=user, team=task.datasource.team, target="task", target_id=task.pk, action=action, **detail)
