"""Connections tried out for users: who may, and no more at once than the web process bears."""

from __future__ import annotations

from typing import Any

from controlplane.common.errors import InvalidInput, Unavailable
from controlplane.common.fair_queue import FairPlaces, NoPlace
from controlplane.connections.client_properties import kafka_values
from controlplane.connections.models import Connection
from controlplane.connections.probe import NO_RIGHTS, NeededRights, try_kafka
from controlplane.connections.probe_report import ConnectionReport
from controlplane.connections.registry_probe import try_registry
from controlplane.connections.secrets import unseal
from controlplane.connections.services import checked_draft
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, require
from ingestion.specs.inputs.connection import Document, Kind, with_secrets

AT_ONCE = 6  # of one web process: each waits for others' machines, ten seconds at most
AT_ONCE_PER_USER = 2
WAIT_S = 5.0
LONGEST_NAME = 249  # of a topic, or of a group that is asked for
places = FairPlaces(places=AT_ONCE, per_user=AT_ONCE_PER_USER, waiting=4)


def try_connection(*, user: User, connection: Connection, wanted: NeededRights = NO_RIGHTS) -> ConnectionReport:
    """Test a stored one, and what its login is to be allowed. Needs the role operator.

    Raises ``NotAllowed``, ``SecretsLost``, ``InvalidInput``, ``Unavailable`` (too many at once).
    """
    require(user, Action.OPERATE, connection.team)
    kind = connection.typed_kind
    return _run_test(user, kind, with_secrets(kind, connection.properties, unseal(connection.secrets)), wanted)


def try_draft(
    *,
    user: User,
    team: Team,
    kind: Kind,
    properties: Any,
    like: Connection | None = None,
    wanted: NeededRights = NO_RIGHTS,
) -> ConnectionReport:
    """Test one that is not stored yet. ``like``: the stored one whose secrets may be left out. Needs the role admin.

    Raises ``InvalidInput`` with every fault, ``NotAllowed``, ``Unavailable``.
    """
    require(user, Action.ADMINISTER, team)
    draft = checked_draft(kind, properties, like)
    return _run_test(user, kind, with_secrets(kind, draft.properties, draft.secrets), wanted)


def _run_test(user: User, kind: Kind, properties: Document, needed: NeededRights) -> ConnectionReport:
    for what, name in (("topic", needed.topic), ("group", needed.group)):
        if len(name) > LONGEST_NAME:
            raise InvalidInput(f"A {what}'s name has at most {LONGEST_NAME} characters here.")
    try:
        with places.place(user.pk, WAIT_S):
            return try_kafka(kafka_values(properties), needed) if kind is Kind.KAFKA else try_registry(properties)
    except NoPlace:
        raise Unavailable(
            f"{AT_ONCE} tests of connections are running, or {AT_ONCE_PER_USER} of yours. Try again in a few seconds."
        ) from None
