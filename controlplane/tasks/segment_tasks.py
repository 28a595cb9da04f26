"""Tasks about segments that are there, submitted: what merges them, and what deletes those that are unused.

Neither has an application of its own. Jobs of the resident one merge (``compaction.by_hand``); Celery's worker deletes
(``tasks.kills``).
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from controlplane.common.errors import Conflict
from controlplane.common.ids import task_id
from controlplane.common.problems import invalid_spec
from controlplane.datasources.selectors import find_datasource
from controlplane.tasks.celery_tasks import launch_on_commit
from controlplane.tasks.models import Task
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs import SpecError
from ingestion.specs.segment_tasks import CompactTaskSpec, KillTaskSpec, parse_segment_task


def submit_segment_task(*, user: User, document: Any) -> Task:
    """Take one. To merge needs the role operator, to delete admin.

    Raises ``InvalidInput`` with every fault, ``NotFound`` without such a datasource, ``NotAllowed``, ``Conflict``.
    """
    spec = check_segment_task(user, document)
    datasource = find_datasource(user, spec.dataSource)
    with transaction.atomic():
        now = timezone.now()
        identifier = spec.id or task_id(spec.type, datasource.name, now)
        if Task.objects.filter(pk=identifier).exists():
            raise Conflict(f"There is a task {identifier!r} already.")
        task = Task.objects.create(
            id=identifier,
            kind=spec.type,
            datasource=datasource,
            spec=spec.model_dump(mode="json", exclude_none=True, exclude_unset=True),
            indexers_wanted=0,
            submitted_by=user,
            created_at=now,
        )
        detail = {"type": spec.type, "interval": spec.interval_text}
        audit.record(user=user, team=datasource.team, target="task", target_id=task.pk, action="submit", **detail)
        if isinstance(spec, KillTaskSpec):
            launch_on_commit(task)
    return task


def check_segment_task(user: User, document: Any) -> CompactTaskSpec | KillTaskSpec:
    """The spec, which could be submitted; changes nothing. Raises as ``submit_segment_task`` does."""
    try:
        spec = parse_segment_task(document)
    except SpecError as error:
        raise invalid_spec(error) from None
    kills = isinstance(spec, KillTaskSpec)
    require(user, Action.ADMINISTER if kills else Action.OPERATE, find_datasource(user, spec.dataSource).team)
    return spec
