"""How far a batch task is, and which records it could not read: on its page, and in its reports."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.tasks import batches, heartbeats
from controlplane.tasks.models import Status, Task
from ingestion.specs.counters import Counters
from ingestion.specs.messages.batch_protocol import BatchPublishRequest
from ingestion.specs.messages.protocol import EndRequest, HeartbeatRequest, UnreadRecord
from tests.support.batch_tasks import document, file, outcome
from tests.support.django_cast import Cast, browsing_as

BAD = UnreadRecord(place="/data/a.json, byte 17", start='{"a": <b>\x00', error="not JSON: <i>", stored=False)
FAULTY = UnreadRecord(place="/data/b.parquet, row 3", start='{"n":"x"}', error="field 'n' is no long", stored=True)


@pytest.fixture
def task(cast: Cast) -> Task:
    make_receipt_partitions()
    return batches.submit_batch(user=cast.users["operator"], document=document(cast.datasource.name))


def shown(cast: Cast, task: Task) -> str:
    return browsing_as(cast, "viewer").get(f"/tasks/{task.pk}/").content.decode()


def druids(clients: dict[str, Client], task: Task) -> list[dict[str, Any]]:
    report = clients["viewer"].get(f"/druid/indexer/v1/task/{task.pk}/reports").json()
    found: list[dict[str, Any]] = report["ingestionStatsAndErrors"]["payload"]["unparseableEvents"]["buildSegments"]
    return found


def test_the_page_shows_how_far_it_is_while_it_runs(cast: Cast, task: Task) -> None:
    batches.start(task)
    assert 'role="progressbar"' not in shown(cast, task)
    beat = {"indexers": [], "slots": 1, "message": "Reading: 3 of 8 splits done."}
    heartbeats.heartbeat(task, HeartbeatRequest.model_validate({**beat, "parts": 8, "parts_done": 3}))
    page = shown(cast, task)
    assert 'role="progressbar"' in page and 'aria-valuenow="37"' in page and "3 of 8 parts" in page
    heartbeats.heartbeat(task, HeartbeatRequest.model_validate(beat))
    assert 'role="progressbar"' not in shown(cast, task)


@pytest.mark.parametrize(
    ("said", "then"),
    [
        ("Publishing 50 segments.", "It failed while it was publishing 50 segments."),
        ("Reading: 0 of 1 splits done.", "It failed while it was reading: 0 of 1 splits done."),
    ],
)
def test_one_that_failed_says_what_it_was_doing_then(
    cast: Cast, clients: dict[str, Client], task: Task, said: str, then: str
) -> None:
    """And shows no zeros as if they were counted, above records that it has read."""
    batches.start(task)
    heartbeats.heartbeat(task, HeartbeatRequest(indexers=[], slots=1, message=said))
    assert said in shown(cast, task) and 'data-counter="polled"' in shown(cast, task)
    heartbeats.end(task, EndRequest(error="There are 1 parse exceptions at least.", unread=[BAD]))
    page = shown(cast, task)
    assert then in page and said not in page and "/data/a.json, byte 17" in page
    assert "data-uncounted" in page and 'data-counter="polled"' not in page and "adds up" not in page
    assert clients["viewer"].get(f"/api/v1/tasks/{task.pk}/").json()["message"] == then
    heartbeats.end(task, EndRequest(error="later"))
    assert clients["viewer"].get(f"/api/v1/tasks/{task.pk}/").json()["message"] == then


GIVEN_UP = Counters(
    polled=9, rolled_up=5, thrown_away=1, filtered=1, unparseable=3, input_bytes=77, processed_with_error=2
)
READ = {"processed": 3, "processedWithError": 2, "processedBytes": 77, "thrownAway": 1, "unparseable": 3}


def test_a_failed_one_s_report_counts_what_it_had_read(clients: dict[str, Client], task: Task) -> None:
    batches.start(task)
    heartbeats.end(task, EndRequest(error="There are 5 parse exceptions.", unread=[BAD, FAULTY], given_up=GIVEN_UP))
    report = clients["viewer"].get(f"/druid/indexer/v1/task/{task.pk}/reports").json()
    assert report["ingestionStatsAndErrors"]["payload"]["rowStats"]["totals"]["buildSegments"] == READ
    assert [event["errorType"] for event in druids(clients, task)] == ["unparseable", "processedWithError"]


def test_a_failed_stream_task_s_report_counts_what_it_had_read_beside_what_it_published(
    cast: Cast, clients: dict[str, Client]
) -> None:
    unread = UnreadRecord(place="partition 0, offset 3", start="no", error="not JSON", stored=False)
    before = _row_stats(clients, cast.task)
    heartbeats.end(cast.task, EndRequest(error="There are 5 parse exceptions.", unread=[unread], given_up=GIVEN_UP))
    assert _row_stats(clients, cast.task) == {name: before[name] + READ[name] for name in READ}
    assert druids(clients, cast.task)[-1]["place"] == "partition 0, offset 3"


def _row_stats(clients: dict[str, Client], task: Task) -> dict[str, int]:
    report = clients["viewer"].get(f"/druid/indexer/v1/task/{task.pk}/reports").json()
    found: dict[str, int] = report["ingestionStatsAndErrors"]["payload"]["rowStats"]["totals"]["buildSegments"]
    return found


def test_it_lasts_from_where_its_rows_a_second_are_counted_from(clients: dict[str, Client], task: Task) -> None:
    epoch = batches.start(task).epoch
    heartbeats.heartbeat(task, HeartbeatRequest(indexers=[], slots=1, message="Reading: 0 of 1 splits done."))
    batches.publish(task, outcome(epoch, file()))
    report = clients["viewer"].get(f"/api/v1/tasks/{task.pk}/report/").json()
    began = clients["viewer"].get(f"/api/v1/tasks/{task.pk}/").json()["started_at"]
    assert report["totals"]["started_at"] == began


def test_what_could_not_be_read_is_shown_with_its_place_when_it_has_published(
    cast: Cast, clients: dict[str, Client], task: Task
) -> None:
    done = outcome(batches.start(task).epoch, file(), unparseable=1)
    request = BatchPublishRequest.model_validate(
        {**done.model_dump(), "unread": [BAD.model_dump(), FAULTY.model_dump()]}
    )
    batches.publish(task, request)
    page = shown(cast, task)
    assert "/data/a.json, byte 17" in page and "/data/b.parquet, row 3" in page
    assert "<b>" not in page.split('id="parse-errors"')[1] and "not JSON: &lt;i&gt;" in page
    told = [(e["place"], e["errorType"], e["details"]) for e in druids(clients, task)]
    assert told == [
        (BAD.place, "unparseable", [BAD.error]),
        (FAULTY.place, "processedWithError", [FAULTY.error]),
    ]
    report = clients["viewer"].get(f"/api/v1/tasks/{task.pk}/report/").json()
    assert report["unread"] == json.loads(json.dumps([BAD.model_dump(), FAULTY.model_dump()]))
    assert "\u2400" in report["unread"][0]["start"]


def test_what_could_not_be_read_is_shown_when_the_task_has_failed_of_it(clients: dict[str, Client], task: Task) -> None:
    batches.start(task)
    heartbeats.end(task, EndRequest(error="There are 1 parse exceptions at least.", unread=[BAD]))
    task.refresh_from_db()
    assert task.status == Status.FAILED
    assert [e["place"] for e in druids(clients, task)] == [BAD.place]
    heartbeats.end(task, EndRequest(error="later", unread=[FAULTY]))
    assert [e["place"] for e in druids(clients, task)] == [BAD.place]


def test_another_team_sees_nothing_of_it(cast: Cast, clients: dict[str, Client], task: Task) -> None:
    batches.start(task)
    heartbeats.end(task, EndRequest(error="no", unread=[BAD]))
    page = browsing_as(cast, "outsider").get(f"/tasks/{task.pk}/")
    reports = (f"/druid/indexer/v1/task/{task.pk}/reports", f"/api/v1/tasks/{task.pk}/report/")
    for answer in (page, *(clients["outsider"].get(path) for path in reports)):
        assert answer.status_code == 404 and BAD.place not in answer.content.decode()
