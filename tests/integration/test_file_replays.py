"""Quarantined records of files are ingested: held, published once by their state, given back; with which spec."""

from __future__ import annotations

import copy
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.quarantine import services as quarantine
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.supervisors import replays
from controlplane.tasks import file_replays, heartbeats, lifecycle
from controlplane.tasks.models import Status, Task
from controlplane.teams.models import AuditEntry
from ingestion.specs.causes import cause_of
from ingestion.specs.messages.protocol import HeartbeatRequest
from tests.support.django_cast import Cast, browsing_as
from tests.support.file_replays import STILL, alone, became, ingest, left_by, numbers, published_by, states

__all__ = ["alone"]  # a fixture


def test_a_publish_moves_each_record_once_and_out_of_the_batch_tasks_books(alone: Cast) -> None:
    before = datasource_totals(alone.datasource)
    batch = left_by(alone, b"1", b"2", b"3", b"4")
    [task] = ingest(alone)
    assert (task.kind, task.replays_files, task.spec["type"]) == ("replay", True, "index_parallel")
    one, two, three, four = numbers()
    told = file_replays.start(task)
    assert (told.spec.ioConfig.appendToExisting, told.inputs) == (True, [])
    request = became(told.epoch, [one, two], [three], [four])
    answer = file_replays.publish(task, request)
    assert states() == ["stored", "stored", "thrown_away", "kept"]
    assert file_replays.publish(task, request) == answer, "a lost answer: it is told again"
    assert (published_by(task), len(answer.segment_ids)) == (1, 1)
    again = QuarantinedRecord.objects.get(pk=four)
    assert (again.reason, again.error, again.task_id, again.replays) == ("decoder_crash", STILL, task.pk, 1)
    assert again.cause == cause_of("decoder_crash", STILL).fingerprint
    of_batch = IndexerFence.objects.get(task_id=batch.pk)
    assert (of_batch.unparseable, of_batch.replayed, of_batch.quarantined) == (4, 4, 4), "its report stays as it was"
    total = datasource_totals(alone.datasource)
    assert (total.polled - before.polled, total.published - before.published) == (10 + 4, 10 + 2)
    assert total.unparseable - before.unparseable == total.quarantined - before.quarantined == 1


def test_only_what_is_held_is_published(alone: Cast) -> None:
    """Row 37 of the failure matrix: whoever wakes up late, or was started before, stores nothing."""
    left_by(alone, b"1", b"2")
    [task] = ingest(alone)
    one, two = numbers()
    old = file_replays.start(task).epoch
    epoch = file_replays.start(task).epoch  # launched anew
    with pytest.raises(PublishRefused, match="is over"):
        file_replays.publish(task, became(old, [one]))
    file_replays.publish(task, became(epoch, [one]))
    with pytest.raises(PublishRefused, match="1 of these records are not held"):
        file_replays.publish(task, became(epoch, [one, two]))
    assert states() == ["stored", "replaying"] and published_by(task) == 1
    lifecycle.end_task(task, error="killed")
    assert states() == ["stored", "kept"]
    with pytest.raises(PublishRefused, match="not held"):  # whoever wakes up late
        file_replays.publish(task, became(epoch, [two]))
    [another] = ingest(alone)
    with pytest.raises(PublishRefused, match="not held"):
        file_replays.publish(task, became(epoch, [two]))
    file_replays.publish(another, became(file_replays.start(another).epoch, [two]))
    assert states() == ["stored", "stored"] and published_by(task) == published_by(another) == 1


@pytest.mark.parametrize("wrong", [{"published": 3}, {"polled": 4}, {"unparseable": 1}, {"thrown_away": 1}])
def test_counters_that_say_something_else_are_refused(alone: Cast, wrong: dict[str, int]) -> None:
    left_by(alone, b"1", b"2")
    [task] = ingest(alone)
    request = became(file_replays.start(task).epoch, numbers())
    counters = request.counters.model_copy(update=wrong)
    with pytest.raises(InvalidInput, match="do not match"):
        file_replays.publish(task, request.model_copy(update={"counters": counters}))
    twice = request.model_copy(update={"thrown_away": request.stored})
    with pytest.raises(InvalidInput, match="twice"):
        file_replays.publish(task, twice)
    assert states() == ["replaying", "replaying"] and not published_by(task)


def test_a_double_click_and_a_purge_find_nothing_to_take(alone: Cast, clients: dict[str, Client]) -> None:
    """Row 37 of the failure matrix: what is held is not taken a second time, nor purged."""
    left_by(alone, b"1")
    path = "/api/v1/datasources/flights/quarantine/"
    body = {"mode": "ingest", "filter": {}}
    first = clients["operator"].post(f"{path}replay/", body, content_type="application/json")
    second = clients["operator"].post(f"{path}replay/", body, content_type="application/json")
    assert (first.status_code, second.status_code) == (202, 409)
    purged = clients["owner"].post(f"{path}purge/", {"filter": {}}, content_type="application/json")
    assert purged.json() == {"records": 0} and states() == ["replaying"]
    quarantine.purge_by_rules(retention=timedelta(0), most_bytes=0, now=timezone.now() + timedelta(days=1))
    assert states() == ["replaying"]
    assert [e.action for e in AuditEntry.objects.filter(target="quarantine")] == ["replay_ingest"]
    for role, status in (("viewer", 403), ("outsider", 404)):
        asked = clients[role].post(f"{path}replay/", body, content_type="application/json")
        assert asked.status_code == status, role


