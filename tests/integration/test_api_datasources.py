"""Datasources over REST: sums, pages, the timeline, quarantine, events, progress."""

from __future__ import annotations

import base64
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from controlplane.datasources.models import Datasource
from controlplane.publishing import fence
from controlplane.publishing.publish import publish
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import Segment, SegmentSchema
from controlplane.sources.models import Source, SourceEvent
from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import Column, PublishRequest, SegmentFile
from ingestion.specs.source_traits import SHARE_GROUPS
from tests.support.django_cast import DAY, PAYLOAD, STARTED, Cast, make_segment, sum_intervals

BASE = "/api/v1/datasources/"
FLIGHTS = f"{BASE}flights/"


def test_the_list_sums_the_segments_in_use(viewer: Client, cast: Cast) -> None:
    Segment.objects.filter(pk=cast.segments[3].pk).update(used=False)
    sum_intervals(cast.datasource)
    [flights] = viewer.get(BASE).json()["results"]
    assert (flights["name"], flights["team"]) == ("flights", "alpha")
    assert (flights["rows"], flights["segments"], flights["size_bytes"]) == (1200, 3, 12000)
    assert flights["min_time"] == "2013-01-01T01:00:00Z"
    assert flights["max_time"] == "2013-01-02T23:00:00Z"
    assert flights["active_tasks"] == 1


