"""Live parts that are made once for many pages: never old, and never anybody else's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.test import AsyncClient, Client
from redis import Redis

from controlplane.common.changes import CHANNEL, Change
from controlplane.datasources.models import Datasource, MaskedColumn
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.states import Detail
from controlplane.teams.models import Membership
from controlplane.teams.roles import Role
from tests.support.django_cast import ROLES, Cast, browsing_as

SOON_S = 20.0
PAGES = ("/", "/supervisors/", "/tasks/", "/datasources/")
LOGGED_IN = [role for role in ROLES if role != "anonymous"]


class Open:
    """A page of the owner's that is open: what happens is heard, and has a number."""

    def __init__(self, cast: Cast, events: AsyncIterator[bytes]) -> None:
        self._cast, self._events = cast, events

    async def heard(self) -> str:
        """Something has happened in both teams; the number of what the page was told of it."""
        client = Redis.from_url(settings.REDIS_URL)
        async with asyncio.timeout(SOON_S):
            told = asyncio.ensure_future(self._told())
            while not told.done():
                client.publish(CHANNEL, Change(team=self._cast.alpha.pk, urgent=True).encoded())
                await asyncio.wait([told], timeout=0.2)
            return await told

    async def _told(self) -> str:
        async for sent in self._events:
            if b"event: changed\n" in sent:
                return sent.decode().partition("id: ")[2].partition("\n")[0]
        raise AssertionError("the stream ended")


def while_open(cast: Cast, do: Callable[[Open], Any]) -> None:
    """Run it while the owner has a page open, in this process."""

    client = AsyncClient()
    client.cookies = browsing_as(cast, "owner").cookies

    async def run() -> None:
        answer: Any = await client.get("/-/live/", {"t": ["team"]})
        events = aiter(answer.streaming_content)
        await do(Open(cast, events))
        await events.aclose()

    async_to_sync(run)()


def part(client: Client, address: str, event_id: str = "") -> str:
    """A part as its page asks for it, having heard of this event."""
    headers = {"HX-Request": "true"} | ({"Last-Event-ID": event_id} if event_id else {})
    answer = client.get(address, headers=headers)
    assert answer.status_code == 200
    return re.sub(r">(\d+ (d|h|min|s) ?)+<", ">now<", answer.content.decode())  # how long ago it was


asked = sync_to_async(part)


@pytest.mark.parametrize("address", PAGES)
def test_each_sees_what_he_would_have_seen_alone(cast: Cast, address: str) -> None:
    Datasource.objects.create(name="secret-of-beta", team=cast.beta)
    MaskedColumn.objects.create(datasource=cast.datasource, column="carrier", role=Role.ADMIN)
    Supervisor.objects.filter(pk=cast.supervisor.pk).update(
        detailed_state=Detail.UNHEALTHY_SUPERVISOR,
        failed_runs=3,
        run_errors=[{"at": "2026-01-01T00:00:00Z", "class": "X", "message": "it quoted AA"}] * 3,
    )
    clients = {role: browsing_as(cast, role) for role in LOGGED_IN}
    alone = {role: part(client, address) for role, client in clients.items()}
    assert len(set(alone.values())) > 2, "the roles do not see different things here"

    async def run(opened: Open) -> None:
        number = await opened.heard()
        for order in (LOGGED_IN, LOGGED_IN[::-1]):
            for role in order:
                assert await asked(clients[role], address, number) == alone[role], role

    while_open(cast, run)


def test_it_is_made_once_for_what_was_heard_and_anew_for_what_came_then(cast: Cast) -> None:
    one, other = browsing_as(cast, "viewer"), browsing_as(cast, "viewer")
    another = browsing_as(cast, "operator")

    async def run(opened: Open) -> None:
        number = await opened.heard()
        assert "renamed" not in await asked(one, "/supervisors/", number)
        await Datasource.objects.filter(pk=cast.datasource.pk).aupdate(name="renamed")
        assert "renamed" not in await asked(other, "/supervisors/", number), "it was made twice"
        assert "renamed" in await asked(another, "/supervisors/", number), "another role's"
        assert "renamed" in await asked(other, "/supervisors/?search=f", number), "another address's"
        assert "renamed" in await asked(other, "/supervisors/"), "who has heard nothing sees what is"
        assert "renamed" in await asked(other, "/supervisors/", "another-process-1")
        assert "renamed" in await asked(one, "/supervisors/", await opened.heard()), "it is old"

    while_open(cast, run)


def test_who_leaves_a_team_or_looks_at_one_alone_sees_no_more_of_the_others(cast: Cast) -> None:
    Membership.objects.create(user=cast.users["viewer"], team=cast.beta, role=Role.VIEWER)
    Datasource.objects.create(name="secret-of-beta", team=cast.beta)
    viewer = browsing_as(cast, "viewer")

    async def run(opened: Open) -> None:
        number = await opened.heard()
        assert "secret-of-beta" in await asked(viewer, "/datasources/", number)
        await sync_to_async(viewer.post)("/-/team/", {"team": "alpha"})
        assert "secret-of-beta" not in await asked(viewer, "/datasources/", number)
        await sync_to_async(viewer.post)("/-/team/", {"team": ""})
        assert "secret-of-beta" in await asked(viewer, "/datasources/", number)
        await Membership.objects.filter(user=cast.users["viewer"], team=cast.beta).adelete()
        assert "secret-of-beta" not in await asked(viewer, "/datasources/", number)

    while_open(cast, run)
