"""Giving a datasource, with all that is its own, or a connection to another team.

What runs goes on: tasks, progress, segments and quarantine are the datasource's, and nothing of them is written. Only
whose it is changes, in one transaction: who sees it, whose connections its specs name, whose roles and limits count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, QuerySet

from controlplane.common.changes import Change, notify_pages
from controlplane.common.errors import Conflict
from controlplane.connections.models import Connection
from controlplane.connections.named_connections import names_in, unnamed_in
from controlplane.connections.selectors import own_properties_allowed
from controlplane.connections.services import MAX_CONNECTIONS
from controlplane.datasources.groups import claim_group
from controlplane.datasources.models import Datasource
from controlplane.supervisors.connections import ConnectionUse, uses_of
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Task
from controlplane.teams import audit
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, require
from controlplane.teams.selectors import get_team
from controlplane.teams.services import lock_team
from ingestion.specs.inputs.io_config import IOConfig

_NAMED = 10

# Whoever keeps something else of a datasource for its team is told, in the transaction.
TransferListener = Callable[[Datasource], None]
_listeners: list[TransferListener] = []


def on_transfer(follower: TransferListener) -> TransferListener:
    """From now on it is called when a datasource has another team; a decorator."""
    _listeners.append(follower)
    return follower


@dataclass(frozen=True)
class TransferPreview:
    """What a transfer would mean."""

    supervisors: list[str]
    tasks: int  # that have not ended
    connections: list[Connection]  # of its team, that its specs name
    members_losing: int  # members of its team


def preview_transfer(user: User, datasource: Datasource) -> TransferPreview:
    """Raises ``NotAllowed``: it is for the team's admins."""
    require(user, Action.ADMINISTER, datasource.team)
    return TransferPreview(
        supervisors=[s.pk for s in _supervisors(datasource)],
        tasks=Task.objects.active().filter(datasource=datasource).count(),
        connections=_connections(datasource),
        members_losing=datasource.team.memberships.count(),
    )


@transaction.atomic
def transfer_datasource(*, user: User, datasource: Datasource, team_name: str, along: bool = False) -> list[str]:
    """Give it to a team; needs the role admin in both. Returns the names of the connections that moved along.

    Raises ``NotAllowed``, ``NotFound`` (a team that the user does not see), ``Conflict`` with every reason.
    """
    require(user, Action.ADMINISTER, datasource.team)
    team = get_team(user, team_name)
    require(user, Action.ADMINISTER, team)
    lock_team(team)  # it must not be deleted meanwhile
    # Locked: a spec that is submitted meanwhile, or a round, sees the team before or the one after, and stays with it.
    locked = (
        Datasource.objects.select_for_update(of=("self",), no_key=True).select_related("team").get(pk=datasource.pk)
    )
    supervisors = list(_supervisors(locked).select_for_update(of=("self",)))
    former_team = locked.team
    require(user, Action.ADMINISTER, former_team)
    if former_team.pk == team.pk:
        raise Conflict(f"The datasource {locked.name!r} already belongs to team {team.name}.")
    connections = _connections(locked)
    problems = [*_unnamed_problems(locked, team), *_connection_problems(locked, team, connections, along)]
    if problems:
        raise Conflict(" ".join(problems))
    moving = [c for c in connections if not _same_named(team, c)]
    Connection.objects.filter(pk__in=[c.pk for c in moving]).update(team=team)
    Datasource.objects.filter(pk=locked.pk).update(team=team)
    _claim_groups(supervisors, team, former_team)
    for follower in _listeners:
        follower(locked)
    names = [c.name for c in moving]
    for owner in (former_team, team):
        detail = {"from": former_team.name, "to": team.name, "connections": names}
        audit.record(user=user, team=owner, target="datasource", target_id=locked.name, action="transfer", **detail)
        notify_pages(Change(team=owner.pk, datasource=locked.name, urgent=True))
    for supervisor in supervisors:
        notify_pages(Change(team=team.pk, datasource=locked.name, supervisor=supervisor.pk, urgent=True))
    return names