def test_a_list_costs_the_same_number_of_queries_however_long(
    viewer: Client, cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for n in range(20):
        make_segment(Datasource.objects.create(name=f"more-{n}", team=cast.alpha), "t", DAY, 0, 5)
    with django_assert_num_queries(2):  # the token, the page
        assert len(viewer.get(BASE).json()["results"]) == 21


def test_search_takes_wildcards_for_themselves(viewer: Client, cast: Cast) -> None:
    Datasource.objects.create(name="50_percent", team=cast.alpha)
    assert [d["name"] for d in viewer.get(BASE, {"search": "_PER"}).json()["results"]] == ["50_percent"]
    assert viewer.get(BASE, {"search": "%"}).json()["results"] == []


@pytest.mark.parametrize(("listed", "key"), [("datasources", "name"), ("supervisors", "id")])
def test_a_list_may_be_of_one_team(clients: dict[str, Client], cast: Cast, listed: str, key: str) -> None:
    Datasource.objects.create(name="theirs", team=cast.beta)

    def found(who: str, team: str) -> list[str]:
        return [row[key] for row in clients[who].get(f"/api/v1/{listed}/", {"team": team}).json()["results"]]

    assert found("viewer", "alpha") == found("superuser", "alpha") == ["flights"]
    assert found("viewer", "beta") == []
    assert found("superuser", "beta") == (["theirs"] if listed == "datasources" else [])


def test_pages_follow_one_another(viewer: Client, cast: Cast) -> None:
    names = sorted(["flights", *(f"ds-{n:02}" for n in range(7))])
    for name in names:
        Datasource.objects.get_or_create(name=name, defaults={"team": cast.alpha})
    seen, address = [], f"{BASE}?limit=3"
    while address:
        page = viewer.get(address).json()
        seen += [d["name"] for d in page["results"]]
        address = page["next"]
    assert seen == names


def test_limit_is_capped_at_500(viewer: Client, cast: Cast) -> None:
    Datasource.objects.bulk_create(Datasource(name=f"ds-{n:04}", team=cast.alpha) for n in range(501))
    page = viewer.get(BASE, {"limit": 100_000}).json()
    assert len(page["results"]) == 500
    assert page["next"]


def test_one_datasource_has_columns_and_totals_that_add_up(viewer: Client) -> None:
    flights = viewer.get(FLIGHTS).json()
    assert flights["columns"] == [
        {
            "name": name,
            "type": kind,
            "types": [kind],
            "segments": 4,
            "since": None,
            "history": [
                {"type": kind, "since": "2013-01-01T00:00:00Z", "until": "2013-01-03T00:00:00Z", "segments": 4}
            ],
        }
        for name, kind in (("__time", "timestamp"), ("carrier", "string"))
    ]
    totals = flights["totals"]
    assert totals["published"] == 1500
    assert totals["released"] == 504
    assert totals["polled"] == 1008 + 540 + 504
    assert totals["redelivered"] == 6 + 3
    assert (totals["filtered"], totals["outside_window"], totals["thrown_away"]) == (2, 40, 42)
    assert (totals["segments"], totals["quarantined"], totals["duplicates"]) == (4, 1, 5)
    assert totals["adds_up"] is True
    assert totals["rows_per_s"] == pytest.approx(15.0)  # 1500 rows, 100 s from the first start to the last publish
    assert totals["started_at"] == "2025-06-01T12:00:00Z"


def test_columns_whose_types_differ_show_both(viewer: Client, cast: Cast) -> None:
    cast.segments[0].schema = SegmentSchema.of(cast.datasource, [{"name": "carrier", "type": "long"}])
    cast.segments[0].save()
    [carrier] = [c for c in viewer.get(FLIGHTS).json()["columns"] if c["name"] == "carrier"]
    assert (carrier["type"], carrier["types"]) == ("string", ["long", "string"])


def test_totals_that_do_not_add_up_say_so(viewer: Client, cast: Cast) -> None:
    cast.fences[0].polled += 1
    cast.fences[0].save()
    assert viewer.get(FLIGHTS).json()["totals"]["adds_up"] is False


def test_a_datasource_without_anything(viewer: Client, cast: Cast) -> None:
    Datasource.objects.create(name="empty", team=cast.alpha)
    empty = viewer.get(f"{BASE}empty/").json()
    assert (empty["rows"], empty["segments"], empty["min_time"], empty["columns"]) == (0, 0, None, [])
    assert (empty["totals"]["polled"], empty["totals"]["rows_per_s"], empty["totals"]["adds_up"]) == (0, None, True)
    assert viewer.get(f"{BASE}empty/timeline/").json() == {
        "start": None,
        "end": None,
        "total_rows": 0,
        "merged": False,
        "bars": [],
        "gaps": [],
        "layers": [],
    }


def test_segments_newest_interval_first_over_pages(viewer: Client, cast: Cast) -> None:
    expected = [str(cast.segments[n].pk) for n in (3, 2, 1, 0)]
    seen, address = [], f"{FLIGHTS}segments/?limit=1"
    while address:
        page = viewer.get(address).json()
        seen += [s["id"] for s in page["results"]]
        address = page["next"]
    assert seen == expected


def test_segments_of_a_window(viewer: Client, cast: Cast) -> None:
    found = viewer.get(f"{FLIGHTS}segments/", {"from": "2013-01-02", "to": "2013-01-03T00:00:00Z"}).json()["results"]
    assert [s["id"] for s in found] == [str(cast.segments[2].pk)]
    assert found[0]["identifier"] == cast.segments[2].identifier


def test_the_timeline_has_a_bar_an_interval(viewer: Client) -> None:
    timeline = viewer.get(f"{FLIGHTS}timeline/").json()
    assert [(b["start"], b["rows"], b["segments"], b["size_bytes"]) for b in timeline["bars"]] == [
        ("2013-01-01T00:00:00Z", 900, 2, 9000),
        ("2013-01-02T00:00:00Z", 300, 1, 3000),
        ("2013-01-03T00:00:00Z", 300, 1, 3000),
    ]
    assert (timeline["start"], timeline["end"]) == ("2013-01-01T00:00:00Z", "2013-01-04T00:00:00Z")
    assert (timeline["total_rows"], timeline["merged"]) == (1500, False)


def test_the_timeline_is_clipped_to_the_window(viewer: Client) -> None:
    window = {"from": "2013-01-01T12:00:00Z", "to": "2013-01-02T06:00:00+00:00"}
    timeline = viewer.get(f"{FLIGHTS}timeline/", window).json()
    assert [(b["start"], b["end"], b["rows"]) for b in timeline["bars"]] == [
        ("2013-01-01T12:00:00Z", "2013-01-02T00:00:00Z", 900),
        ("2013-01-02T00:00:00Z", "2013-01-02T06:00:00Z", 300),
    ]
    assert timeline["end"] == "2013-01-04T00:00:00Z"  # the whole range, whatever the window


def test_a_timeline_of_many_intervals_is_merged_and_sums_exactly(viewer: Client, cast: Cast) -> None:
    hours = 6000
    Segment.objects.bulk_create(
        Segment(
            datasource=cast.datasource,
            interval_start=DAY + timedelta(days=400, hours=n),
            interval_end=DAY + timedelta(days=400, hours=n + 1),
            version="v",
            partition_num=0,
            rows=n + 1,
            size_bytes=7,
            sha256="",
            path=f"/many/{n}",
            min_time=DAY,
            max_time=DAY,
            schema=cast.segments[0].schema,
            task_id="",
            created_at=STARTED,
        )
        for n in range(hours)
    )
    sum_intervals(cast.datasource)
    timeline = viewer.get(f"{FLIGHTS}timeline/", {"width": 300}).json()
    assert timeline["merged"] is True
    assert len(timeline["bars"]) <= 300
    assert sum(b["rows"] for b in timeline["bars"]) == timeline["total_rows"] == 1500 + hours * (hours + 1) // 2
    assert sum(b["intervals"] for b in timeline["bars"]) == hours + 3
    assert sum(b["segments"] for b in timeline["bars"]) == hours + 4
    assert all(a["end"] <= b["start"] for a, b in zip(timeline["bars"], timeline["bars"][1:], strict=False))
    even = viewer.get(f"{FLIGHTS}timeline/", {"from": "2014-02-05", "to": "2014-10-11", "width": "62"}).json()
    assert {b["intervals"] for b in even["bars"]} == {96}
    zoomed = viewer.get(f"{FLIGHTS}timeline/", {"from": "2014-02-05", "to": "2014-02-06"}).json()
    assert (len(zoomed["bars"]), zoomed["merged"]) == (24, False)


def test_an_interval_of_all_time_fits_the_timeline(viewer: Client, cast: Cast) -> None:
    Segment.objects.filter(pk=cast.segments[3].pk).update(
        interval_start=datetime(1, 1, 1, tzinfo=UTC), interval_end=datetime(9999, 12, 31, tzinfo=UTC)
    )
    sum_intervals(cast.datasource)
    timeline = viewer.get(f"{FLIGHTS}timeline/", {"from": "2013-01-01", "to": "2013-01-02"}).json()
    assert [b["rows"] for b in timeline["bars"]] == [300, 900]  # that of all time begins first


def test_the_quarantine_shows_the_beginning_and_one_record_all_of_it(viewer: Client, cast: Cast) -> None:
    QuarantinedRecord.objects.filter(pk=cast.quarantined.pk).update(payload=PAYLOAD * 1000)
    [record] = viewer.get(f"{FLIGHTS}quarantine/").json()["results"]
    assert base64.b64decode(record["payload_base64"]) == (PAYLOAD * 1000)[:4096]
    assert record["payload_size"] == len(PAYLOAD) * 1000
    assert record["payload_text"].startswith('{"flight": <b>')
    assert (record["partition"], record["offset"], record["timestamp"]) == (0, 7, "2013-01-01T00:00:00Z")
    assert record["source"]["topic"] == "flights-topic"
    whole = viewer.get(f"{FLIGHTS}quarantine/{record['id']}/").json()
    assert base64.b64decode(whole["payload_base64"]) == PAYLOAD * 1000


def test_a_tombstone_in_quarantine(viewer: Client, cast: Cast) -> None:
    QuarantinedRecord.objects.filter(pk=cast.quarantined.pk).update(payload=None, key=None, timestamp_ms=2**62)
    [record] = viewer.get(f"{FLIGHTS}quarantine/").json()["results"]
    assert (record["payload_base64"], record["payload_size"], record["timestamp"]) == (None, None, None)


def test_events(viewer: Client, cast: Cast) -> None:
    [event] = viewer.get(f"{FLIGHTS}events/").json()["results"]
    assert (event["kind"], event["alarm"]) == ("gap", True)
    other = SourceEvent.objects.create(datasource=cast.datasource, kind=SourceEvent.Kind.PURGED, detail="Rule 1.")
    for query, found in (("kind=gap", [event["id"]]), ("alarm=false", [other.pk]), ("kind=purged&alarm=true", [])):
        assert [e["id"] for e in viewer.get(f"{FLIGHTS}events/?{query}").json()["results"]] == found


def test_progress_counts_holes_and_lag(viewer: Client, cast: Cast) -> None:
    first, second = viewer.get(f"{FLIGHTS}progress/").json()
    shown = ("partition", "settled", "settled_from", "settled_upto", "holes", "open_offsets", "end_offset", "lag")
    assert [first[name] for name in shown] == [0, 990, 0, 1000, 1, 10, 1000, 10]
    # Two rows that touch are one range: no hole.
    assert [second[name] for name in shown] == [1, 600, 0, 600, 0, 0, 1000, 400]
    # What retention has removed can't be read any more; of partition 2 nothing was published yet.
    bounds = {"0": [900, 900, 1000], "1": [900, 900, 1000], "2": [0, 0, 3]}
    Source.objects.filter(pk=cast.source.pk).update(bounds=bounds)
    after = viewer.get(f"{FLIGHTS}progress/").json()
    assert [(p["partition"], p["settled"], p["lag"]) for p in after] == [(0, 990, 0), (1, 600, 100), (2, 0, 3)]


def test_a_quarantined_record_of_another_datasource_is_not_found(viewer: Client, cast: Cast) -> None:
    Datasource.objects.create(name="other", team=cast.alpha)
    assert viewer.get(f"{BASE}other/quarantine/{cast.quarantined.pk}/").status_code == 404


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "%00",
        base64.urlsafe_b64encode(b'["a","b"]').decode(),
        base64.urlsafe_b64encode(b"[" * 2000).decode()[:1900],
        base64.urlsafe_b64encode(b"[1]").decode(),
        base64.urlsafe_b64encode(b'["\\u0000"]').decode(),
        base64.urlsafe_b64encode(b"['7f1e8a52-7f0b-4a3e-9a30-0d8f6a5f2c11']").decode(),
    ],
)
def test_a_cursor_that_no_list_made_is_refused(viewer: Client, cursor: str) -> None:
    answer = viewer.get(BASE, {"cursor": cursor})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"] == "cursor"


