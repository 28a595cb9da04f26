"""Writes to supervisors. Each change of a spec is a new version; running tasks follow at the next round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.connections.secrets import seal, unseal
from controlplane.datasources.services import datasource_for_ingestion
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.checking import read_spec
from controlplane.tasks.services import check_slots, split_secrets
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs import SupervisorSpec, parse_supervisor_spec


def submit_supervisor(*, user: User, document: Any, team_name: str | None = None) -> Supervisor:
    """Create a supervisor, or give the one of that id a new spec.

    Raises ``InvalidInput`` with every fault, ``NotAllowed``, ``Conflict``.
    """
    spec = read_spec(document, parse_supervisor_spec)
    check_slots(spec.spec.ioConfig.taskCount)
    with transaction.atomic():
        datasource = datasource_for_ingestion(
            user=user, name=spec.datasource, team_name=team_name, action=Action.ADMINISTER
        )
        identifier = spec.id or spec.datasource
        known = Supervisor.objects.select_for_update().filter(pk=identifier).first()
        if known is None:
            supervisor = Supervisor.objects.create(id=identifier, datasource=datasource, suspended=spec.suspended)
            _add_version(supervisor, spec, user)
        else:
            if known.datasource_id != datasource.pk:
                raise Conflict(f"The supervisor id {identifier!r} is taken; choose another.")
            supervisor = _update(known, spec, user)
    _run_soon(supervisor)
    return supervisor


def _update(supervisor: Supervisor, spec: SupervisorSpec, user: User) -> Supervisor:
    supervisor.version += 1
    supervisor.suspended = spec.suspended
    supervisor.terminated_at = None
    supervisor.state = supervisor.detailed_state = "PENDING"
    supervisor.save()
    before = supervisor.versions.get(version=supervisor.version - 1)
    _add_version(supervisor, spec, user, unseal(before.secrets))
    return supervisor


def _add_version(
    supervisor: Supervisor, spec: SupervisorSpec, user: User, kept: Mapping[str, str] | None = None
) -> None:
    """``kept``: the last version's secrets, which nobody is shown; a spec that leaves them out keeps them."""
    canonical, hidden = split_secrets(spec.canonical())
    with_user = "sasl.username" in canonical["spec"]["ioConfig"]["consumerProperties"]
    secrets = {**(kept or {}), **hidden} if with_user else hidden
    SpecVersion.objects.create(
        supervisor=supervisor, version=supervisor.version, spec=canonical, secrets=seal(secrets), created_by=user
    )


def suspend(*, user: User, supervisor: Supervisor) -> Supervisor:
    """Its task publishes what it holds and ends; no new one starts."""
    return _set(user, supervisor, Action.OPERATE, suspended=True)


def resume(*, user: User, supervisor: Supervisor) -> Supervisor:
    """A task starts at the next round."""
    return _set(user, supervisor, Action.OPERATE, suspended=False)


def terminate(*, user: User, supervisor: Supervisor) -> Supervisor:
    """As suspend, for good; the row and its versions stay. A new spec under the same id brings it back."""
    return _set(user, supervisor, Action.ADMINISTER, terminated_at=timezone.now())


def _set(user: User, supervisor: Supervisor, action: Action, **changes: Any) -> Supervisor:
    require(user, action, supervisor.datasource.team)
    with transaction.atomic():
        locked = Supervisor.objects.select_for_update().get(pk=supervisor.pk)
        if locked.terminated_at is not None:
            raise Conflict(f"Supervisor {locked.pk} is terminated; submit its spec again to bring it back.")
        for name, value in changes.items():
            setattr(locked, name, value)
        locked.save(update_fields=list(changes))
    _run_soon(locked)
    return locked


def scale(*, user: User, supervisor: Supervisor, task_count: int) -> Supervisor:
    """Another number of indexers: a new spec version that the running task takes up without a pause."""
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    if isinstance(task_count, bool) or not isinstance(task_count, int) or task_count < 1:
        raise InvalidInput("taskCount must be a whole number of at least 1.")
    check_slots(task_count)
    with transaction.atomic():
        locked = Supervisor.objects.select_for_update().get(pk=supervisor.pk)
        if locked.terminated_at is not None:
            raise Conflict(f"Supervisor {locked.pk} is terminated.")
        current = locked.versions.get(version=locked.version)
        spec = {**current.spec["spec"], "ioConfig": {**current.spec["spec"]["ioConfig"], "taskCount": task_count}}
        locked.version += 1
        locked.save(update_fields=["version"])
        SpecVersion.objects.create(
            supervisor=locked,
            version=locked.version,
            spec={**current.spec, "spec": spec},
            secrets=current.secrets,
            created_by=user,
        )
    _run_soon(locked)
    return locked


def _run_soon(supervisor: Supervisor) -> None:
    from controlplane.supervisors.tasks import run_one

    # Robust: without a broker the change stands, and the next round over all supervisors takes it up.
    transaction.on_commit(lambda: run_one.delay(supervisor.pk), robust=True)
