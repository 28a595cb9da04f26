"""Records of files in quarantine, on a real PostgreSQL: with the publish of their task, once, seen, and taken out."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import IntegrityError
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.quarantine.models import QuarantineCause, QuarantinedRecord
from controlplane.sources.models import SourceEvent
from controlplane.tasks import batches
from controlplane.tasks.models import Task
from ingestion.specs.messages.batch_protocol import BatchPublishRequest, FileRecord
from tests.support.batch_tasks import document, file, outcome
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed

PLACE = "/data/<b>.json, byte 17"


def bad(position: int, error: str = "not JSON: <i>", place: str = PLACE, **more: Any) -> FileRecord:
    values = {"reason": "unparseable", "payload": b'{"a": <b>\x00', **more}
    return FileRecord.model_construct(place=place, position=position, error=error, **values)


@pytest.fixture
def task(cast: Cast) -> Task:
    make_receipt_partitions()
    QuarantinedRecord.objects.all().delete()
    return batches.submit_batch(user=cast.users["operator"], document=document(cast.datasource.name))


def asked(task: Task, *records: FileRecord, unparseable: int | None = None) -> BatchPublishRequest:
    lost = len(records) if unparseable is None else unparseable
    done = outcome(batches.start(task).epoch, file(), unparseable=lost)
    counters = done.counters.model_copy(update={"quarantined": len(records)})
    request = done.model_copy(update={"counters": counters, "quarantined": list(records)})
    return BatchPublishRequest.model_validate_json(request.model_dump_json())  # as it travels


def test_they_come_with_the_publish_and_once(cast: Cast, task: Task) -> None:
    request = asked(task, bad(17), bad(3, "no time", place="/data/b.parquet, row 3", reason="decoder_crash"))
    batches.publish(task, request)
    with pytest.raises(IntegrityError):  # its files are registered already; over HTTP its task has ended
        batches.publish(task, request)
    found = QuarantinedRecord.objects.order_by("id")
    assert [(r.place, r.offset, r.reason, r.source, r.task_id) for r in found] == [
        (PLACE, 17, "unparseable", None, task.pk),
        ("/data/b.parquet, row 3", 3, "decoder_crash", None, task.pk),
    ]
    assert bytes(found[0].payload or b"") == b'{"a": <b>\x00'
    assert sum(c.records for c in QuarantineCause.objects.filter(datasource=cast.datasource)) == 2
    fence = IndexerFence.objects.get(task_id=task.pk)
    assert (fence.unparseable, fence.quarantined) == (2, 2)
    [event] = SourceEvent.objects.filter(task_id=task.pk, kind="quarantined")
    assert event.detail == "2 records were quarantined. The last, /data/b.parquet, row 3: no time"
    task.refresh_from_db()
    assert "could not be read" not in task.message


def test_what_is_beyond_the_cap_is_counted_and_said(cast: Cast, task: Task, settings: LazySettings) -> None:
    settings.BATCH_QUARANTINED = 1
    assert batches.start(task).most_quarantined == 1
    batches.publish(task, asked(task, bad(17), unparseable=1_500))
    task.refresh_from_db()
    assert "1,500 records could not be read: 1 are in quarantine. The other 1,499 are not kept" in task.message
    assert "HEADGATE_BATCH_QUARANTINED" in task.message
    assert QuarantinedRecord.objects.count() == 1


def test_counters_that_say_something_else_are_refused(cast: Cast, task: Task) -> None:
    for request in (
        asked(task, bad(17), bad(18), unparseable=1),
        asked(task, bad(17)).model_copy(update={"quarantined": []}),
    ):
        with pytest.raises(InvalidInput, match="quarantined"):
            batches.publish(task, request)
    assert not QuarantinedRecord.objects.exists()


def test_a_task_that_fails_leaves_none(cast: Cast, task: Task) -> None:
    request = asked(task, bad(17))
    batches.start(task)  # another attempt
    with pytest.raises(Exception, match="is over"):
        batches.publish(task, request)
    assert not QuarantinedRecord.objects.exists()


def test_pages_and_rest_show_export_and_purge_them(cast: Cast, clients: dict[str, Client], task: Task) -> None:
    batches.publish(task, asked(task, bad(17), bad(40, place="/data/c.json, byte 40")))
    name = cast.datasource.name
    record = QuarantinedRecord.objects.get(offset=17)
    viewer, base = browsing_as(cast, "viewer"), f"/datasources/{name}/quarantine/"
    assert "2 in quarantine" in parsed(viewer.get(f"/tasks/{task.pk}/")).text
    report = clients["viewer"].get(f"/druid/indexer/v1/task/{task.pk}/reports").json()
    assert report["ingestionStatsAndErrors"]["payload"]["unparseableEvents"]["buildSegments"] == []
    listed = viewer.get(base)
    assert listed.status_code == 200
    page = parsed(listed)
    assert PLACE in page.text and "View outcome" not in page.text and b"<b>.json" not in listed.content
    alone = viewer.get(f"{base}{record.pk}/")
    assert PLACE in parsed(alone).text and not parsed(alone).all("p", data_cut="1")
    assert "Written to Kafka" not in parsed(alone).text
    operators = parsed(browsing_as(cast, "operator").get(f"{base}{record.pk}/"))
    assert operators.all("button", value="ingest") and not operators.all("button", value="produce")
    assert "as the spec reads it" in operators.text and "as the spec reads it" not in parsed(alone).text
    of_cause = parsed(viewer.get(f"{base}?cause={record.cause}"))
    assert "This cause" in of_cause.text and "Fix the spec for these records" in of_cause.text
    assert viewer.get("/quarantine/").status_code == 200

    rest = f"/api/v1/datasources/{name}/quarantine/"
    told = clients["viewer"].get(f"{rest}?task={task.pk}").json()["results"]
    assert [(r["place"], r["offset"], r["source"]) for r in told] == [
        ("/data/c.json, byte 40", 40, None),
        (PLACE, 17, None),
    ]
    assert clients["viewer"].get(f"{rest}{record.pk}/").json()["payload_text"] == '{"a": <b>\x00'
    assert clients["viewer"].get("/api/v1/quarantine/causes/").status_code == 200
    lines = clients["viewer"].get(f"{rest}export/?task={task.pk}").getvalue().decode().splitlines()
    first = json.loads(lines[0])
    assert (first["place"], first["position"], first["payload"]) == (PLACE, 17, '{"a": <b>\x00')
    assert "topic" not in first
    purged = clients["owner"].post(f"{rest}purge/", {"ids": [record.pk]}, content_type="application/json")
    assert purged.json() == {"records": 1} and QuarantinedRecord.objects.count() == 1


def test_they_are_not_produced_and_what_is_cut_is_not_ingested(
    cast: Cast, clients: dict[str, Client], task: Task
) -> None:
    batches.publish(task, asked(task, bad(17), bad(40, cut=True)))
    whole, cut = QuarantinedRecord.objects.order_by("pk")
    assert (whole.cut, cut.cut) == (False, True)
    path = f"/api/v1/datasources/{cast.datasource.name}/quarantine/replay/"
    for mode, chosen, said in (
        ("produce", {"ids": [whole.pk]}, "they can't be produced again"),
        ("produce", {"filter": {}}, "they can't be produced again"),
        ("ingest", {"ids": [whole.pk, cut.pk]}, "stored only in part"),
        ("ingest", {"ids": [cut.pk]}, "stored only in part"),
    ):
        answer = clients["operator"].post(path, {"mode": mode, **chosen}, content_type="application/json")
        assert answer.status_code == 409 and said in answer.json()["detail"], answer.content
    assert set(QuarantinedRecord.objects.values_list("state", flat=True)) == {"kept"}
    started = clients["operator"].post(path, {"mode": "ingest", "filter": {}}, content_type="application/json")
    assert started.json()["records"] == 1, started.content
    assert list(QuarantinedRecord.objects.order_by("pk").values_list("state", flat=True)) == ["replaying", "kept"]


def test_a_list_of_what_is_cut_alone_offers_no_replay_and_says_what_to_do(cast: Cast, task: Task) -> None:
    batches.publish(task, asked(task, bad(17, cut=True)))
    path = f"/datasources/{cast.datasource.name}/quarantine/"
    record = QuarantinedRecord.objects.get()
    for role, purges in (("operator", 0), ("owner", 1)):
        page = parsed(browsing_as(cast, role).get(path))
        assert not page.all("button", value="ingest") and not page.all("button", value="produce"), role
        assert len(page.all("button", value="purge")) == purges, role
        assert len(page.all("input", name="record")) == purges, role
        for shown in (page, parsed(browsing_as(cast, role).get(f"{path}{record.pk}/"))):
            told = shown.one("p", data_cut="1")
            assert "submit a batch task that reads it again" in told.text
            assert told.one("a").attributes["href"] == "/tasks/-/new/"
    assert "Fix the spec" not in parsed(browsing_as(cast, "owner").get(f"{path}?cause={record.cause}")).text


def test_of_files_and_topics_both_are_ingested_and_those_of_topics_produced(cast: Cast, task: Task) -> None:
    batches.publish(task, asked(task, bad(17), bad(40, cut=True)))
    of_topic = _of_topic(cast)
    of_file, cut = QuarantinedRecord.objects.filter(source=None).order_by("pk")
    client, path = browsing_as(cast, "operator"), f"/datasources/{cast.datasource.name}/quarantine/"
    page = parsed(client.get(path))
    assert page.all("button", value="ingest") and "1 of them is stored only in part" in page.one("p", data_cut="1").text
    boxes = {box.attributes["value"] for box in page.all("input", name="record")}
    assert boxes == {str(of_topic.pk), str(of_file.pk)}
    question = parsed(client.post(f"{path}confirm/", {"action": "produce", "scope": "matching"}))
    assert "Produce 1 record to the topic again?" in question.text
    assert "2 more come from files, have no topic, and stay in quarantine." in question.text
    ticked = {"scope": "ticked", "record": [of_topic.pk, of_file.pk, cut.pk]}
    for chosen in ({"scope": "matching"}, ticked):
        question = parsed(client.post(f"{path}confirm/", {"action": "ingest", **chosen}))
        assert "Ingest 2 records with the current spec?" in question.text
        assert "1 more is stored only in part, and stays in quarantine." in question.text
        assert question.one("p", data_readers="1").one("a").attributes["href"] == f"/tasks/{task.pk}/"
    sent = {"action": "ingest", "scope": "matching"}
    answer = client.post(f"{path}replay/", sent)
    assert answer["Location"] == f"/tasks/?kind=replay&datasource={cast.datasource.name}", answer.content
    states = dict(QuarantinedRecord.objects.values_list("pk", "state"))
    assert states == {of_file.pk: "replaying", of_topic.pk: "replaying", cut.pk: "kept"}


def _of_topic(cast: Cast) -> QuarantinedRecord:
    return QuarantinedRecord.objects.create(
        source=cast.source, datasource=cast.datasource, task_id=cast.task.pk, partition=0, offset=7, delivery_count=1,
        reason="unparseable", error="bad", payload=b"{", created_at=timezone.now(), publish_id=uuid.uuid4(),
    )  # fmt: skip