def test_what_is_published_shows_at_once(viewer: Client, cast: Cast) -> None:
    """Through the publish transaction: the list, the timeline and the record's fate agree with it."""
    other = Datasource.objects.create(name="published", team=cast.alpha)
    source = fence.adopt_source(
        datasource=other, kind=SHARE_GROUPS.kind, group="g", topic="t", cluster_id="c", topic_id="id"
    )
    epoch = fence.take_epoch(task_id="task", number=0, datasource=other, source=source).epoch
    for batch, days in enumerate(((0, 1), (1, 2))):
        files = [published_file(day, batch * 100 + n * 50, rows=50 - n) for n, day in enumerate(days)]
        request = PublishRequest(
            publish_id=uuid.uuid4(),
            epoch=epoch,
            topic_id="id",
            segments=files,
            outcomes={},
            counters=Counters(polled=99, published=99),
        )
        publish(task_id="task", number=0, request=request)
    [shown] = viewer.get(BASE, {"search": "published"}).json()["results"]
    assert (shown["rows"], shown["segments"], shown["size_bytes"]) == (198, 4, 400)
    assert (shown["min_time"], shown["max_time"]) == ("2013-01-01T01:00:00Z", "2013-01-03T02:00:00Z")
    bars = viewer.get(f"{BASE}published/timeline/").json()["bars"]
    assert [(b["rows"], b["segments"], b["size_bytes"]) for b in bars] == [(50, 1, 100), (99, 2, 200), (49, 1, 100)]
    fate = viewer.get("/api/v1/records", {"topic": "t", "partition": "0", "offset": "149"}).json()["fates"][0]
    assert (fate["outcome"], fate["segments"][0]["rows"]) == ("stored", 50)


def published_file(day: int, first_offset: int, rows: int) -> SegmentFile:
    start = DAY + timedelta(days=day)
    return SegmentFile(
        path=f"published/{uuid.uuid4()}.parquet",
        interval_start=start,
        interval_end=start + timedelta(days=1),
        rows=rows,
        size_bytes=100,
        sha256="0" * 64,
        min_time=start + timedelta(hours=1),
        max_time=start + timedelta(hours=2),
        columns=[Column(name="__time", type="timestamp")],
        offsets={0: [(first_offset, first_offset + rows)]},
    )
