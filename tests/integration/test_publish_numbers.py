"""Publishes as others read them: numbered in an order that nothing comes into, whatever commits when."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.test import Client
from django.utils import timezone

from controlplane.feed import entries as feed_entries
from controlplane.feed.models import FeedEntry
from controlplane.publishing.models import Publish
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.replace import replace
from controlplane.segments.models import Segment, SegmentSchema
from controlplane.sources.models import Source
from ingestion.specs.messages.protocol import Outcomes
from tests.integration.test_replace import asked, merged, place
from tests.support.django_cast import Cast
from tests.support.publishes import DAY, make_source, request, segment, send, start
from tests.support.waiting import wait_for


def back(minutes: int) -> None:
    """Let what was published be of one time, a while ago."""
    Publish.objects.update(created_at=timezone.now() - timedelta(minutes=minutes))


def test_publishes_with_rows_are_numbered_and_compactions_are_not(clients: dict[str, Client], cast: Cast) -> None:
    make_receipt_partitions()
    source = make_source("numbers")
    source.datasource.team = cast.alpha
    source.datasource.save()
    epoch = start(source)
    later, earlier = request(epoch, {0: [(10, 15)]}), request(epoch, {0: [(0, 10)]})
    for minutes, one in ((1, later), (2, earlier)):
        send(one)
        Publish.objects.filter(pk=one.publish_id).update(created_at=timezone.now() - timedelta(minutes=minutes))
    send(request(epoch, outcomes={0: Outcomes(thrown_away=[(20, 22)])}))  # brings no rows
    address = "/api/v1/datasources/numbers/publishes/"
    found = clients["viewer"].get(address).json()
    assert (found["latest"], [p["number"] for p in found["results"]]) == (2, [1, 2])
    assert [p["publish_id"] for p in found["results"]] == [str(earlier.publish_id), str(later.publish_id)]
    assert [[f["rows"] for f in p["files"]] for p in found["results"]] == [[10], [5]]
    assert found["results"][0]["files"][0]["address"].startswith(found["deep_storage"])
    files = list(Segment.objects.filter(datasource=source.datasource).order_by("rows"))
    whole = merged(files, path="numbers/whole.parquet")
    replace(place(source), asked(files, [whole]))
    again = clients["viewer"].get(address, {"after": 1}).json()
    assert (again["latest"], [(p["number"], p["complete"]) for p in again["results"]]) == (2, [(2, True)])
    files[0].delete()
    assert clients["viewer"].get(address, {"after": 1}).json()["results"][0]["complete"] is False
    assert clients["outsider"].get(address).status_code == 404
    assert clients["viewer"].get(address, {"after": "x"}).status_code == 400


@pytest.mark.django_db(transaction=True)
def test_nothing_is_numbered_past_a_publish_that_may_still_commit() -> None:
    make_receipt_partitions()
    source = make_source("flights")
    epochs = [start(source, n) for n in range(2)]
    SegmentSchema.of(source.datasource, [{"name": "item", "type": "string"}])  # both have it, and neither makes it
    began, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        try:
            with transaction.atomic():
                send(request(epochs[0], {0: [(0, 10)]}))
                began.set()
                go_on.wait(60)
        finally:
            connections.close_all()

    slow = threading.Thread(target=slowly)
    slow.start()
    assert began.wait(30)
    other_day = segment({1: [(0, 5)]}, DAY + timedelta(days=1))  # of one interval they would wait for each other
    send(request(epochs[1], segments=[other_day]), 1)
    assert feed_entries.number_new_publishes(source.datasource) == 0
    go_on.set()
    slow.join()
    wait_for("both have numbers", lambda: feed_entries.number_new_publishes(source.datasource) == 2, 30)
    entries = FeedEntry.objects.filter(datasource=source.datasource).order_by("number")
    assert [Segment.objects.get(pk=e.segment_ids[0]).rows for e in entries] == [10, 5]


def test_many_numbers_are_given_a_part_at_a_time(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_entries, "_BATCH_SIZE", 2)
    epoch = start(source)
    for n in range(5):
        send(request(epoch, {0: [(n, n + 1)]}))
    back(1)  # all of one time
    assert [feed_entries.number_new_publishes(source.datasource) for _ in range(4)] == [2, 4, 5, 5]
    assert FeedEntry.objects.values("publish_id").distinct().count() == 5


@pytest.fixture
def source(db: None) -> Source:
    make_receipt_partitions()
    return make_source("flights")
