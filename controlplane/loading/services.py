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
from controlplane.datasources.models import Datasource
from controlplane.loading import samples
from controlplane.loading.documents import Document, reusable_secrets, split_secrets, to_nested, value_at, with_secrets
from controlplane.loading.models import Draft
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.services import child_conflict, submit_supervisor
from controlplane.tasks.models import Task
from controlplane.tasks.services import submit_task
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, may, require, teams_of
from controlplane.transfers.services import on_transfer
from ingestion.specs.inputs.sources import model_named

MAX_DRAFTS = 100  # of one user
RETENTION = timedelta(days=30)
_SOURCE_PATHS = (
    ("spec", "ioConfig", "topic"),
    ("spec", "ioConfig", "consumerProperties"),
    ("spec", "ioConfig", "connection"),
)


def begin_draft(*, user: User, team_name: str | None = None, document: Any = None) -> Draft:
    """A new spec's draft, of a team of which the user is an operator. Raises ``InvalidInput``, ``NotAllowed``."""
    team = team_of_draft(user, team_name)
    _check_draft_limit(user)
    draft = Draft(owner=user, team=team)
    _write(draft, to_nested(initial_document(team) if document is None else document))
    draft.save()
    return draft


def begin_change(*, user: User, supervisor: Supervisor) -> Draft:
    """A draft of a change of a supervisor's spec, with its secrets. Raises ``NotAllowed``, ``Conflict``."""
    team = supervisor.datasource.team
    require(user, Action.OPERATE, team)
    if supervisor.is_made_by_another:
        raise child_conflict(supervisor)
    if supervisor.io_config.topicPattern is not None:
        raise Conflict("A draft reads one topic, and this supervisor's spec has a topic pattern. Change it as JSON.")
    _check_draft_limit(user)
    current = supervisor.current
    document = {name: value for name, value in current.spec.items() if name != "suspended"}
    return Draft.objects.create(
        owner=user,
        team=team,
        supervisor=supervisor,
        base_version=current.version,
        document=to_nested(document),
        secrets=current.secrets,
    )


def change_draft(*, user: User, draft: Draft, document: Any, step: str | None = None) -> Draft:
    """Write its spec anew. Secrets that it leaves out are kept while it speaks to the same servers in the same way.

    Raises ``InvalidInput`` when it is nothing that a spec can be made of.
    """
    require(user, Action.OPERATE, draft.team)
    written = to_nested(document)
    with transaction.atomic():
        locked = Draft.objects.select_for_update().get(pk=draft.pk)
        elsewhere = any(value_at(locked.document, path) != value_at(written, path) for path in _SOURCE_PATHS)
        secrets_before = locked.secrets
        _write(locked, written)
        if step is not None:
            locked.step = step
        locked.save()
    if elsewhere or locked.secrets != secrets_before:
        samples.delete_sample(draft)
    return locked


def _write(draft: Draft, document: Document) -> None:
    shown, new_secrets = split_secrets(document)
    old_secrets: dict[str, str] = {}
    if draft.secrets:
        try:
            before = unseal(draft.secrets)
        except SecretsLost:
            before = {}
        old_secrets = reusable_secrets(draft.document, before, shown)
        if {**old_secrets, **new_secrets} == before:  # sealing anew would look like a change
            draft.document = shown
            return
    draft.document, draft.secrets = shown, seal({**old_secrets, **new_secrets})


def delete_draft(*, user: User, draft: Draft) -> None:
    """With the records that were kept for it. Raises ``NotAllowed``: its owner may, and the team's admins."""
    if draft.owner_id != user.pk:
        require(user, Action.ADMINISTER, draft.team)
    samples.delete_sample(draft)
    draft.delete()


def submit_draft(*, user: User, draft: Draft, as_task: bool = False) -> Supervisor | Task:
    """Make a supervisor, or a task that runs once, of it; the draft is gone then.

    Raises what ``submit_supervisor`` and ``submit_task`` raise, and ``Conflict`` when the supervisor's spec was changed
    by somebody else in the meantime.
    """
    if as_task and draft.supervisor is not None:
        raise InvalidInput("This draft changes a supervisor. Create a new draft to submit a task.")
    document = _with_type(submission_document(draft), as_task)
    with transaction.atomic():
        _check_base(draft)
        submit = submit_task if as_task else submit_supervisor
        created = submit(user=user, document=document, team_name=draft.team.name)
        Draft.objects.filter(pk=draft.pk).delete()
    samples.delete_sample(draft)
    return created


def _with_type(document: Document, as_task: bool) -> Document:
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


def submission_document(draft: Draft, document: Document | None = None) -> Document:
    """Its spec, or another document that speaks to the same, with its secrets as it is sent on."""
    document = draft.document if document is None else document
    try:
        return with_secrets(document, unseal(draft.secrets))
    except SecretsLost:
        return document  # what is missing now will be said


def drop_old_drafts() -> int:
    """Those that nobody has changed for ``RETENTION``; how many there were."""
    return Draft.objects.filter(updated_at__lt=timezone.now() - RETENTION).delete()[0]


def initial_document(team: Team) -> Document:
    """What a new draft begins with; without servers where the team takes connections by name only."""
    use_default = settings.DEFAULT_BOOTSTRAP and own_properties_allowed(team)
    servers = {"bootstrap.servers": settings.DEFAULT_BOOTSTRAP} if use_default else {}
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


def _check_draft_limit(user: User) -> None:
    if Draft.objects.filter(owner=user).count() >= MAX_DRAFTS:
        raise Conflict(f"You already have {MAX_DRAFTS} drafts. Delete some first.")


@on_transfer
def forget_drafts(datasource: Datasource) -> None:
    """Drafts that change its supervisors hold their specs, sealed secrets and records: they stay with nobody."""
    for draft in Draft.objects.filter(supervisor__datasource=datasource):
        samples.delete_sample(draft)
        draft.delete()
