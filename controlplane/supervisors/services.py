"""Writes to supervisors. Each change of a spec is a new version; running tasks follow at the next round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.common.errors import ChangedMeanwhile, Conflict, InvalidInput, NotFound
from controlplane.common.text import storable
from controlplane.connections import named_connections
from controlplane.connections.admission import check_complete
from controlplane.connections.secrets import SecretsLost, seal, unseal
from controlplane.datasources.groups import claim_group
from controlplane.datasources.selectors import team_of_spec
from controlplane.datasources.services import datasource_for_ingestion
from controlplane.quotas.services import check_indexers
from controlplane.sources.spec_sources import TOPIC_SEPARATOR
from controlplane.supervisors.celery_tasks import run_one
from controlplane.supervisors.models import SpecVersion, Supervisor, Switch
from controlplane.supervisors.topic_supervisors import LONGEST_PARENT_ID, end_backfills
from controlplane.tasks import bounded_reads, bounds
from controlplane.tasks.checking import read_spec
from controlplane.tasks.services import check_room, check_slots
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, may, require
from ingestion.specs.kafka import secrets as spec_secrets
from ingestion.specs.kafka.providers import Value
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec, parse_supervisor_spec
from ingestion.specs.tasks.stored_specs import with_task_count

OWN_RUN_WITHIN = timedelta(minutes=1)  # a start that is further away needs no round of its own


def submit_supervisor(
    *,
    user: User,
    document: Any,
    team_name: str | None = None,
    skip_unmodified: bool = False,
    rolled_back_to: SpecVersion | None = None,
    dry_run: bool = False,
    version: int | None = None,
) -> Supervisor:
    """Create a supervisor, or give the one of that id a new spec. The spec that it has already is no new version: its
    tasks hand over to others.

    ``skip_unmodified``: that spec restarts nothing either. ``rolled_back_to``: an earlier version, which the document
    is of: it has that one's secrets. ``dry_run``: all of it is done, and taken back.
    ``version``: the one that the caller has read; 0 for none.

    Raises ``InvalidInput`` with every fault, ``NotAllowed``, ``Conflict``, ``ChangedMeanwhile``.
    """
    _check_not_child(user, document)
    spec = read_spec(user, document, parse_supervisor_spec)
    if spec.spec.ioConfig.topicPattern is not None and len(spec.id or spec.datasource) > LONGEST_PARENT_ID:
        raise InvalidInput(f"With topicPattern the supervisor's id may have at most {LONGEST_PARENT_ID} characters.")
    check_room(spec.spec.ioConfig)
    reached = named_connections.admit(document, team_of_spec(user, spec.datasource, team_name), spec.spec.ioConfig)
    spec = bounds.with_offsets(
        user=user,
        document=document,
        spec=spec,
        team_name=team_name,
        action=Action.ADMINISTER,
        properties=lambda: _properties(spec, reached.properties),
    )
    with transaction.atomic():
        datasource = datasource_for_ingestion(
            user=user, name=spec.datasource, team_name=team_name, action=Action.ADMINISTER
        )
        check_room(spec.spec.ioConfig, datasource.team)
        identifier = spec.id or spec.datasource
        # Before the group's lock: a round that begins a topic of its pattern takes them in this order, too.
        existing = Supervisor.objects.select_for_update().filter(pk=identifier).first()
        _check_version(identifier, existing, version)
        claim_group(datasource.team, spec.spec.ioConfig.group, identifier)
        if existing is None:
            supervisor = Supervisor.objects.create(id=identifier, datasource=datasource, suspended=spec.suspended)
            _add_version(supervisor, document, spec, user)
            record_action(user, supervisor, "create", version=1, **_offsets_of(spec))
            if timedelta() < spec.spec.ioConfig.startDelay <= OWN_RUN_WITHIN:
                run_soon(identifier, after=spec.spec.ioConfig.startDelay)
        else:
            if existing.datasource_id != datasource.pk:
                raise Conflict(f"The supervisor id {identifier!r} is taken. Choose another.")
            if rolled_back_to is None and existing.terminated_at is None and not modifies(existing, spec):
                if skip_unmodified:
                    return existing
                supervisor = _restart(existing)
                detail: dict[str, Any] = {"unmodified": True}
            else:
                supervisor = _update(existing, document, spec, user, rolled_back_to)
                detail = {"rolled_back_to": rolled_back_to.version} if rolled_back_to else {}
            record_action(user, supervisor, "update", version=supervisor.version, **detail, **_offsets_of(spec))
        transaction.set_rollback(dry_run)
    if not dry_run:
        run_soon(supervisor.pk)
    return supervisor


def _offsets_of(spec: SupervisorSpec) -> dict[str, Any]:
    """For the audit trail, of one that reads given offsets."""
    ranges = bounded_reads.ranges_of(spec.spec.ioConfig)
    return {"ranges": ranges} if ranges else {}


def _properties(spec: SupervisorSpec, written: Mapping[str, Value]) -> Mapping[str, Value]:
    """What the spec connects to: with the secrets that it leaves out, and that its supervisor has."""
    existing = Supervisor.objects.filter(pk=spec.id or spec.datasource).select_related("datasource").first()
    if existing is None:
        return written
    canonical, hidden = spec_secrets.split_secrets(spec.canonical())
    secrets = {**_kept_secrets(existing.current, canonical), **hidden}
    return named_connections.connect_target(existing.datasource.team_id, spec.spec.ioConfig, secrets).properties


def _check_version(identifier: str, existing: Supervisor | None, version: int | None) -> None:
    """Raise ``ChangedMeanwhile`` when the supervisor, locked, has another version than the caller has read."""
    current = existing.version if existing is not None else 0
    if version is None or version == current:
        return
    now = f"has spec version {current}" if current else "does not exist"
    expected = f"version {version}" if version else "that it does not exist"
    raise ChangedMeanwhile(f"Supervisor {identifier!r} {now}; you expected {expected}. Read it again.")


def _check_not_child(user: User, document: Any) -> None:
    """Raise ``Conflict`` for the spec of one that reads a topic for another."""
    document_id = document.get("id") if isinstance(document, dict) else None
    if isinstance(document_id, str) and TOPIC_SEPARATOR in document_id and storable(document_id):
        made = Supervisor.objects.visible_to(user).filter(pk=document_id).first()
        if made is not None and made.is_made_by_another:
            raise child_conflict(made)


def child_conflict(child: Supervisor) -> Conflict:
    """What is done to all topics of a pattern together can't be done to one; nor has a backfill a spec of its own."""
    if child.fills_id is not None:
        return Conflict(
            f"{child.pk} is a backfill of {child.fills_id}, with its spec. Suspend, scale or terminate it, or begin "
            "another backfill."
        )
    topic, parent = child.io_config.topic, child.parent_id
    return Conflict(
        f"{child.pk} reads topic {topic!r} for supervisor {parent}. Change, suspend, resume, scale or terminate "
        f"{parent} instead. That applies to all of its topics."
    )


