"""Tasks about segments that are there, submitted: what merges them, and what deletes those that are unused.

Neither has an application of its own. Jobs of the resident one merge (``compaction.by_hand``); Celery's worker deletes
(``tasks.kills``). A ``compact`` task that changes rows is a batch task in other words, and has one's application.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from controlplane.common.errors import Conflict, invalid_spec
from controlplane.common.ids import task_id
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import find_datasource
from controlplane.tasks.batches import check_source, slots_of
from controlplane.tasks.celery_tasks import launch_on_commit
from controlplane.tasks.checking import check_by_data_plane
from controlplane.tasks.models import Task
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.errors import SpecError, SpecIssue
from ingestion.specs.messages.checking import needs_check
from ingestion.specs.tasks.batch import BatchTaskSpec
from ingestion.specs.tasks.segment_tasks import CompactTaskSpec, KillTaskSpec, parse_segment_task


def submit_segment_task(*, user: User, document: Any) -> Task:
    """Take one. To merge needs the role operator, to delete admin.

    Raises ``InvalidInput`` with every fault, ``NotFound`` without such a datasource, ``NotAllowed``, ``Conflict``.
    """
    spec = check_segment_task(user, document)
    datasource = find_datasource(user, spec.dataSource)
    with transaction.atomic():
        task = create_segment_task(datasource, spec, user)
        detail = {"type": spec.type, "interval": spec.interval_text}
        audit.record(user=user, team=datasource.team, target="task", target_id=task.pk, action="submit", **detail)
    return task


def create_segment_task(datasource: Datasource, spec: CompactTaskSpec | KillTaskSpec, user: User | None) -> Task:
    """One that may be; without ``user`` nobody has asked for it. In a transaction. Raises ``Conflict``."""
    now = timezone.now()
    identifier = spec.id or task_id(spec.type, datasource.name, now)
    if Task.objects.filter(pk=identifier).exists():
        raise Conflict(f"There is a task {identifier!r} already.")
    batch_spec = _as_batch_spec(spec)
    slots = 0 if batch_spec is None else slots_of(datasource, batch_spec)
    task = Task.objects.create(
        id=identifier,
        kind=spec.type if batch_spec is None else Task.Kind.REINDEX,
        datasource=datasource,
        spec=spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True),
        batch_spec=None if batch_spec is None else batch_spec.canonical(),
        indexers_wanted=slots,
        slots=slots,
        submitted_by=user,
        created_at=now,
    )
    if batch_spec is not None or isinstance(spec, KillTaskSpec):
        launch_on_commit(task)
    return task


def check_segment_task(user: User, document: Any) -> CompactTaskSpec | KillTaskSpec:
    """The spec, which could be submitted; changes nothing. Raises as ``submit_segment_task`` does."""
    try:
        spec = parse_segment_task(document)
    except SpecError as error:
        raise invalid_spec(error) from None
    is_kill = isinstance(spec, KillTaskSpec)
    require(user, Action.ADMINISTER if is_kill else Action.OPERATE, find_datasource(user, spec.dataSource).team)
    batch_spec = _as_batch_spec(spec)
    if batch_spec is not None:
        _check_batch_spec(user, document, batch_spec)
    return spec


def _as_batch_spec(spec: CompactTaskSpec | KillTaskSpec) -> BatchTaskSpec | None:
    """The batch task that does it; as long as nobody has looked at the segments, what is left out is not known."""
    return spec.batch_task(None) if isinstance(spec, CompactTaskSpec) and spec.rewrites_rows else None


def _check_batch_spec(user: User, document: Any, batch_spec: BatchTaskSpec) -> None:
    check_source(user, batch_spec)
    if not needs_check(batch_spec.spec):
        return
    try:
        check_by_data_plane(user, document, batch_spec)
    except SpecError as error:
        raise invalid_spec(SpecError([_compact_issue(issue) for issue in error.issues])) from None


def _compact_issue(issue: SpecIssue) -> SpecIssue:
    """Its place in the task's document, which has the parts of a ``dataSchema`` at its top."""
    path, pointer = issue.path.removeprefix("dataSchema."), issue.pointer.removeprefix("/dataSchema")
    return SpecIssue(path, pointer, issue.message)
