"""A batch task that is run again leaves each place of a file in quarantine once, whatever holds or publishes it."""

from __future__ import annotations

import threading

import pytest
from django.db import connections, transaction

from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import SourceEvent
from controlplane.tasks import file_replays, lifecycle
from tests.support.django_cast import Cast
from tests.support.file_replays import alone, became, ingest, left_by, numbers, published_by, states
from tests.support.waiting import wait_for

__all__ = ["alone"]  # a fixture


def waiting() -> list[tuple[str, bytes]]:
    """Whose they are, and what they hold."""
    found = QuarantinedRecord.objects.filter(state="kept").order_by("offset", "pk")
    return [(record.task_id, bytes(record.payload or b"")) for record in found]


def test_a_task_that_is_run_again_takes_the_place_of_what_it_left(alone: Cast) -> None:
    left_by(alone, b"1", b"2", b"3")
    again = left_by(alone, b"1", b"2 anew")  # the third can be read by now, or is gone: nothing says which
    assert [payload for _, payload in waiting()] == [b"1", b"2 anew", b"3"]
    [event] = SourceEvent.objects.filter(kind="purged")
    assert (event.task_id, event.alarm) == (again.pk, False) and event.detail.startswith("2 quarantined records of")
    [task] = ingest(alone)
    assert QuarantinedRecord.objects.filter(replay_id=task.pk).count() == 3


def test_other_files_and_tasks_that_append_take_nothing_away(alone: Cast) -> None:
    left_by(alone, b"1")
    left_by(alone, b"1", name="/b.json")
    left_by(alone, b"1", ioConfig__appendToExisting=True)
    assert len(waiting()) == 3 and not SourceEvent.objects.filter(kind="purged").exists()


def test_a_whole_record_does_not_go_for_the_beginning_of_one(alone: Cast) -> None:
    whole = left_by(alone, b"whole")
    left_by(alone, b"who", cut=True)
    assert (whole.pk, b"whole") in waiting()
    QuarantinedRecord.objects.filter(task_id=whole.pk).update(cut=True)
    last = left_by(alone, b"whole")
    assert waiting() == [(last.pk, b"whole")]


def test_what_a_replay_holds_stands_for_the_newer_one(alone: Cast) -> None:
    left_by(alone, b"1", b"2", b"3")
    [task] = ingest(alone)
    epoch, (one, two, three) = file_replays.start(task).epoch, numbers()
    file_replays.publish(task, became(epoch, [one]))
    again = left_by(alone, b"1", b"2", b"3 anew")
    # The first one's row was overwritten, so it waits again; the third is another record since.
    assert waiting() == [(again.pk, b"1"), (again.pk, b"3 anew")]
    file_replays.publish(task, became(epoch, [two]))
    lifecycle.end_task(task, error="killed")
    assert states().count("stored") == 2 and QuarantinedRecord.objects.get(pk=three).state == "kept"
    assert published_by(task) == 2


@pytest.mark.django_db(transaction=True)
def test_two_that_publish_at_once_leave_each_place_once(alone: Cast) -> None:
    left_by(alone, b"1")
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slowly() -> None:
        try:
            with transaction.atomic():
                left_by(alone, b"1")
                began.set()
                go_on.wait(30)
        finally:
            connections.close_all()

    def beside() -> None:
        try:
            left_by(alone, b"1")
            ended.set()
        finally:
            connections.close_all()

    both = [threading.Thread(target=slowly), threading.Thread(target=beside)]
    both[0].start()
    assert began.wait(30)
    both[1].start()
    assert not ended.wait(1), "it waits for the other's publish"
    go_on.set()
    for thread in both:
        thread.join(30)
    wait_for("both have published", ended.is_set, 30)
    assert len(waiting()) == 1