def modifies(supervisor: Supervisor, spec: SupervisorSpec) -> bool:
    """Whether the spec, were it submitted, would change anything of what holds; its secrets too."""
    current = supervisor.current
    canonical, hidden = spec_secrets.split_secrets(spec.canonical())
    try:
        current_secrets = unseal(current.secrets)
    except SecretsLost:
        return True  # what can't be opened is mended by a spec that has them
    same_secrets = all(current_secrets.get(name) == value for name, value in hidden.items())
    same_spec = _without_own_fields(canonical) == _without_own_fields(current.spec)
    same_state = spec.suspended_after(supervisor.suspended) == supervisor.suspended
    return not (same_spec and same_secrets and same_state)


def _without_own_fields(canonical: dict[str, Any]) -> dict[str, Any]:
    """Without what the supervisor has of its own: its id, and whether it is suspended just now."""
    return {name: value for name, value in canonical.items() if name not in ("id", "suspended")}


def roll_back(*, user: User, supervisor: Supervisor, version: int) -> Supervisor:
    """A new version with the content of an earlier one, by the usual way: it must be a good spec today.

    Whether it is suspended stays as it is. Raises what ``submit_supervisor`` raises, ``NotFound``, ``Conflict``.
    """
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    earlier = supervisor.versions.filter(version=version).first()
    if earlier is None:
        raise NotFound(f"Supervisor {supervisor.pk} has no spec version {version}.")
    if version == supervisor.version:
        raise Conflict(f"Version {version} is the current version.")
    document = {name: value for name, value in earlier.spec.items() if name != "suspended"}
    document["id"] = supervisor.pk
    return submit_supervisor(
        user=user, document=document, team_name=supervisor.datasource.team.name, rolled_back_to=earlier
    )


def _restart(supervisor: Supervisor) -> Supervisor:
    """Have its tasks hand over, by the spec that it has; it is locked."""
    supervisor.scaling_since = timezone.now()
    supervisor.begin()
    supervisor.save()
    ask_to_hand_off(supervisor)
    return supervisor