@transaction.atomic
def transfer_connection(*, user: User, connection: Connection, team_name: str) -> Connection:
    """Give one that nobody uses to a team, its secrets with it; needs the role admin in both.

    Raises ``NotAllowed``, ``NotFound``, ``Conflict`` (it is used, or the name is taken).
    """
    require(user, Action.ADMINISTER, connection.team)
    team = get_team(user, team_name)
    require(user, Action.ADMINISTER, team)
    lock_team(team)  # two of one name must not come to it at once, and none when it is being deleted
    # Who submits a spec that names it locks the row too: one of both sees the other.
    locked = Connection.objects.select_for_update(of=("self",)).select_related("team").get(pk=connection.pk)
    former_team = locked.team
    if former_team.pk == team.pk:
        raise Conflict(f"The connection {locked.name!r} already belongs to team {team.name}.")
    uses = uses_of(locked)
    if uses:
        raise Conflict(
            f"The connection {locked.name!r} is used by {_listed(uses)}. Transfer their datasource, with its "
            "connections."
        )
    if _same_named(team, locked) is not None:
        raise Conflict(f"Team {team.name} already has a connection {locked.name!r}.")
    if Connection.objects.filter(team=team).count() >= MAX_CONNECTIONS:
        raise Conflict(f"Team {team.name} already has {MAX_CONNECTIONS} connections. Delete some.")
    locked.team = team
    locked.save(update_fields=["team"])
    for owner in (former_team, team):
        detail = {"from": former_team.name, "to": team.name}
        audit.record(user=user, team=owner, target="connection", target_id=locked.name, action="transfer", **detail)
    return locked


def _supervisors(datasource: Datasource) -> QuerySet[Supervisor]:
    return Supervisor.objects.filter(datasource=datasource, terminated_at=None).order_by("pk")


def _io_configs(datasource: Datasource) -> list[IOConfig]:
    """Of all specs by which it is, or may be, filled: versions that hold, and tasks that have not ended."""
    versions = SpecVersion.objects.filter(
        supervisor__datasource=datasource, supervisor__terminated_at=None, version=F("supervisor__version")
    )
    tasks = Task.objects.active().filter(datasource=datasource).exclude(kind__in=[*Task.BATCH, *Task.OF_SEGMENTS])
    return [*(version.io_config for version in versions), *(task.io_config for task in tasks)]


def _connections(datasource: Datasource) -> list[Connection]:
    names = {(name, kind) for io_config in _io_configs(datasource) for _, name, kind in names_in(io_config)}
    team_connections = Connection.objects.filter(
        team=datasource.team_id, name__in={name for name, _ in names}
    ).order_by("name")
    return [c for c in team_connections.select_related("team") if (c.name, c.typed_kind) in names]


def _unnamed_problems(datasource: Datasource, team: Team) -> list[str]:
    """What a team that takes connections by their names only would not let anybody submit."""
    if own_properties_allowed(team):
        return []
    places = {".".join(map(str, place)) for io_config in _io_configs(datasource) for place in unnamed_in(io_config)}
    return [
        f"Team {team.name} allows saved connections only. A spec of the datasource has its own servers "
        f"in {place}. Name a connection there first."
        for place in sorted(places)
    ]


def _connection_problems(
    datasource: Datasource, team: Team, connections: Iterable[Connection], along: bool
) -> list[str]:
    problems = []
    for connection in connections:
        namesake = _same_named(team, connection)
        if namesake is not None and (namesake.kind, namesake.properties) != (connection.kind, connection.properties):
            problems.append(
                f"Team {team.name} has a connection {connection.name!r} that leads elsewhere, and the "
                "datasource's specs would use it. Rename one of them first."
            )
        elif namesake is None and not along:
            problems.append(
                f"Its specs name the connection {connection.name!r}, which team {team.name} does not have. Move it "
                "along, or create one with that name there."
            )
        elif namesake is None:
            others = [use for use in uses_of(connection) if use.datasource != datasource.name]
            if others:
                problems.append(
                    f"The connection {connection.name!r} can't move along: it is used by {_listed(others)}. Create one "
                    f"with that name in team {team.name}."
                )
    return problems


def _same_named(team: Team, connection: Connection) -> Connection | None:
    return Connection.objects.filter(team=team, name=connection.name).first()


def _listed(uses: list[ConnectionUse]) -> str:
    text = ", ".join(f"{use.kind} {use.id}" for use in uses[:_NAMED])
    return text + (f" and {len(uses) - _NAMED} more" if len(uses) > _NAMED else "")


def _claim_groups(supervisors: Iterable[Supervisor], team: Team, former_team: Team) -> None:
    """A group of Kafka's is one team's: none may be left behind with another datasource."""
    for supervisor in supervisors:
        try:
            claim_group(team, supervisor.io_config.group, supervisor.pk)
        except Conflict:
            group = supervisor.io_config.group or supervisor.pk
            raise Conflict(
                f"The group {group!r} of supervisor {supervisor.pk} also belongs to another datasource "
                f"of team {former_team.name}. Give one of them another groupId first."
            ) from None
