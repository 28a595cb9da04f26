"""What a spec would change if it were submitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from controlplane.common.spec_text import DiffLine, spec_diff
from controlplane.supervisors.history import secrets_differ
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.services import submit_supervisor
from controlplane.tasks.selectors import shown_spec
from controlplane.teams.models import User


@dataclass(frozen=True)
class SpecPlan:
    """What happens to the supervisor."""

    supervisor: str
    action: str  # create, update, restore (it is terminated) or none
    version: int  # the current one; 0 for none
    diff: list[DiffLine]
    secrets_changed: bool | None  # None: the stored ones can't be opened


def plan(*, user: User, document: Any, team_name: str | None = None, version: int | None = None) -> SpecPlan:
    """Submit the spec, compare, and take all of it back. Raises what ``submit_supervisor`` raises."""
    with transaction.atomic():
        supervisor = submit_supervisor(
            user=user, document=document, team_name=team_name, skip_unmodified=True, version=version
        )
        new = supervisor.current
        transaction.set_rollback(True)
    before = Supervisor.objects.filter(pk=supervisor.pk).first()
    if before is None:
        return SpecPlan(supervisor.pk, "create", 0, spec_diff({}, _shown(new, supervisor)), False)
    if before.version == new.version:
        return SpecPlan(supervisor.pk, "none", before.version, [], False)
    return SpecPlan(
        supervisor=supervisor.pk,
        action="update" if before.terminated_at is None else "restore",
        version=before.version,
        diff=spec_diff(_shown(before.current, before), _shown(new, supervisor)),
        secrets_changed=secrets_differ(before.current.secrets, new.secrets),
    )


def _shown(version: SpecVersion, supervisor: Supervisor) -> dict[str, Any]:
    return {**shown_spec(version.spec), "suspended": supervisor.suspended}
