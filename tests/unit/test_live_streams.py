"""What one page is sent, and when: streams and their hub, without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from controlplane.common.changes import Change
from frontend.live.hub import Hub
from frontend.live.stream import Stream, pace_of
from frontend.live.topics import Wanted, topics_of

ORDERS = Wanted(user=1, topics=("supervisor:orders", "team"), teams=frozenset({7}))
CHANGE = Change(team=7, datasource="sales", supervisor="orders", task="t")
FOR_EVER_S = 3600.0
SOON_S = 10.0


async def allowed() -> Wanted | None:
    return ORDERS


def events(stream: Stream, pace_s: float = 0.0) -> AsyncIterator[bytes]:
    return stream.events(lambda: "p-1", lambda: pace_s)


async def topics(sent: AsyncIterator[bytes]) -> list[str]:
    """Of the next event that says something."""
    async with asyncio.timeout(SOON_S):
        message = await anext(sent)
    fields = dict(line.split(": ", 1) for line in message.decode().strip().splitlines())
    assert fields["event"] == "changed"
    return list(json.loads(fields["data"]))


@pytest.mark.parametrize(
    ("change", "heard"),
    [
        (CHANGE, ["supervisor:orders", "team"]),
        (Change(team=7, datasource="other"), ["team"]),
        (Change(team=8, supervisor="orders"), []),
        (Change(user=1), []),
    ],
)
def test_a_page_hears_of_its_topics_in_its_teams(change: Change, heard: list[str]) -> None:
    assert ORDERS.heard(change, topics_of(change)) == heard


def test_the_sites_administrator_hears_of_all_teams() -> None:
    everywhere = Wanted(user=1, topics=("task:t", "datasource:sales"), teams=None)
    assert set(everywhere.heard(CHANGE, topics_of(CHANGE))) == {"datasource:sales", "task:t"}


def test_many_changes_are_one_event() -> None:
    async def run() -> None:
        stream = Stream(ORDERS, allowed)
        sent = events(stream)
        assert (await anext(sent)).startswith(b"retry:")
        for _ in range(500):
            stream.hear(CHANGE, topics_of(CHANGE))
        assert await topics(sent) == ["supervisor:orders", "team"]
        stream.hear(Change(team=7), topics_of(Change(team=7)))
        assert await topics(sent) == ["team"]

    asyncio.run(run())


def test_what_goes_on_and_on_is_held_back_and_what_somebody_did_is_not() -> None:
    async def run() -> None:
        stream = Stream(ORDERS, allowed)
        sent = events(stream, FOR_EVER_S)
        await anext(sent)
        stream.hear(Change(team=7, urgent=True), topics_of(Change(team=7, urgent=True)))
        assert await topics(sent) == ["team"]
        stream.hear(CHANGE, topics_of(CHANGE))
        waits = asyncio.ensure_future(anext(sent))
        await asyncio.sleep(0)
        assert not waits.done()
        stream.hear(Change(team=7, urgent=True), topics_of(Change(team=7, urgent=True)))
        async with asyncio.timeout(SOON_S):
            assert json.loads((await waits).decode().partition("data: ")[2]) == ["supervisor:orders", "team"]

    asyncio.run(run())


def test_the_end_of_the_process_ends_all_streams_at_once() -> None:
    async def run() -> None:
        hub, stream = Hub(), Stream(ORDERS, allowed)
        hub.add(stream, "")
        sent = events(stream, FOR_EVER_S)
        await anext(sent)
        waits = asyncio.ensure_future(anext(sent))
        await asyncio.sleep(0)
        hub.close()
        with pytest.raises(StopAsyncIteration):
            async with asyncio.timeout(SOON_S):
                await waits
        hub.remove(stream)

    asyncio.run(run())


def test_who_may_not_hear_it_any_more_is_told_so_and_no_more() -> None:
    async def nothing() -> Wanted | None:
        return None

    async def run() -> None:
        stream = Stream(ORDERS, nothing)
        sent = events(stream, FOR_EVER_S)
        await anext(sent)
        stream.hear(CHANGE, topics_of(CHANGE))
        stream.hear(Change(user=ORDERS.user), topics_of(Change(user=ORDERS.user)))
        async with asyncio.timeout(SOON_S):
            assert [message async for message in sent] == [b"event: gone\ndata: \n\n"]

    asyncio.run(run())


def test_a_page_that_comes_back_hears_what_it_missed() -> None:
    async def run() -> None:
        hub, first = Hub(), Stream(ORDERS, allowed)
        hub.add(first, "")
        hub.hear(Change(team=7, supervisor="orders"))
        seen = hub.last_id
        hub.hear(Change(team=7))
        again, elsewhere = Stream(ORDERS, allowed), Stream(ORDERS, allowed)
        hub.add(again, seen)
        hub.add(elsewhere, "another-process-12")
        for stream, missed in ((again, ["team"]), (elsewhere, ["*"])):
            sent = events(stream)
            await anext(sent)
            assert await topics(sent) == missed
        for stream in (first, again, elsewhere):
            hub.remove(stream)

    asyncio.run(run())


def test_a_change_reaches_the_streams_that_it_concerns_and_no_others() -> None:
    async def run() -> None:
        hub, orders, sales = Hub(), Stream(ORDERS, allowed), Stream(Wanted(1, ("datasource:sales",), None), allowed)
        for stream in (orders, sales):
            hub.add(stream, "")
            await anext(events(stream))
        hub.hear(Change(team=7, supervisor="orders"))
        hub.remove(orders)
        hub.hear(Change(team=7, datasource="sales"))
        assert [list(s._pending) for s in (orders, sales)] == [["supervisor:orders", "team"], ["datasource:sales"]]
        hub.hear(Change(user=1))
        assert sales._doubted and not hub._by_topic.get("team")
        hub.remove(sales)

    asyncio.run(run())


def test_the_more_pages_are_open_the_less_often_each_asks() -> None:
    assert pace_of(1) == 1.0
    assert pace_of(60) == 20.0  # three pages a second in all
    assert pace_of(100_000) == 60.0


@pytest.mark.parametrize("text", [b"", b"x", b"[]", b'{"unknown": 1}', b"7"])
def test_what_is_no_change_is_ignored(text: bytes) -> None:
    assert Change.decoded(text) is None
    assert Change.decoded(CHANGE.encoded()) == CHANGE
