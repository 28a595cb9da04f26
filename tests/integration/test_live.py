"""Live pages on a real Valkey: what is told when, and who hears it."""

from __future__ import annotations

import asyncio
import copy
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
import redis
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.db.models import F
from django.test import AsyncClient, Client
from pytest_django import DjangoCaptureOnCommitCallbacks

from controlplane.common.changes import CHANNEL, Change, notify_pages
from controlplane.connections.kafka import TopicOffsets
from controlplane.lag.models import LagSample
from controlplane.supervisors import services
from controlplane.tasks.heartbeats import heartbeat
from controlplane.tasks.models import Goal
from controlplane.tasks.services import stop_task
from controlplane.tasks.watching import ObservedTopic, store_observations
from controlplane.teams.services import remove_member
from frontend.views.live import MAX_OF_USER
from ingestion.specs.messages.protocol import HeartbeatRequest, IndexerStatus
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.django_cast import Cast, browsing_as

SOON_S = 20.0
LIVE = "/-/live/"


class Channel:
    """What is told to pages."""

    def __init__(self) -> None:
        self._pubsub: Any = redis.Redis.from_url(settings.REDIS_URL).pubsub(ignore_subscribe_messages=False)
        self._pubsub.subscribe(CHANNEL)
        assert self._pubsub.get_message(timeout=SOON_S)["type"] == "subscribe"

    def next(self) -> Change:
        message = self._pubsub.get_message(timeout=SOON_S)
        assert message is not None, "nothing was told"
        change = Change.decoded(message["data"])
        assert change is not None
        return change

    def close(self) -> None:
        self._pubsub.close()


@pytest.fixture
def channel(db: None) -> Iterator[Channel]:
    made = Channel()
    yield made
    made.close()


