"""Writes to connections. Deleting one is up to those who know who uses it: ``controlplane.supervisors.connections``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from controlplane.common.errors import ChangedMeanwhile, Conflict, FieldError, InvalidInput
from controlplane.common.text import storable
from controlplane.connections.admission import connection_faults, incomplete_faults
from controlplane.connections.models import Connection, ConnectionRule
from controlplane.connections.secrets import SecretsLost, seal, unseal
from controlplane.connections.selectors import own_properties_allowed
from controlplane.teams import audit
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, require, team_for_new
from controlplane.teams.services import lock_team
from ingestion.specs.errors import SpecError, issue_at
from ingestion.specs.inputs.connection import (
    Document,
    Kind,
    read_connection,
    to_document,
    with_secrets,
    without_secrets,
)
from ingestion.specs.kafka import secrets as spec_secrets
from ingestion.specs.kafka.connection_name import NAME, RULE
from ingestion.specs.limits import in_one_line

MAX_CONNECTIONS = 500  # of a team
LONGEST_DESCRIPTION = 500


@dataclass(frozen=True)
class Draft:
    """What a connection is to hold: its properties without secrets, and these."""

    kind: Kind
    properties: Document
    secrets: dict[str, str] = field(repr=False)

    @property
    def secret_names(self) -> list[str]:
        return sorted(name.removeprefix("/inputFormat") for name in self.secrets)


def create_connection(
    *, user: User, team_name: str | None, name: str, kind: Kind, properties: Any, description: str = ""
) -> Connection:
    """A new connection of the named team, else of the user's only one. Needs the role admin.

    Raises ``InvalidInput`` with every fault, ``NotAllowed``, ``Conflict`` (the name is taken).
    """
    team, kind = team_for_new(user, team_name), Kind(kind)
    if NAME.fullmatch(name) is None:
        raise InvalidInput("The name of the connection is not valid.", [FieldError("/name", RULE, "name")])
    draft = checked_draft(kind, properties)
    with transaction.atomic():
        lock_team(team)  # two of one name must not be made at once
        if Connection.objects.filter(team=team, name=name).exists():
            raise Conflict(
                f"Team {team.name} has a connection {name!r} already. Choose another name, or change that connection."
            )
        if Connection.objects.filter(team=team).count() >= MAX_CONNECTIONS:
            raise Conflict(f"Team {team.name} has {MAX_CONNECTIONS} connections already. Delete some.")
        connection = Connection.objects.create(
            team=team, name=name, kind=kind, created_by=user, changed_by=user, **_columns(draft, description)
        )
        _record(user, connection, "create", kind=kind)
    return connection


def change_connection(
    *, user: User, connection: Connection, properties: Any, description: str | None = None, version: int | None = None
) -> Connection:
    """Give it other properties. Secrets that are left out are kept while who is spoken to, and how, stays the same.

    ``version``: the one that the caller has seen; another one meanwhile raises ``ChangedMeanwhile``. Raises
    ``InvalidInput`` with every fault, ``NotAllowed``.
    """
    require(user, Action.ADMINISTER, connection.team)
    draft = checked_draft(connection.typed_kind, properties, connection)
    with transaction.atomic():
        locked = Connection.objects.select_for_update(of=("self",)).select_related("team").get(pk=connection.pk)
        if locked.version != (connection.version if version is None else version):
            raise ChangedMeanwhile(f"The connection {locked.name!r} has changed since you opened it. Open it again.")
        new_description = locked.description if description is None else description
        before = locked.properties
        for name, value in _columns(draft, new_description).items():
            setattr(locked, name, value)
        locked.version += 1
        locked.changed_by = user
        locked.save()
        _record(user, locked, "change", version=locked.version, before=before, after=locked.properties)
    return locked


@transaction.atomic
def set_rule(*, user: User, team: Team, own_properties: bool) -> ConnectionRule:
    """Say whether a team's specs may say themselves where they connect. Needs the role admin.

    Specs that run already go on; the next one that is submitted is held to it.
    """
    require(user, Action.ADMINISTER, team)
    before = own_properties_allowed(team)
    rule, _ = ConnectionRule.objects.update_or_create(team=team, defaults={"own_properties": own_properties})
    now = {"own_properties": own_properties, "before": before}
    audit.record(user=user, team=team, target="connection", target_id="-", action="rule", **now)
    return rule


def checked_draft(kind: Kind, properties: Any, like: Connection | None = None) -> Draft:
    """Properties as they would be stored, found fit to connect with. Asks the resolver, and no broker.

    ``like``: a connection whose secrets may be left out. Raises ``InvalidInput`` with every fault.
    """
    if like is not None and like.typed_kind is not kind:
        raise InvalidInput(
            f"The connection {like.name!r} is for {like.typed_kind.description}. These properties are not."
        )
    try:
        written, hidden = without_secrets(kind, read_connection(kind, properties))
    except SpecError as error:
        raise _invalid_input([FieldError(i.pointer, i.message, i.path) for i in error.issues]) from None
    draft = Draft(kind, written, {**_kept_secrets(like, kind, written), **hidden})
    complete = with_secrets(kind, draft.properties, draft.secrets)
    faults = connection_faults(kind, complete) or incomplete_faults(kind, complete)
    if faults:
        issues = [issue_at(["properties", *place], reason) for place, reason in faults]
        raise _invalid_input([FieldError(i.pointer, i.message, i.path) for i in issues])
    return draft


def _kept_secrets(like: Connection | None, kind: Kind, written: Document) -> dict[str, str]:
    if like is None:
        return {}
    try:
        secrets = unseal(like.secrets)
    except SecretsLost:
        return {}  # what is missing now will be said
    return spec_secrets.kept_secrets(to_document(kind, like.properties), secrets, to_document(kind, written))


def _columns(draft: Draft, description: str) -> dict[str, Any]:
    if not storable(description) or not in_one_line(description) or len(description) > LONGEST_DESCRIPTION:
        message = f"has at most {LONGEST_DESCRIPTION} characters, in one line"
        raise InvalidInput("The description is not valid.", [FieldError("/description", message, "description")])
    return {
        "description": description,
        "properties": draft.properties,
        "secrets": seal(draft.secrets),
        "secret_names": draft.secret_names,
    }


def _invalid_input(faults: list[FieldError]) -> InvalidInput:
    many = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    return InvalidInput(f"The connection has {many}. Nothing was changed.", faults)


def _record(user: User, connection: Connection, action: str, **detail: Any) -> None:
    audit.record(
        user=user,
        team=connection.team,
        target="connection",
        target_id=connection.name,
        action=action,
        **detail,
    )
