"""A datasource's pages: list, totals, timeline, tables, events."""

from __future__ import annotations

import copy
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from controlplane.datasources.models import Datasource
from controlplane.publishing.models import IndexerFence, Publish
from controlplane.segments.models import Segment, SegmentSchema
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion, Supervisor
from frontend.views import segments
from tests.support.django_cast import DAY, STARTED, Cast, browsing_as, make_segment, sum_intervals
from tests.support.html import Element, counters, parsed

FLIGHTS = "/datasources/flights/"
DAY_MS = 86_400_000


@pytest.fixture
def viewer(cast: Cast) -> Client:
    return browsing_as(cast, "viewer")


def rows_of(page: Element) -> list[list[str]]:
    """What the cells hold, without the link to a query beside it."""
    rows = page.one("tbody").all("tr")
    return [[c.text.split(" Query this ")[0] for c in row.children if isinstance(c, Element)] for row in rows]


def ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def test_the_list_says_what_is_in_each_datasource(viewer: Client) -> None:
    [row] = rows_of(parsed(viewer.get("/datasources/")))
    assert row[:4] == ["flights", "not known yet", "–", "–"]
    assert row[4:] == ["1,500", "4", "14.6 KiB", "2013-01-01 01:00", "2013-01-03 23:00", "1", "alpha"]


def test_the_list_says_how_fresh_each_is_and_sorts_by_the_address(viewer: Client, cast: Cast) -> None:
    now = timezone.now()
    Source.objects.filter(pk=cast.source.pk).update(complete_until=now, looked_at=now)
    IndexerFence.objects.filter(pk=cast.fences[0].pk).update(last_publish_at=now)
    counted = {"published": 600}
    Publish.objects.create(id=uuid.uuid4(), fence=cast.fences[0], epoch=1, counters=counted, created_at=now)
    Datasource.objects.create(name="another", team=cast.alpha)
    by_name = rows_of(parsed(viewer.get("/datasources/")))
    assert [row[:4] for row in by_name] == [
        ["another", "not tracked", "–", "–"],
        ["flights", "up to date", f"{now:%Y-%m-%d %H:%M:%S} UTC", "10.0"],  # 600 in a minute
    ]
    for sort in ("-rows", "-latest", "-name", "latest"):  # what has no rows is last either way
        assert [r[0] for r in rows_of(parsed(viewer.get("/datasources/", {"sort": sort})))] == ["flights", "another"]


def test_the_list_is_sorted_by_freshness_what_is_not_known_last(viewer: Client, cast: Cast) -> None:
    now = timezone.now()
    Source.objects.filter(pk=cast.source.pk).update(complete_until=now, looked_at=now)
    Datasource.objects.create(name="another", team=cast.alpha)
    late = Datasource.objects.create(name="late", team=cast.alpha)
    supervisor = Supervisor.objects.create(id="late", datasource=late, detailed_state="RUNNING")
    SpecVersion.objects.create(supervisor=supervisor, version=1, spec=cast.supervisor.current.spec)
    source = copy.copy(cast.source)
    source.pk, source.datasource, source.cluster_id = None, late, "cluster-2"
    source.complete_until = now - timedelta(hours=1)
    source.save(force_insert=True)

    def names(sort: str) -> list[str]:
        return [row[0] for row in rows_of(parsed(viewer.get("/datasources/", {"sort": sort})))]

    assert names("freshness") == ["late", "flights", "another"]
    assert names("-freshness") == ["flights", "late", "another"]


def test_an_outsider_sees_how_to_begin(cast: Cast) -> None:
    page = parsed(browsing_as(cast, "outsider").get("/datasources/"))
    assert page.all("table") == []
    assert page.one("main").one("h2").text == "No datasources yet"


def test_search_and_pages(viewer: Client, cast: Cast) -> None:
    Datasource.objects.bulk_create(Datasource(name=f"ds-{n:03}", team=cast.alpha) for n in range(120))
    first = parsed(viewer.get("/datasources/", {"search": "ds-"}))
    assert [r[0] for r in rows_of(first)] == [f"ds-{n:03}" for n in range(50)]
    links = [a.attributes["href"] for a in first.one("nav", aria_label="Pages").all("a")]
    last = parsed(viewer.get("/datasources/" + links[-2]))
    assert [r[0] for r in rows_of(last)] == [f"ds-{n:03}" for n in range(100, 120)]
    assert "No datasource" in parsed(viewer.get("/datasources/", {"search": "<i>"})).one("main").text


