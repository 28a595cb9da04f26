"""A topic's newest records, read by a process of the data plane that is killed when it does not answer in time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from django.conf import settings
from pydantic import ValidationError

from controlplane.common.errors import InvalidInput, NotFound, Unavailable
from controlplane.common.fair_queue import NoPlace
from controlplane.common.processes import bare_environment, start_module
from controlplane.connections.browsing import require_topic
from controlplane.connections.client_properties import client_properties
from controlplane.connections.connection_tests import WAIT_S, places
from controlplane.connections.models import Connection
from controlplane.connections.named_connections import properties_of
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.messages.newest_records import MAX_ROWS, NewestAnswer, NewestOrder

MODULE = "ingestion.task.newest_records"
READ_MS = 5_000
START_S = 10.0

# Who may not see a topic's records is known to an app above this one: each raises ``NotAllowed``.
Guard = Callable[[User, str], None]
_guards: list[Guard] = []


def add_guard(guard: Guard) -> Guard:
    """From now on it is asked before a topic is read; a decorator."""
    _guards.append(guard)
    return guard


def newest_records(
    *, user: User, connection: Connection, topic: str, rows: int = 20, earliest: bool = False
) -> NewestAnswer:
    """The topic's newest records (or its first), newest first: ``rows`` of them at most, 50 at the very most.

    Of each: partition, offset, time, key, payload and headers; of a key, payload or header the first 4 KiB with the
    size of all. ``stopped_by`` says if there would be more. Nothing is joined or committed. Needs the role operator, as
    a sample does. Raises ``NotAllowed``, ``NotFound`` (no such topic), ``InvalidInput``, ``Unavailable``,
    ``SecretsLost``.
    """
    require(user, Action.OPERATE, connection.team)
    for guard in _guards:
        guard(user, topic)
    if not 1 <= rows <= MAX_ROWS:
        raise InvalidInput(f"Choose 1 to {MAX_ROWS} records.")
    order = NewestOrder(
        topic=topic,
        rows=rows,
        earliest=earliest,
        timeout_ms=READ_MS,
        consumer_properties=client_properties(properties_of(connection)),
        address_policy=settings.ADDRESS_POLICY,
    )
    try:
        with places.place(user.pk, WAIT_S):
            # Asked first: a process that is slow to start says nothing about the topic.
            require_topic(connection, topic)
            answer = _read_records(order)
    except NoPlace:
        raise Unavailable("Too many reads are running. Try again in a few seconds.") from None
    if answer.missing:
        raise NotFound(f"{answer.failure[:1].upper()}{answer.failure[1:]}, or this login has no permission to see it.")
    if answer.failure:
        raise Unavailable(f"The topic can't be read: {answer.failure}.")
    return answer


def _read_records(order: NewestOrder) -> NewestAnswer:
    seconds = order.timeout_ms / 1000 + START_S
    with start_module(MODULE, bare_environment()) as process:
        try:
            output, _ = process.communicate(order.model_dump_json(), timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"Reading the topic took longer than {seconds:.0f} s.") from None
        finally:
            process.kill()
    try:
        return NewestAnswer.model_validate_json(output)
    except ValidationError:
        raise Unavailable("The process that reads the topic failed. The log on its standard error says why.") from None
