"""Writes of drafts. Who may take samples in a team may write its drafts; what may be submitted its services decide."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput, NotAllowed
from controlplane.connections.secrets import SecretsLost, seal, unseal
from controlplane.connections.selectors import own_properties_allowed
from controlplane.loading import samples
from controlplane.loading.documents import Document, apart, kept_secrets, nested, value_at, whole
from controlplane.loading.models import Draft
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.services import refused_alone, submit_supervisor
from controlplane.tasks.models import Task
from controlplane.tasks.services import submit_task
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, may, require, teams_of
from ingestion.specs.inputs.sources import model_named

MOST_DRAFTS = 100  # of one user
KEPT_FOR = timedelta(days=30)
_READ_FROM = (
    ("spec", "ioConfig", "topic"),
    ("spec", "ioConfig", "consumerProperties"),
    ("spec", "ioConfig", "connection"),
)


def begin_draft(*, user: User, team_name: str | None = None, document: Any = None) -> Draft:
    """A new spec's draft, of a team of which the user is an operator. Raises ``InvalidInput``, ``NotAllowed``."""
    team = team_of_draft(user, team_name)
    _check_room(user)
    draft = Draft(owner=user, team=team)
    _write(draft, nested(beginning(team) if document is None else document))
    draft.save()
    return draft


def begin_change(*, user: User, supervisor: Supervisor) -> Draft:
    """A draft of a change of a supervisor's spec, with its secrets. Raises ``NotAllowed``, ``Conflict``."""
    team = supervisor.datasource.team
    require(user, Action.OPERATE, team)
    if supervisor.parent_id is not None:
        raise refused_alone(supervisor)
    if supervisor.io_config.topicPattern is not None:
        raise Conflict("A draft reads one topic, and this supervisor's spec has a topic pattern. Change it as JSON.")
    _check_room(user)
    current = supervisor.current
    document = {name: value for name, value in current.spec.items() if name != "suspended"}
    return Draft.objects.create(
        owner=user,
        team=team,
        supervisor=supervisor,
        base_version=current.version,
        document=nested(document),
        secrets=current.secrets,
    )


def change_draft(*, user: User, draft: Draft, document: Any, step: str | None = None) -> Draft:
    """Write its spec anew. Secrets that it leaves out are kept while it speaks to the same servers in the same way.

    Raises ``InvalidInput`` when it is nothing that a spec can be made of.
    """
    require(user, Action.OPERATE, draft.team)
    written = nested(document)
    with transaction.atomic():
        locked = Draft.objects.select_for_update().get(pk=draft.pk)
        elsewhere = any(value_at(locked.document, path) != value_at(written, path) for path in _READ_FROM)
        secrets_before = locked.secrets
        _write(locked, written)
        if step is not None:
            locked.step = step
        locked.save()
    if elsewhere or locked.secrets != secrets_before:
        samples.forget(draft)
    return locked


def _write(draft: Draft, document: Document) -> None:
    shown, given = apart(document)
    kept: dict[str, str] = {}
    if draft.secrets:
        try:
            before = unseal(draft.secrets)
        except SecretsLost:
            before = {}
        kept = kept_secrets(draft.document, before, shown)
        if {**kept, **given} == before:  # sealing anew would look like a change
            draft.document = shown
            return
    draft.document, draft.secrets = shown, seal({**kept, **given})


def delete_draft(*, user: User, draft: Draft) -> None:
    """With the records that were kept for it. Raises ``NotAllowed``: its owner may, and the team's admins."""
    if draft.owner_id != user.pk:
        require(user, Action.ADMINISTER, draft.team)
    samples.forget(draft)
    draft.delete()


def submit_draft(*, user: User, draft: Draft, as_task: bool = False) -> Supervisor | Task:
    """Make a supervisor, or a task that runs once, of it; the draft is gone then.

    Raises what ``submit_supervisor`` and ``submit_task`` raise, and ``Conflict`` when the supervisor's spec was changed
    by somebody else in the meantime.
    """
    if as_task and draft.supervisor is not None:
        raise InvalidInput("This draft changes a supervisor. Create a new draft to submit a task.")
    document = _typed(submitted(draft), as_task)
    with transaction.atomic():
        _check_base(draft)
        submit = submit_task if as_task else submit_supervisor
        made = submit(user=user, document=document, team_name=draft.team.name)
        Draft.objects.filter(pk=draft.pk).delete()
    samples.forget(draft)
    return made


def _typed(document: Document, as_task: bool) -> Document:
    """A task and a supervisor of one source have types of their own."""
    model = model_named(document.get("type"))
    if model is None:
        return document  # its fault will be told
    traits = model.traits_in(document["spec"]["ioConfig"])
    return {**document, "type": traits.task_type if as_task else traits.supervisor_type}


def _check_base(draft: Draft) -> None:
    if draft.supervisor is None:
        return
    # Locked: nobody may add a version between this look and the new one.
    version = Supervisor.objects.select_for_update().values_list("version", flat=True).get(pk=draft.supervisor.pk)
    if version != draft.base_version:
        raise Conflict(
            f"Supervisor {draft.supervisor.pk} now has version {version} of its spec. This draft changes version "
            f"{draft.base_version}. Create a new draft from the current version."
        )


def submitted(draft: Draft, document: Document | None = None) -> Document:
    """Its spec, or another document that speaks to the same, with its secrets as it is sent on."""
    document = draft.document if document is None else document
    try:
        return whole(document, unseal(draft.secrets))
    except SecretsLost:
        return document  # what is missing now will be said


def drop_old_drafts() -> int:
    """Those that nobody has changed for ``KEPT_FOR``; how many there were."""
    return Draft.objects.filter(updated_at__lt=timezone.now() - KEPT_FOR).delete()[0]


def beginning(team: Team) -> Document:
    """What a new draft begins with; without servers where the team takes connections by name only."""
    known = settings.DEFAULT_BOOTSTRAP and own_properties_allowed(team)
    servers = {"bootstrap.servers": settings.DEFAULT_BOOTSTRAP} if known else {}
    return {
        "type": "kafka",
        "spec": {
            "dataSchema": {
                "dimensionsSpec": {"useSchemaDiscovery": True},
                "granularitySpec": {"segmentGranularity": "HOUR", "queryGranularity": "NONE", "rollup": False},
            },
            "ioConfig": {"consumerProperties": servers, "useEarliestOffset": True, "taskCount": 1},
        },
    }


def team_of_draft(user: User, name: str | None = None) -> Team:
    """The one named, else one of which the user is an admin, else an operator.

    Raises ``InvalidInput``, ``NotAllowed``.
    """
    teams = teams_of(user)
    if name:
        named = teams.filter(name=name).first()
        if named is None:
            raise InvalidInput(f"There is no team {name!r} that you belong to.")
        require(user, Action.OPERATE, named)
        return named
    mine = [team for team in teams.order_by("name") if may(user, Action.OPERATE, team)]
    if not mine:
        raise NotAllowed("This needs the role operator in a team.")
    return next((team for team in mine if may(user, Action.ADMINISTER, team)), mine[0])


def _check_room(user: User) -> None:
    if Draft.objects.filter(owner=user).count() >= MOST_DRAFTS:
        raise Conflict(f"You already have {MOST_DRAFTS} drafts. Delete some first.")