@pytest.mark.parametrize("query", [{"page": "x"}, {"page": "-1"}, {"page": "99999999999"}, {"search": "\x00"}])
def test_an_address_that_makes_no_sense_still_gives_the_list(viewer: Client, query: dict[str, str]) -> None:
    assert viewer.get("/datasources/", query).status_code == 200


def test_the_list_costs_the_same_number_of_queries_however_long(
    viewer: Client, cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for n in range(20):
        make_segment(Datasource.objects.create(name=f"more-{n}", team=cast.alpha), "t", DAY, 0, 5)
    with django_assert_num_queries(13):  # session, user, count, page, the user's teams, freshness (6), rates, alerts
        viewer.get("/datasources/")


def test_the_totals_add_up_and_lead_to_what_is_behind_them(viewer: Client) -> None:
    page = parsed(viewer.get(FLIGHTS))
    shown = counters(page)
    outcomes = ("published", "rolled_up", "thrown_away", "unparseable", "duplicates", "released", "redundant")
    numbers = {name: int(shown[name].replace(",", "")) for name in ("polled", *outcomes)}
    assert numbers == {
        "polled": 2052,
        "published": 1500,
        "rolled_up": 0,
        "thrown_away": 42,
        "unparseable": 1,
        "duplicates": 5,
        "released": 504,
        "redundant": 0,
    }
    assert numbers["polled"] == sum(numbers[name] for name in outcomes)
    assert page.one("div", data_adds_up="yes")
    for name in ("published", "thrown_away", "unparseable", "duplicates", "released"):
        [link] = page.one("div", data_counter=name).all("a")
        assert viewer.get(link.attributes["href"]).status_code == 200


def test_the_totals_are_kept_fresh(viewer: Client, cast: Cast) -> None:
    totals = parsed(viewer.get(FLIGHTS)).one(id="totals")
    assert totals.attributes["hx-get"] == f"{FLIGHTS}totals/"
    assert counters(parsed(viewer.get(f"{FLIGHTS}totals/")))["published"] == "1,500"
    assert totals.attributes["data-live"] == "datasource:flights"


def test_alarms_stand_on_the_first_page(viewer: Client) -> None:
    alert = parsed(viewer.get(FLIGHTS)).one("main").one("div", class_="alert-danger")
    assert "Offsets 5 to 6 were removed by retention." in alert.text


def test_the_timeline_has_a_bar_for_each_interval(viewer: Client) -> None:
    answer = viewer.get(f"{FLIGHTS}timeline.json").json()
    days = [ms(DAY + timedelta(days=n)) for n in range(3)]
    assert answer["bars"] == [
        [days[0], days[0] + DAY_MS, 900, 2, 9000, 1, "unknown", False, False],
        [days[1], days[1] + DAY_MS, 300, 1, 3000, 1, "unknown", False, False],
        [days[2], days[2] + DAY_MS, 300, 1, 3000, 1, "unknown", False, False],
    ]
    assert (answer["rows"], answer["merged"]) == (1500, False)


def test_the_timeline_is_cut_to_the_window(viewer: Client) -> None:
    query = {"from": "2013-01-02T12:00:00.000Z", "to": "2013-01-03T00:00:00Z", "width": "700"}
    [bar] = viewer.get(f"{FLIGHTS}timeline.json", query).json()["bars"]
    assert bar[:3] == [ms(datetime(2013, 1, 2, 12, tzinfo=UTC)), ms(datetime(2013, 1, 3, tzinfo=UTC)), 300]


@pytest.mark.parametrize(
    "query",
    [
        {"from": "yesterday"},
        {"from": "2013-01-02", "to": "2013-01-01"},
        {"width": "wide"},
        {"from": "0001-01-01T00:00:00+14:00"},
    ],
)
def test_a_window_that_is_none_is_said_to_be_so(viewer: Client, query: dict[str, str]) -> None:
    answer = viewer.get(f"{FLIGHTS}timeline.json", query)
    assert answer.status_code == 400
    assert answer.json()["detail"]


@pytest.mark.parametrize("width", ["0", "-5", "1000000"])
def test_any_width_is_brought_into_its_bounds(viewer: Client, width: str) -> None:
    assert viewer.get(f"{FLIGHTS}timeline.json", {"width": width}).status_code == 200


def test_many_intervals_come_merged_with_no_row_lost(viewer: Client, cast: Cast) -> None:
    many = Datasource.objects.create(name="minutes", team=cast.alpha)
    made = [make_segment(many, "t", DAY, 0, 7)]
    for n in range(1, 6000):
        start = DAY + timedelta(days=1, minutes=n)
        made.append(
            Segment(
                datasource=many,
                interval_start=start,
                interval_end=start + timedelta(minutes=1),
                version="v",
                partition_num=0,
                rows=n,
                size_bytes=1,
                sha256="0" * 64,
                path=f"m/{n}",
                min_time=start,
                max_time=start,
                schema=made[0].schema,
                task_id="t",
                created_at=start,
            )
        )
    Segment.objects.bulk_create(made[1:])
    sum_intervals(many)
    answer = viewer.get("/datasources/minutes/timeline.json", {"width": "500"}).json()
    assert answer["merged"]
    assert len(answer["bars"]) <= 500
    assert sum(bar[2] for bar in answer["bars"]) == answer["rows"] == 7 + sum(range(6000))
    assert sum(bar[5] for bar in answer["bars"]) == 6000
    assert (
        "Neighbouring intervals are added up" in parsed(viewer.get("/datasources/minutes/intervals/")).one("main").text
    )
    hours = {"from": "2013-01-02T01:00:00Z", "to": "2013-01-02T03:00:00Z"}
    page = parsed(viewer.get("/datasources/minutes/intervals/", hours))
    assert "Neighbouring intervals are added up" not in page.one("main").text
    assert [r[2] for r in rows_of(page)] == [str(n) for n in range(179, 79, -1)]
    pages = page.one("nav", aria_label="Pages")
    following = pages.all("a", rel="next")[0].attributes["href"]
    rest = rows_of(parsed(viewer.get(f"/datasources/minutes/intervals/{following}")))
    assert [r[2] for r in rest] == [str(n) for n in range(79, 59, -1)]


def test_the_intervals_as_a_table_are_the_same(viewer: Client) -> None:
    rows = rows_of(parsed(viewer.get(f"{FLIGHTS}intervals/")))
    assert [(r[0], r[1], r[2], r[3]) for r in rows] == [
        ("2013-01-03", "2013-01-04", "300", "1"),
        ("2013-01-02", "2013-01-03", "300", "1"),
        ("2013-01-01", "2013-01-02", "900", "2"),
    ]


def test_an_interval_leads_to_its_segments(viewer: Client) -> None:
    page = parsed(viewer.get(f"{FLIGHTS}intervals/"))
    query, link = (a.attributes["href"] for a in page.one("tbody").all("tr")[2].all("a")[:2])
    assert query.startswith("/query/?")
    rows = rows_of(parsed(viewer.get(link)))
    assert [(r[0], r[1], r[2]) for r in rows] == [
        ("2013-01-01 – 2013-01-02", "1", "400"),
        ("2013-01-01 – 2013-01-02", "0", "500"),
    ]


def test_segments_are_paged_without_a_gap_or_a_double(viewer: Client, cast: Cast) -> None:
    for n in range(2, 130):
        make_segment(cast.datasource, cast.task.pk, DAY, n, 1)
    there, address = [], f"{FLIGHTS}segments/"
    while address:
        page = parsed(viewer.get(address))
        there += [r[-1] for r in rows_of(page)]
        forward = page.one("nav", aria_label="Pages").all("a", rel="next")
        back = page.one("nav", aria_label="Pages").all("a", rel="prev")
        address = f"{FLIGHTS}segments/{forward[0].attributes['href']}" if forward else ""
    assert sorted(there) == sorted(Segment.objects.filter(datasource=cast.datasource).values_list("path", flat=True))
    before = parsed(viewer.get(f"{FLIGHTS}segments/{back[0].attributes['href']}"))
    assert [r[-1] for r in rows_of(before)] == there[50:100]


@pytest.mark.parametrize("cursor", ["x", "bm90IGpzb24", "W10", "W2ZhbHNlLCJhIiwiYiIsImMiXQ", "é"])
def test_a_cursor_that_is_none_is_said_to_be_so(viewer: Client, cursor: str) -> None:
    answer = viewer.get(f"{FLIGHTS}segments/", {"cursor": cursor})
    assert answer.status_code == 400
    said = parsed(answer).one("div", class_="empty")
    assert "This address does not fit the list's sort order" in said.text
    assert len(rows_of(parsed(viewer.get(said.one("a").attributes["href"])))) == 4


@pytest.mark.parametrize(
    ("address", "sort", "known"),
    [
        (f"{FLIGHTS}segments/", "file", "interval, "),  # by no index
        ("/datasources/", "id", "name, freshness, "),  # a column's name in the store
        ("/tasks/", "--task", "task, "),
        ("/supervisors/", "lag", "supervisor, "),
        ("/supervisors/flights/lag/", "stored", "partition, end, settled, "),  # a share group stores none
    ],
)
def test_a_sort_that_is_none_is_said_to_be_so(viewer: Client, address: str, sort: str, known: str) -> None:
    answer = viewer.get(address, {"sort": sort})
    assert answer.status_code == 400
    said = parsed(answer).one("div", class_="empty")
    assert f"can't be sorted by '{sort}', but by one of: {known}" in said.text
    assert said.one("a").attributes["href"] == address


def test_a_time_that_is_none_is_said_to_be_so_and_all_is_shown(viewer: Client) -> None:
    page = parsed(viewer.get(f"{FLIGHTS}segments/", {"from": "noon"}))
    assert "from is not an ISO 8601 time" in page.one("div", class_="messages").text
    assert len(rows_of(page)) == 4


def test_columns_progress_and_events(viewer: Client) -> None:
    assert rows_of(parsed(viewer.get(f"{FLIGHTS}columns/"))) == [
        ["__time", "timestamp", "everyone", "", "", "4"],
        ["carrier", "string", "everyone", "", "", "4"],
    ]
    partitions = rows_of(parsed(viewer.get(f"{FLIGHTS}progress/")))
    assert [(r[2], r[3], r[5], r[8]) for r in partitions] == [
        ("0", "990", "10 in 1 gap", "10"),
        ("1", "600", "0", "400"),
    ]
    [event] = rows_of(parsed(viewer.get(f"{FLIGHTS}events/")))
    assert event[2] == "Offsets 5 to 6 were removed by retention."


def test_a_column_whose_type_differs_shows_the_one_that_holds_all(viewer: Client, cast: Cast) -> None:
    for segment, kind in zip(cast.segments, ("long", "double", "double", "json"), strict=True):
        segment.schema = SegmentSchema.of(cast.datasource, [{"name": "delay", "type": kind}])
        segment.save()
    [row] = rows_of(parsed(viewer.get(f"{FLIGHTS}columns/")))
    assert row[:4] + row[5:] == ["delay", "json", "everyone", "", "4"]
    assert all(f"{kind}: 2013-01-0" in row[4] for kind in ("double", "json", "long"))


def test_an_empty_datasource_says_so_everywhere(viewer: Client, cast: Cast) -> None:
    Datasource.objects.create(name="empty", team=cast.alpha)
    for part in ("", "intervals/", "segments/", "quarantine/", "columns/", "progress/", "events/", "compaction/"):
        page = parsed(viewer.get(f"/datasources/empty/{part}"))
        assert page.all("table") == []
        assert page.one("h1").text == "empty"
    empty = {"bars": [], "rows": 0, "merged": False, "gaps": [], "layers": {}}
    assert viewer.get("/datasources/empty/timeline.json").json() == empty


def test_every_part_is_reached_from_the_first_page(viewer: Client) -> None:
    tabs = parsed(viewer.get(FLIGHTS)).one("ul", class_="nav-tabs").all("a")
    assert len(tabs) == 10
    for tab in tabs:
        page = parsed(viewer.get(tab.attributes["href"]))
        [here] = page.one("ul", class_="nav-tabs").all("a", aria_current="page")
        assert here.text == tab.text


def test_gaps_between_data_are_named_and_lead_to_their_place(viewer: Client, cast: Cast) -> None:
    assert "gap" not in parsed(viewer.get(FLIGHTS)).one(id="datasource-gaps").text
    make_segment(cast.datasource, "t", DAY + timedelta(days=5), 0, 5)
    make_segment(cast.datasource, "t", DAY + timedelta(days=7), 0, 5)
    gaps = parsed(viewer.get(FLIGHTS)).one(id="datasource-gaps")
    assert "2 gaps" in gaps.text
    latest, first = gaps.all("a")
    assert (latest.text, first.text) == ("2013-01-07 – 2013-01-08", "2013-01-04 – 2013-01-06")
    assert "from=2013-01-03T00%3A00%3A00Z&to=2013-01-07T00%3A00%3A00Z" in first.attributes["href"]


def test_columns_that_changed_say_since_when(viewer: Client, cast: Cast) -> None:
    late = cast.segments[-1]
    columns = [{"name": "carrier", "type": "long"}, {"name": "delay", "type": "long"}]
    Segment.objects.filter(pk=late.pk).update(schema=SegmentSchema.of(cast.datasource, columns))
    rows = {row[0]: row[1:] for row in rows_of(parsed(viewer.get(f"{FLIGHTS}columns/")))}
    assert rows["__time"] == ["timestamp", "everyone", "", "", "3"]
    assert rows["delay"] == ["long", "everyone", "2013-01-03", "", "1"]
    assert rows["carrier"][0] == "string"
    assert "long: 2013-01-03 to 2013-01-03, 1 segment" in rows["carrier"][3]
    assert "string: 2013-01-01 to 2013-01-02, 3 segments" in rows["carrier"][3]


def test_every_tab_says_until_when_it_is_complete(viewer: Client, cast: Cast) -> None:
    until = timezone.now() - timedelta(seconds=5)
    Source.objects.filter(pk=cast.source.pk).update(complete_until=until, looked_at=timezone.now())
    for tab in ("", "segments/", "columns/"):
        facts = parsed(viewer.get(f"{FLIGHTS}{tab}")).one(id="datasource-facts").text
        assert "up to date" in facts
        assert f"Complete until {until:%Y-%m-%d %H:%M:%S} UTC" in facts


def test_a_topic_that_is_gone_is_why_it_is_not_complete(viewer: Client, cast: Cast) -> None:
    gone = [{"class": "TopicMissing", "message": "There is no topic 'flights-topic'.", "stream": True}]
    Supervisor.objects.filter(pk=cast.supervisor.pk).update(failed_runs=2, run_errors=gone, partitions=1)
    Source.objects.filter(pk=cast.source.pk).update(complete_until=STARTED, looked_at=STARTED)
    facts = parsed(viewer.get(FLIGHTS)).one(id="datasource-facts").text
    assert "flights: There is no topic 'flights-topic', or its login has no permission to see it." in facts
    assert "looked at" not in facts


def test_segments_are_sorted_by_the_address_while_they_are_not_too_many(
    viewer: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(**query: str) -> list[str]:
        return [row[2] for row in rows_of(parsed(viewer.get(f"{FLIGHTS}segments/", query)))]

    assert rows(sort="-rows") == ["500", "400", "300", "300"]
    assert rows(sort="rows")[2:] == ["400", "500"]
    monkeypatch.setattr(segments, "MAX_SORTED", 3)
    assert rows(sort="-rows") == rows()
    assert sorted(rows(sort="interval")[:2]) == ["400", "500"]
    one_day = {"from": "2013-01-01", "to": "2013-01-02"}
    assert rows(sort="-rows", **one_day) == ["500", "400"]