def test_one_that_is_stopped_before_it_began_or_with_the_stack_loses_nothing(alone: Cast) -> None:
    left_by(alone, b"1", b"2")
    [task] = ingest(alone)
    lifecycle.set_goal(task, lifecycle.Goal.STOP)
    assert states() == ["kept", "kept"]
    [task] = ingest(alone)
    file_replays.publish(task, became(file_replays.start(task).epoch, numbers()[:1]))
    lifecycle.interrupt_task(task, message="Stopped.")
    task.refresh_from_db()
    assert (task.status, states()) == (Status.PENDING, ["stored", "replaying"]), "it goes on with what it holds"


def test_specs_that_read_alike_make_one_task_and_others_their_own(alone: Cast) -> None:
    first = left_by(alone, b"1")
    left_by(alone, b"2", name="/b.json", ioConfig__inputSource={"type": "inline", "data": '{"t": 2}'})
    other = left_by(alone, b"3", name="/c.json", dataSchema__timestampSpec={"column": "at"})
    tasks = ingest(alone)
    held = {t.pk: QuarantinedRecord.objects.filter(replay_id=t.pk).count() for t in tasks}
    columns = {t.spec["spec"]["dataSchema"]["timestampSpec"]["column"]: held[t.pk] for t in tasks}
    assert columns == {"t": 2, "at": 1}
    assert {t.spec.get("id") for t in tasks} == {None}
    assert Task.objects.filter(pk__in=[first.pk, other.pk]).count() == 2
    for task in tasks:
        lifecycle.end_task(task, error="killed")
    assert states() == ["kept"] * 3


def test_more_specs_than_may_run_at_once_are_refused(alone: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "MAX_READERS", 1)
    left_by(alone, b"1")
    left_by(alone, b"2", name="/b.json", dataSchema__timestampSpec={"column": "at"})
    with pytest.raises(Exception, match=r"2 different specs\. One replay allows at most 1"):
        ingest(alone)
    assert states() == ["kept", "kept"]


def test_what_no_spec_reads_again_is_refused_and_says_why(alone: Cast) -> None:
    task = left_by(alone, b"1")
    of_segments = copy.deepcopy(task.spec)
    of_segments["spec"]["dataSchema"] |= {
        "timestampSpec": {"column": "__time", "format": "millis"},
        "metricsSpec": [{"type": "longLast", "name": "n", "fieldName": "n"}],
    }
    of_segments["spec"]["ioConfig"] |= {
        "inputSource": {"type": "druid", "dataSource": "flights", "interval": "2013/2014"}, "inputFormat": None,
    }  # fmt: skip
    for spec, said in ((of_segments, "from segments"), ({**task.spec, "spec": {"ioConfig": {}}}, "can't be read any")):
        Task.objects.filter(pk=task.pk).update(spec=spec)
        with pytest.raises(Conflict, match=said):
            ingest(alone)
    QuarantinedRecord.objects.update(task_id="nobody")
    with pytest.raises(Conflict, match="there is no spec to decode"):
        ingest(alone)
    assert states() == ["kept"]


def test_a_replays_page_and_reports_show_what_is_still_bad(alone: Cast, clients: dict[str, Client]) -> None:
    left_by(alone, b"1", b"2", tuningConfig__maxRetry=7)
    [task] = ingest(alone)
    told = file_replays.start(task)
    beat = {"number": 0, "epoch": told.epoch, "state": "reading", "pid": 1}
    heartbeats.heartbeat(task, HeartbeatRequest.model_validate({"indexers": [beat], "slots": 1}))
    one, two = numbers()
    file_replays.publish(task, became(told.epoch, [one], bad=[two]))
    viewer = browsing_as(alone, "viewer")
    for address in ("", "live/", "errors/", "spec/", "log/"):
        answer = viewer.get(f"/tasks/{task.pk}/{address}")
        assert answer.status_code in (200, 404), address
    page = viewer.get(f"/tasks/{task.pk}/").content.decode()
    assert "Ingests quarantined records of files" in page and STILL in page and "/a.json, byte 1" in page
    lifecycle.end_task(task)
    report = clients["viewer"].get(f"/api/v1/tasks/{task.pk}/report/").json()
    assert [(r["place"], r["error"], r["source"]) for r in report["parse_exceptions"]] == [
        ("/a.json, byte 1", STILL, None)
    ]
    assert (report["totals"]["polled"], report["totals"]["published"], report["totals"]["unparseable"]) == (2, 1, 1)
    for address in ("", "/status", "/reports"):
        assert clients["viewer"].get(f"/druid/indexer/v1/task/{task.pk}{address}").status_code == 200, address
    shown = clients["viewer"].get(f"/api/v1/datasources/flights/quarantine/{one}/").json()
    assert (shown["state"], shown["replay_task"], shown["cut"], shown["file_header_base64"]) == (
        "stored", task.pk, False, None,
    )  # fmt: skip
    assert viewer.get(f"/datasources/flights/quarantine/{one}/").status_code == 200