def ask_to_hand_off(supervisor: Supervisor) -> None:
    """Its tasks end once the next ones are up, and so do those of the topics of its pattern; it is locked."""
    for each in [supervisor, *locked_children(supervisor)]:
        each.handoff_asked_at, each.calm_until = timezone.now(), None
        each.save(update_fields=["handoff_asked_at", "calm_until"])


def locked_children(supervisor: Supervisor) -> list[Supervisor]:
    """Who reads the topics of its pattern for it, locked."""
    children = supervisor.children.select_for_update(of=("self",)).filter(terminated_at=None).order_by("pk")
    return list(children.select_related("datasource__team"))


def _update(
    supervisor: Supervisor, document: Any, spec: SupervisorSpec, user: User, rolled_back_to: SpecVersion | None = None
) -> Supervisor:
    if spec.spec.ioConfig.auto_scaler is None or supervisor.terminated_at is not None:
        supervisor.decided_task_count = None
    supervisor.scaling_since = timezone.now()
    supervisor.version += 1
    supervisor.begin()
    supervisor.suspended = spec.suspended_after(supervisor.suspended and supervisor.terminated_at is None)
    supervisor.terminated_at = None
    supervisor.save()
    previous = rolled_back_to or supervisor.versions.get(version=supervisor.version - 1)
    _add_version(supervisor, document, spec, user, previous)
    return supervisor


def _add_version(
    supervisor: Supervisor, document: Any, spec: SupervisorSpec, user: User, previous: SpecVersion | None = None
) -> None:
    """``previous``: a version. Nobody is shown its secrets, so a spec that leaves them out keeps them."""
    canonical, hidden = spec_secrets.split_secrets(spec.canonical())
    secrets = {**(_kept_secrets(previous, canonical) if previous else {}), **hidden}
    named_connections.lock_connections(supervisor.datasource.team, spec.spec.ioConfig)
    check_complete(
        document,
        named_connections.connect_target(supervisor.datasource.team_id, spec.spec.ioConfig, secrets).properties,
    )
    canonical["suspended"] = supervisor.suspended
    SpecVersion.objects.create(
        supervisor=supervisor, version=supervisor.version, spec=canonical, secrets=seal(secrets), created_by=user
    )


def _kept_secrets(previous: SpecVersion, canonical: dict[str, Any]) -> dict[str, str]:
    try:
        return spec_secrets.kept_secrets(previous.spec, unseal(previous.secrets), canonical)
    except SecretsLost:
        return {}  # what is missing now will be said


class AlreadyInState(Conflict):
    """It is suspended already, or runs already."""


def suspend(*, user: User, supervisor: Supervisor) -> Supervisor:
    """Its task publishes what it holds and ends; no new one starts. Raises ``AlreadyInState``."""
    return _change_state(user, supervisor, Action.OPERATE, "suspend", suspended=True)


def suspend_all(*, user: User) -> list[str]:
    """Suspend every supervisor of the user's teams that runs; returns their ids. Those the user may not are left."""
    return _change_each(user, Supervisor.objects.filter(suspended=False), Action.OPERATE, suspend)


def resume_all(*, user: User) -> list[str]:
    """Resume every suspended supervisor of the user's teams in which the user is an operator; returns their ids."""
    return _change_each(user, Supervisor.objects.filter(suspended=True), Action.OPERATE, resume)


def terminate_all(*, user: User) -> list[str]:
    """Terminate every supervisor of the user's teams in which the user is an admin; returns their ids."""
    return _change_each(user, Supervisor.objects.all(), Action.ADMINISTER, terminate)


def _change_each(
    user: User, supervisors: QuerySet[Supervisor], action: Action, change: Callable[..., Supervisor]
) -> list[str]:
    without_parent = supervisors.filter(parent=None)
    visible = Supervisor.objects.visible_to(user).filter(pk__in=without_parent.values("pk"), terminated_at=None)
    permitted = [s for s in visible.select_related("datasource__team") if may(user, action, s.datasource.team)]
    return [s.pk for s in permitted if _try_change(user, s, change)]


def _try_change(user: User, supervisor: Supervisor, change: Callable[..., Supervisor]) -> bool:
    """False when somebody else was faster."""
    try:
        change(user=user, supervisor=supervisor)
    except Conflict:
        return False
    return True