def test_what_people_do_is_told_at_once(
    cast: Cast, channel: Channel, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        services.suspend(user=cast.users["operator"], supervisor=cast.supervisor)
    assert channel.next() == Change(team=cast.alpha.pk, supervisor="flights", urgent=True)


def test_a_task_that_is_told_to_stop_is_told_with_its_owners(
    cast: Cast, channel: Channel, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        stop_task(user=cast.users["operator"], task=cast.task)
    cast.task.refresh_from_db()
    assert cast.task.goal == Goal.STOP
    told = {channel.next(), channel.next()}
    whole = Change(cast.alpha.pk, datasource="flights", supervisor="flights", task=cast.task.pk, urgent=True)
    assert whole in told


def test_heartbeats_that_say_nothing_new_tell_nothing(
    cast: Cast, channel: Channel, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    task = copy.copy(cast.task)
    task.pk = f"task-{uuid.uuid4()}"  # a process remembers what it told of each
    task.save(force_insert=True)

    def beat(state: Any) -> None:
        request = HeartbeatRequest(slots=32, indexers=[IndexerStatus(number=0, epoch=1, state=state)])
        with django_capture_on_commit_callbacks(execute=True):
            heartbeat(task, request)

    for state in ("starting", "starting", "starting", "reading"):
        beat(state)
    with django_capture_on_commit_callbacks(execute=True):
        notify_pages(Change(team=1, urgent=True))
    told = [channel.next(), channel.next()]
    assert channel.next() == Change(team=1, urgent=True)
    assert [(c.task, c.urgent) for c in told] == [(task.pk, True)] * 2


def test_a_look_at_a_topic_is_told_while_it_changes_what_is_said_of_its_reader(
    cast: Cast, channel: Channel, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """With no more settled than before, what was stored a minute ago makes it one that keeps up, or is idle."""
    topic = TopicOffsets(cast.source.topic_id, {0: 0, 1: 0}, {0: 1000, 1: 1000}, {0: 1000, 1: 1000})
    task = cast.task
    spec = parse_task_spec({name: value for name, value in task.spec.items() if name != "suspended"})

    def look() -> str:
        """With a task of its own, since a process tells the same once a second; returns its id."""
        task.pk = f"task-{uuid.uuid4()}"
        task.save(force_insert=True)
        LagSample.objects.update(at=F("at") - timedelta(seconds=5))
        with django_capture_on_commit_callbacks(execute=True):
            store_observations([ObservedTopic(task, spec, topic)])
        return task.pk

    assert look() == channel.next().task, "it was not observed before"
    LagSample.objects.update(processed=0)
    assert look() == channel.next().task
    LagSample.objects.all().delete()
    look()
    with django_capture_on_commit_callbacks(execute=True):
        notify_pages(Change(team=1, urgent=True))
    assert channel.next() == Change(team=1, urgent=True), "nothing new is said"


async def message(events: AsyncIterator[bytes], kind: str) -> list[str]:
    """The topics of the next event of this kind."""
    async with asyncio.timeout(SOON_S):
        async for sent in events:
            if f"event: {kind}\n".encode() in sent:
                data = sent.decode().partition("data: ")[2].strip()
                return list(json.loads(data)) if data else []
    raise AssertionError(f"the stream ended without {kind}")


def stream_as(cast: Cast, role: str) -> AsyncClient:
    client = AsyncClient()
    client.cookies = browsing_as(cast, role).cookies
    return client


def publish(change: Change) -> None:
    redis.Redis.from_url(settings.REDIS_URL).publish(CHANNEL, change.encoded())


async def until_heard(events: AsyncIterator[bytes], change: Change) -> list[str]:
    """The subscription begins with the stream, a little later than its first words."""
    heard = asyncio.ensure_future(message(events, "changed"))
    while not heard.done():
        publish(change)
        await asyncio.wait([heard], timeout=0.2)
    return await heard


def test_a_page_hears_what_it_asked_for(cast: Cast) -> None:
    client = stream_as(cast, "viewer")

    async def run() -> None:
        answer: Any = await client.get(LIVE, {"t": ["supervisor:flights"]})
        assert (answer.status_code, answer["Content-Type"]) == (200, "text/event-stream")
        assert "no-transform" in answer["Cache-Control"]
        events = aiter(answer.streaming_content)
        await message(events, "open")
        publish(Change(team=cast.beta.pk, supervisor="flights"))
        assert await until_heard(events, Change(team=cast.alpha.pk, supervisor="flights")) == ["supervisor:flights"]
        await events.aclose()

    async_to_sync(run)()


def test_one_user_takes_no_more_than_a_share_of_the_streams(cast: Cast) -> None:
    viewer, owner = stream_as(cast, "viewer"), stream_as(cast, "owner")

    async def opened(client: AsyncClient) -> Any:
        answer: Any = await client.get(LIVE, {"t": ["supervisor:flights"]})
        if answer.status_code == 200:
            answer.events = aiter(answer.streaming_content)
            await message(answer.events, "open")
        return answer

    async def run() -> None:
        first = [await opened(viewer) for _ in range(MAX_OF_USER)]
        refused, other = await opened(viewer), await opened(owner)
        assert (refused.status_code, refused["Retry-After"], other.status_code) == (429, "30", 200)
        for answer in [*first, other]:
            await answer.events.aclose()

    async_to_sync(run)()


def test_a_member_who_is_removed_hears_no_more(
    cast: Cast, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    client = stream_as(cast, "viewer")

    async def opened() -> AsyncIterator[bytes]:
        answer: Any = await client.get(LIVE, {"t": ["supervisor:flights"]})
        return aiter(answer.streaming_content)

    async def run() -> None:
        events = await opened()
        await until_heard(events, Change(team=cast.alpha.pk, supervisor="flights"))
        await sync_to_async(removed)()
        assert await message(events, "gone") == []
        assert (await client.get(LIVE, {"t": ["supervisor:flights"]})).status_code == 404

    def removed() -> None:
        with django_capture_on_commit_callbacks(execute=True):
            remove_member(user=cast.users["owner"], team=cast.alpha, username="viewer")

    async_to_sync(run)()


@pytest.mark.parametrize(
    "topics", [[], ["x"], ["supervisor:"], ["secret:a"], ["team"] * 2 + [f"task:{n}" for n in range(20)]]
)
def test_topics_that_there_are_not_are_refused(cast: Cast, topics: list[str]) -> None:
    assert browsing_as(cast, "viewer").get(LIVE, {"t": topics}).status_code == 400


def test_a_part_that_is_as_it_was_is_not_sent_again(cast: Cast) -> None:
    client: Client = browsing_as(cast, "viewer")
    address = "/supervisors/flights/live/"
    first = client.get(address, headers={"HX-Request": "true"})
    again = client.get(address, headers={"HX-Request": "true", "If-None-Match": first["ETag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    services.suspend(user=cast.users["owner"], supervisor=cast.supervisor)
    changed = client.get(address, headers={"HX-Request": "true", "If-None-Match": first["ETag"]})
    assert changed.status_code == 200
