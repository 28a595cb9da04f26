"""What happens to tasks becomes events: failures, restarts, quarantined records; few of them, on pages and by REST."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.publishing.models import IndexerFence
from controlplane.sources.models import SourceEvent
from controlplane.tasks import events
from controlplane.tasks.heartbeats import end, heartbeat
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Task
from ingestion.specs.messages.protocol import EndRequest, HeartbeatRequest, IndexerStatus
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed


def noted(kind: str) -> list[SourceEvent]:
    return list(SourceEvent.objects.filter(kind=kind).order_by("id"))


@pytest.mark.parametrize("supervised", [True, False])
def test_a_failed_task_is_an_event(cast: Cast, clients: dict[str, Client], supervised: bool) -> None:
    if not supervised:
        Task.objects.filter(pk=cast.task.pk).update(supervisor_id="")
        cast.task.refresh_from_db()
    assert end_task(cast.task, error="The disk is full. " + "x" * 1000)
    assert not end_task(cast.task, error="again")
    [found] = clients["viewer"].get("/api/v1/datasources/flights/events/?kind=task_failed").json()["results"]
    assert found["detail"].startswith("The disk is full.") and len(found["detail"]) == events.SHOWN + 1
    assert (found["task"], found["source"]["topic"]) == (cast.task.pk, "flights-topic")
    assert found["alarm"] is not supervised, "nobody starts it again"
    page = parsed(browsing_as(cast, "viewer").get("/datasources/flights/events/"))
    assert "A task failed" in page.one("tbody").all("tr")[0].text


def test_a_task_that_ends_well_is_none(cast: Cast) -> None:
    IndexerFence.objects.update(quarantined=0)
    end(cast.task, EndRequest(indexers=[], error=""))
    assert noted("task_failed") == noted("quarantined") == []


def test_restarts_are_events_with_their_reason_and_few(cast: Cast) -> None:
    def say(restarts: int, reason: str) -> None:
        status = IndexerStatus(number=0, epoch=1, state="reading", restarts=restarts, restarted_after=reason)
        heartbeat(cast.task, HeartbeatRequest(indexers=[status], slots=1))

    say(0, "")
    assert noted("restarted") == []
    for restarts in (1, 1, 2, 3, 4, 7):
        say(restarts, f"reason {restarts}")
    assert [event.detail for event in noted("restarted")] == [
        "Indexer 0 restarted, once so far: reason 1",
        "Indexer 0 restarted, 2 times so far: reason 2",
        "Indexer 0 restarted, 4 times so far: reason 4",
    ]
    assert {(event.task_id, event.alarm) for event in noted("restarted")} == {(cast.task.pk, False)}


def test_quarantined_records_are_events_and_few(cast: Cast) -> None:
    events.report_quarantined(cast.task)
    [first] = noted("quarantined")
    assert first.detail == "1 record was quarantined. The last, partition 0, offset 7: Malformed JSON at byte 12"
    IndexerFence.objects.filter(pk=cast.fences[0].pk).update(quarantined=4)
    events.report_quarantined(cast.task)
    assert noted("quarantined") == [first], "it is too soon"
    SourceEvent.objects.filter(pk=first.pk).update(created_at=timezone.now() - timedelta(minutes=6))
    events.report_quarantined(cast.task)
    events.report_quarantined(cast.task)
    assert [event.detail.split(".")[0] for event in noted("quarantined")[1:]] == ["3 records were quarantined"]


def test_what_is_not_noted_yet_is_so_at_the_end(cast: Cast) -> None:
    """Also by a process that read the task before another one noted some."""
    late = Task.objects.get(pk=cast.task.pk)
    events.report_quarantined(cast.task)
    IndexerFence.objects.filter(pk=cast.fences[0].pk).update(quarantined=3)
    end(late, EndRequest(indexers=[], error=""))
    assert [event.detail.split(".")[0] for event in noted("quarantined")] == [
        "1 record was quarantined",
        "2 records were quarantined",
    ]


def test_a_replay_quarantines_nothing_new(cast: Cast) -> None:
    Task.objects.filter(pk=cast.task.pk).update(kind=Task.Kind.REPLAY, replay_source=cast.source)
    end(Task.objects.get(pk=cast.task.pk), EndRequest(indexers=[], error=""))
    assert noted("quarantined") == []