def resume(*, user: User, supervisor: Supervisor) -> Supervisor:
    """It begins again: Kafka is asked, its tasks start. Raises ``AlreadyInState``, ``Conflict`` (a foreign group)."""
    now = timezone.now()
    hold_group(supervisor)
    return _change_state(user, supervisor, Action.OPERATE, "resume", begin=True, suspended=False, scaling_since=now)


@transaction.atomic
def hold_group(supervisor: Supervisor) -> None:
    """Raise ``Conflict`` when its group in Kafka was another team's before it was made."""
    claim_group(supervisor.datasource.team, supervisor.io_config.group, supervisor.pk, since=supervisor.created_at)


def terminate(*, user: User, supervisor: Supervisor) -> Supervisor:
    """Stop it for good; the row and its versions stay. A new spec under the same id brings it back.

    One that reads a topic for another may be stopped alone when the topic is gone. Its backfills end with it.
    """
    now = timezone.now()
    tombstones = [*supervisor.terminations, {"at": now.isoformat(), "by": user.username}]
    with transaction.atomic():
        ended = _change_state(
            user, supervisor, Action.ADMINISTER, "terminate", terminated_at=now, terminations=tombstones
        )
        end_backfills(ended)
    return ended


def _change_state(
    user: User, supervisor: Supervisor, required: Action, action: str, begin: bool = False, **changes: Any
) -> Supervisor:
    require(user, required, supervisor.datasource.team)
    with transaction.atomic():
        locked = Supervisor.objects.select_for_update().get(pk=supervisor.pk)
        if locked.terminated_at is not None:
            advice = "Submit its spec again to bring it back." if locked.fills_id is None else "Begin another backfill."
            raise Conflict(f"Supervisor {locked.pk} is terminated. {advice}")
        if locked.parent_id is not None and not (action == "terminate" and locked.lacks_topic):
            raise child_conflict(locked)
        if changes.get("suspended") is locked.suspended:
            raise AlreadyInState(f"Supervisor {locked.pk} is already {'suspended' if locked.suspended else 'running'}.")
        if begin:
            locked.begin()
        for name, value in changes.items():
            setattr(locked, name, value)
        locked.save()
        if "suspended" in changes:
            Switch.objects.create(supervisor=locked, suspended=locked.suspended, version=locked.version)
        record_action(user, locked, action)
    run_soon(locked.pk)
    return locked


def scale(*, user: User, supervisor: Supervisor, task_count: int) -> Supervisor:
    """Another number of indexers: a new spec version that the running task takes up without a pause."""
    require(user, Action.ADMINISTER, supervisor.datasource.team)
    if isinstance(task_count, bool) or not isinstance(task_count, int) or task_count < 1:
        raise InvalidInput("taskCount must be a whole number, 1 or more.")
    check_slots("taskCount", task_count)
    check_indexers(supervisor.datasource.team, "taskCount", task_count * supervisor.io_config.replicas)
    with transaction.atomic():
        locked = Supervisor.objects.select_for_update().get(pk=supervisor.pk)
        if locked.terminated_at is not None:
            raise Conflict(f"Supervisor {locked.pk} is terminated.")
        if locked.parent_id is not None:
            raise child_conflict(locked)
        current = locked.current
        if current.io_config.auto_scaler is not None:
            raise Conflict(
                f"The autoscaler of {locked.pk} sets the number of its indexers. Change taskCountMin and taskCountMax "
                "in its autoScalerConfig, or disable it."
            )
        locked.version += 1
        locked.save(update_fields=["version"])
        SpecVersion.objects.create(
            supervisor=locked,
            version=locked.version,
            spec=with_task_count(current.spec, task_count),
            secrets=current.secrets,
            created_by=user,
        )
        before = current.io_config.taskCount
        record_action(user, locked, "scale", version=locked.version, task_count=task_count, before=before)
    run_soon(locked.pk)
    return locked


def record_action(user: User, supervisor: Supervisor, action: str, **detail: Any) -> None:
    """Say in the audit trail what a user did to a supervisor; in the transaction that does it."""
    audit.record(
        user=user,
        team=supervisor.datasource.team,
        target="supervisor",
        target_id=supervisor.pk,
        action=action,
        **detail,
    )


def run_soon(supervisor_id: str, after: timedelta = timedelta()) -> None:
    """Something has changed for it, or will have then: have a round at once, not with the next one over all."""
    # Robust: without a broker the change stands, and the next round over all supervisors takes it up.
    in_s = after.total_seconds()
    transaction.on_commit(lambda: run_one.apply_async((supervisor_id,), countdown=in_s), robust=True)
