"""Making datasources."""

from __future__ import annotations

import uuid

from controlplane.common.errors import Conflict
from controlplane.datasources.models import Datasource
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require, role_in, team_for_new
from controlplane.teams.services import lock_team


def required_action(datasource: Datasource | None, action: Action) -> Action:
    """What a spec for it takes that needs ``action`` itself: one that is new or deleted is made by an admin alone."""
    return Action.ADMINISTER if datasource is None or datasource.deleted_at is not None else action


def datasource_for_ingestion(*, user: User, name: str, team_name: str | None, action: Action) -> Datasource:
    """The datasource a spec names, made when it is new or deleted (that needs the role admin). Call in a transaction.

    Raises ``NotAllowed`` (role too low), ``NotFound`` (the team is deleted meanwhile), ``Conflict`` (another team's,
    not the team that was named, or one that is just being deleted).
    """
    # Locked: a transfer waits until what is submitted stands, or is seen. Publishes go on.
    locked = Datasource.objects.select_for_update(of=("self",), no_key=True)
    datasource = locked.select_related("team").filter(name=name).first()
    if datasource is None:
        team = lock_team(team_for_new(user, team_name))
        return Datasource.objects.create(name=name, team=team, created_by=user)
    if role_in(user, datasource.team, name) is None:
        team_for_new(user, team_name)  # who may not make one is told no more than of a name that is free
        raise Conflict(f"The datasource name {name!r} is taken; choose another.")
    if team_name and team_name != datasource.team.name:
        raise Conflict(f"The datasource {name!r} belongs to team {datasource.team.name!r}, not {team_name!r}.")
    require(user, required_action(datasource, action), datasource.team)
    if datasource.deleted_at is not None:
        if datasource.clearing:
            raise Conflict(f"The datasource {name!r} is still being deleted; try again in a minute.")
        datasource.deleted_at, datasource.deleted_by, datasource.identity = None, "", uuid.uuid4()
        datasource.save(update_fields=["deleted_at", "deleted_by", "identity"])
    return datasource
