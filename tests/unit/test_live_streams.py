"""What one page is sent, and when: streams and their hub, without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from controlplane.common.changes import Change
from frontend.live.audience import MIN_PACE_S, pace_of, urgent_pace_of
from frontend.live.hub import Hub
from frontend.live.stream import Stream
from frontend.live.topics import Subscription, topics_of

ORDERS = Subscription(user=1, topics=("supervisor:orders", "team"), teams=frozenset({7}))
CHANGE = Change(team=7, datasource="sales", supervisor="orders", task="t")
SOON_S = 10.0


async def allowed() -> Subscription | None:
    return ORDERS


async def opened(
    hub: Hub, wanted: Subscription = ORDERS, last_event_id: str = ""
) -> tuple[Stream, AsyncIterator[bytes]]:
    """A page that is open, and what it is sent after its first words."""
    stream = Stream(wanted, allowed)
    hub.add(stream, last_event_id)
    sent = stream.events(hub.last_id)
    assert (await anext(sent)).startswith(b"retry:")
    return stream, sent


async def hears_nothing(sent: AsyncIterator[bytes], for_s: float) -> asyncio.Future[bytes]:
    """What it waits for, after it has waited in vain for so long."""
    waits = asyncio.ensure_future(anext(sent))
    done, _ = await asyncio.wait([waits], timeout=for_s)
    assert not done
    return waits


async def topics(sent: AsyncIterator[bytes]) -> list[str]:
    """Of the next event that says something."""
    async with asyncio.timeout(SOON_S):
        message = await anext(sent)
    fields = dict(line.split(": ", 1) for line in message.decode().strip().splitlines())
    assert fields["event"] == "changed"
    return list(json.loads(fields["data"]))


def test_a_hub_counts_the_pages_of_each_user() -> None:
    async def counted() -> list[int]:
        hub = Hub()
        await opened(hub)
        await opened(hub)
        other, _ = await opened(hub, replace(ORDERS, user=2))
        before = [hub.streams_of(1), hub.streams_of(2)]
        hub.remove(other)
        return [*before, hub.streams_of(2)]

    assert asyncio.run(counted()) == [2, 1, 0]


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
    assert ORDERS.matching_topics(change, topics_of(change)) == heard


def test_the_sites_administrator_hears_of_all_teams() -> None:
    everywhere = Subscription(user=1, topics=("task:t", "datasource:sales"), teams=None)
    assert set(everywhere.matching_topics(CHANGE, topics_of(CHANGE))) == {"datasource:sales", "task:t"}


def test_many_changes_are_one_event() -> None:
    async def run() -> None:
        hub = Hub()
        stream, sent = await opened(hub)
        for _ in range(500):
            hub.handle_change(CHANGE)
        assert await topics(sent) == ["supervisor:orders", "team"]
        hub.handle_change(Change(team=7))
        assert await topics(sent) == ["team"]
        hub.remove(stream)

    asyncio.run(run())


def test_of_few_pages_what_somebody_did_is_not_held_back() -> None:
    async def run() -> None:
        hub = Hub()
        stream, sent = await opened(hub)
        for _ in range(3):  # each at once, within a pace of one second
            hub.handle_change(Change(team=7, urgent=True))
            async with asyncio.timeout(MIN_PACE_S / 4):
                assert await topics(sent) == ["team"]
        hub.handle_change(CHANGE)
        waits = await hears_nothing(sent, MIN_PACE_S / 4)
        hub.handle_change(Change(team=7, urgent=True))
        async with asyncio.timeout(MIN_PACE_S / 4):
            assert json.loads((await waits).decode().partition("data: ")[2]) == ["supervisor:orders", "team"]
        hub.remove(stream)

    asyncio.run(run())


def test_of_many_pages_the_first_thing_somebody_did_is_told_and_the_next_held_back() -> None:
    async def run() -> None:
        hub = Hub()
        others = [(await opened(hub, Subscription(1, (f"task:{n}",), None)))[0] for n in range(200)]
        stream, sent = await opened(hub)
        hub.handle_change(Change(team=7, urgent=True))
        async with asyncio.timeout(MIN_PACE_S):
            assert await topics(sent) == ["team"]
        hub.handle_change(Change(team=7, urgent=True))
        (await hears_nothing(sent, MIN_PACE_S)).cancel()
        for each in (stream, *others):
            hub.remove(each)

    asyncio.run(run())


def test_pages_that_hear_the_same_are_told_with_one_number() -> None:
    async def run() -> None:
        hub = Hub()
        (one, first), (other, second) = await opened(hub), await opened(hub, replace(ORDERS, user=2))
        elsewhere, third = await opened(hub, replace(ORDERS, user=3, teams=frozenset({7, 8})))
        hub.handle_change(CHANGE)
        told = hub.last_id
        hub.handle_change(Change(team=8))
        async with asyncio.timeout(SOON_S):
            messages = [(await anext(sent)).decode() for sent in (first, second, third)]
        ids = [m.splitlines()[0].removeprefix("id: ") for m in messages]
        assert ids[0] == ids[1]
        assert (hub.number_of(ids[0]) or 0) >= 2, "of the newest change, or of a subscription that began since"
        assert hub.number_of(told) == 1 and hub.number_of("another-process-1") is None
        for stream in (one, other, elsewhere):
            hub.remove(stream)

    asyncio.run(run())


def test_the_end_of_the_process_ends_all_streams_at_once() -> None:
    async def run() -> None:
        hub = Hub()
        stream, sent = await opened(hub)
        waits = asyncio.ensure_future(anext(sent))
        await asyncio.sleep(0)
        hub.close()
        with pytest.raises(StopAsyncIteration):
            async with asyncio.timeout(SOON_S):
                await waits
        hub.remove(stream)

    asyncio.run(run())


def test_who_may_not_hear_it_any_more_is_told_so_and_no_more() -> None:
    async def nothing() -> Subscription | None:
        return None

    async def run() -> None:
        stream = Stream(ORDERS, nothing)
        sent = stream.events("p-1")
        await anext(sent)
        stream.send(["team"], "p-2")
        stream.require_check(ORDERS.user)
        async with asyncio.timeout(SOON_S):
            assert [message async for message in sent] == [b"event: gone\ndata: \n\n"]

    asyncio.run(run())


def test_a_page_that_comes_back_hears_what_it_missed() -> None:
    async def run() -> None:
        hub = Hub()
        first, _ = await opened(hub)
        hub.handle_change(Change(team=7, supervisor="orders"))
        seen = hub.last_id
        hub.handle_change(Change(team=7))
        again, hears = await opened(hub, last_event_id=seen)
        elsewhere, hears_all = await opened(hub, last_event_id="another-process-12")
        assert (await topics(hears), await topics(hears_all)) == (["team"], ["*"])
        for stream in (first, again, elsewhere):
            hub.remove(stream)

    asyncio.run(run())


def test_a_change_reaches_the_streams_that_it_concerns_and_no_others() -> None:
    async def run() -> None:
        hub = Hub()
        orders, of_orders = await opened(hub)
        sales, of_sales = await opened(hub, Subscription(1, ("datasource:sales",), None))
        hub.handle_change(Change(team=7, supervisor="orders"))
        assert await topics(of_orders) == ["supervisor:orders", "team"]
        hub.remove(orders)
        hub.handle_change(Change(team=7, datasource="sales", supervisor="orders"))
        assert await topics(of_sales) == ["datasource:sales"]
        hub.remove(sales)

    asyncio.run(run())


def test_who_has_come_into_another_team_hears_of_it() -> None:
    async def run() -> None:
        hub, now = Hub(), ORDERS

        async def may() -> Subscription | None:
            return now

        stream = Stream(ORDERS, may)
        hub.add(stream, "")
        sent = stream.events(hub.last_id)
        await anext(sent)
        now = replace(ORDERS, teams=frozenset({7, 8}))
        hub.handle_change(Change(user=ORDERS.user))
        assert await topics(sent) == ["*"]
        hub.handle_change(Change(team=8))
        assert await topics(sent) == ["team"]
        hub.remove(stream)

    asyncio.run(run())


def test_the_more_pages_are_open_the_less_often_each_asks() -> None:
    assert pace_of(1) == 1.0
    assert pace_of(60) == 20.0  # three pages a second in all
    assert pace_of(100_000) == 60.0
    assert [urgent_pace_of(pace_of(streams)) for streams in (1, 3, 12)] == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("text", [b"", b"x", b"[]", b'{"unknown": 1}', b"7"])
def test_what_is_no_change_is_ignored(text: bytes) -> None:
    assert Change.decoded(text) is None
    assert Change.decoded(CHANGE.encoded()) == CHANGE
