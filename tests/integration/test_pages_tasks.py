"""The pages of tasks: list, live parts, report, actions."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from controlplane.publishing.models import IndexerFence
from controlplane.quarantine.models import FaultyRecord, QuarantinedRecord
from controlplane.tasks.models import Goal, Status, Task
from tests.support.django_cast import PAYLOAD, STARTED, Cast, browsing_as
from tests.support.html import Element, counters, parsed


@pytest.fixture
def viewer(cast: Cast) -> Client:
    return browsing_as(cast, "viewer")


@pytest.fixture
def operator(cast: Cast) -> Client:
    return browsing_as(cast, "operator")


def more_tasks(cast: Cast, count: int) -> None:
    for n in range(count):
        Task.objects.create(
            id=f"task-{n:03}",
            kind="repair" if n % 10 == 0 else "share_group",
            datasource=cast.datasource,
            spec=cast.task.spec,
            status=Status.FAILED if n % 2 else Status.SUCCESS,
            created_at=STARTED - timedelta(minutes=n // 3 + 1),
        )


def names_of(page: Element) -> list[str]:
    return [row.attributes["data-task"] for row in page.one("tbody").all("tr")]


def test_the_list_has_every_task_once_the_newest_first(viewer: Client, cast: Cast) -> None:
    more_tasks(cast, 120)
    seen, query = [], ""
    while True:
        page = parsed(viewer.get(f"/tasks/{query}"))
        seen += names_of(page)
        links = page.one("nav", aria_label="Pages").all("a", rel="next")
        if not links:
            break
        query = links[0].attributes["href"]
    expected = Task.objects.order_by("-created_at", "-id").values_list("id", flat=True)
    assert seen == list(expected)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"status": "RUNNING"}, 1),
        ({"status": "FAILED"}, 6),
        ({"status": "nonsense"}, 13),
        ({"kind": "repair"}, 2),
        ({"datasource": "flights"}, 13),
        ({"datasource": "other"}, 0),
        ({"supervisor": "flights"}, 1),
        ({"search": "task-00"}, 10),
        ({"search": "\x00"}, 13),
        ({"status": "SUCCESS", "kind": "repair"}, 2),
    ],
)
def test_filters(viewer: Client, cast: Cast, query: dict[str, str], count: int) -> None:
    more_tasks(cast, 12)
    page = parsed(viewer.get("/tasks/", query))
    assert len(names_of(page)) == count if count else page.all("tbody") == []


def test_the_list_costs_the_same_number_of_queries_however_long(
    viewer: Client, cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    more_tasks(cast, 40)
    # session, user, masks, page, what runs, waits and merges (3), quotas, teams, badges (2)
    with django_assert_num_queries(11):
        viewer.get("/tasks/")


def test_a_running_task_refreshes_itself_and_an_ended_one_does_not(viewer: Client, cast: Cast) -> None:
    address = f"/tasks/{cast.task.pk}/"
    live = parsed(viewer.get(address)).one(id="task-live")
    assert (live.attributes["hx-get"], live.attributes["hx-trigger"]) == (f"{address}live/", "live")
    assert counters(parsed(viewer.get(f"{address}live/")))["published"] == "1,500"
    Task.objects.filter(pk=cast.task.pk).update(status=Status.SUCCESS)
    last = viewer.get(f"{address}live/")
    assert last["HX-Refresh"] == "true"
    assert "hx-get" not in parsed(viewer.get(address)).one(id="task-live").attributes


def test_a_session_that_ended_gives_nothing_in_place_of_a_part(cast: Cast) -> None:
    answer = Client().get(f"/tasks/{cast.task.pk}/live/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.content) == (401, b"")


def test_the_report_and_the_indexers(viewer: Client, cast: Cast) -> None:
    page = parsed(viewer.get(f"/tasks/{cast.task.pk}/"))
    shown = counters(page)
    assert (shown["polled"], shown["published"], shown["redelivered"]) == ("2,052", "1,500", "9")
    assert page.one("div", data_adds_up="yes")
    indexers = [r.text for r in page.one("section", aria_labelledby="indexers-title").one("tbody").all("tr")]
    assert len(indexers) == 2
    assert all("reading" in row for row in indexers)


def test_parse_errors_come_with_their_payload(viewer: Client, cast: Cast) -> None:
    [record] = parsed(viewer.get(f"/tasks/{cast.task.pk}/")).one(id="parse-errors").all("article")
    assert record.attributes["data-record"] == "0:7"
    assert record.one("pre").raw_text == PAYLOAD.decode()
    assert "Malformed JSON at byte 12" in record.text
    fate = next(a for a in record.all("a") if a.text == "View outcome")
    assert "unparseable" in parsed(viewer.get(fate.attributes["href"])).one("main").text


def test_errors_are_grouped_by_what_is_wrong(viewer: Client, cast: Cast) -> None:
    whose: dict[str, Any] = {"source": cast.source, "datasource": cast.datasource, "task_id": cast.task.pk}
    for n in range(30):
        QuarantinedRecord.objects.create(
            **whose,
            partition=0,
            delivery_count=1,
            offset=1000 + n,
            reason="unparseable",
            error=f"field 'amount' is no number: 'x{n}' at byte {n}",
            cause="a-cause",
            payload=b"%d" % n,
            publish_id=uuid.uuid4(),
            created_at=STARTED + timedelta(seconds=n),
        )
    make_faulty(cast, 5)
    rows = [r for r in parsed(viewer.get(f"/tasks/{cast.task.pk}/")).one(id="parse-errors").all("tr") if r.all("time")]
    groups = {row.one("th").text: row for row in rows if row.attributes.get("data-cause")}
    assert list(groups) == [
        "field 'amount' is no number: … at byte #",
        "Malformed JSON at byte #",
        "field 'n' is not a whole number",
    ]
    first, last = groups["field 'amount' is no number: … at byte #"].all("time")
    assert groups["field 'amount' is no number: … at byte #"].all("td")[0].text == "30"
    assert (first.attributes["datetime"], last.attributes["datetime"]) == (
        "2025-06-01T12:00:00Z",
        "2025-06-01T12:00:29Z",
    )
    examples = parsed(viewer.get(f"/tasks/{cast.task.pk}/")).one(id="parse-errors").all("article")
    assert [e.attributes["data-record"] for e in examples] == ["0:1029", "0:7", "2:5"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"log_text": "JAVA"}, 1),
        ({"log_level": "WARN"}, 4),  # the stack's line belongs to its error
        ({"log_level": "ERROR"}, 2),
        ({"log_text": "indexer=1", "log_level": "WARN"}, 1),
        ({"log_text": "nothing of this"}, 0),
        ({"log_level": "odd"}, None),
    ],
)
def test_a_log_is_searched(viewer: Client, cast: Cast, query: dict[str, str], found: int | None) -> None:
    path = Path(settings.TASK_DIR) / cast.task.pk / "spark.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "26/11/22 19:10:58 INFO SparkContext: Running\n"
        "26/11/22 19:10:58 WARN NativeCodeLoader: builtin-java classes\n"
        "timestamp=2026-11-22T19:11:35Z level=info event=started indexer=0\n"
        'timestamp=2026-11-22T19:11:47Z level=warning event=paused indexer=1 reason="<b>"\n'
        "timestamp=2026-11-22T19:11:48Z level=error event=failed indexer=0\n"
        "  at a line of its stack\n"
    )
    page = parsed(viewer.get(f"/tasks/{cast.task.pk}/", query)).one(id="task-log")
    if found is None:
        assert "data-log-found" not in str(page.all("p"))
        return
    assert page.all("p")[0].attributes["data-log-found"] == str(found)
    assert [len(e.raw_text.splitlines()) for e in page.all("pre")] == ([found] if found else [])
    assert "log_text" in page.attributes["hx-get"] or "log_level" in page.attributes["hx-get"]


def make_faulty(cast: Cast, offset: int) -> FaultyRecord:
    return FaultyRecord.objects.create(
        source=cast.source,
        datasource=cast.datasource,
        task_id=cast.task.pk,
        partition=2,
        offset=offset,
        delivery_count=1,
        error="field 'n' is not a whole number",
        payload=b'{"n": "<b>"}',
        payload_size=12,
        created_at=STARTED + timedelta(seconds=offset),
    )


def _rows(page: Element) -> list[Element]:
    return [row for row in page.all("tr") if "data-record" in row.attributes]


def test_records_with_a_faulty_field_are_behind_their_number(viewer: Client, cast: Cast) -> None:
    IndexerFence.objects.filter(task_id=cast.task.pk, number=0).update(processed_with_error=30)
    for offset in range(30):
        make_faulty(cast, offset)
    page = parsed(viewer.get(f"/tasks/{cast.task.pk}/"))
    shown = page.one(id="parse-errors").all("article")
    assert shown[0].attributes["data-record"] == "2:29"  # the last first
    assert all(a.text != "View record" for a in shown[0].all("a"))
    tile = page.one("div", data_counter="processed_with_error")
    behind = parsed(viewer.get(tile.one("a").attributes["href"]))
    records = _rows(behind)
    assert [r.attributes["data-record"] for r in records] == [f"2:{n}" for n in range(29, 9, -1)]
    assert records[0].one("pre").raw_text == '{"n": "<b>"}'
    rest = parsed(viewer.get(f"/tasks/{cast.task.pk}/errors/" + behind.one("a", rel="next").attributes["href"]))
    assert [r.attributes["data-record"] for r in _rows(rest)] == [f"2:{n}" for n in range(9, -1, -1)]


def test_many_parse_errors_have_pages_of_their_own(viewer: Client, cast: Cast) -> None:
    for n in range(30):
        QuarantinedRecord.objects.create(
            source=cast.source,
            datasource=cast.datasource,
            task_id=cast.task.pk,
            partition=1,
            offset=n,
            delivery_count=1,
            reason="unparseable",
            error="bad",
            payload=bytes([0, n]),
            publish_id=uuid.uuid4(),
            created_at=STARTED,
        )
    shown = parsed(viewer.get(f"/tasks/{cast.task.pk}/")).one(id="parse-errors").all("article")
    assert [e.attributes["data-record"] for e in shown] == ["1:29", "0:7"], "an example of each cause"
    first = parsed(viewer.get(f"/tasks/{cast.task.pk}/errors/"))
    assert len(_rows(first)) == 20
    [following] = first.all("a", rel="next")
    second = parsed(viewer.get(f"/tasks/{cast.task.pk}/errors/{following.attributes['href']}"))
    assert len(_rows(second)) == 11
    oldest = _rows(parsed(viewer.get(f"/tasks/{cast.task.pk}/errors/?sort=since")))[0]
    assert oldest.attributes["data-record"] == "0:7"


def test_the_progress_bar(viewer: Client, cast: Cast) -> None:
    address = f"/tasks/{cast.task.pk}/"
    assert "has not checked the topic yet" in parsed(viewer.get(address)).one("main").text
    cast.task.observation = {"topic_exists": True, "settled": 1590, "lag": 410, "observed_at": "2025-06-01T12:09:00Z"}
    cast.task.save()
    bar = parsed(viewer.get(address)).one("div", role="progressbar")
    assert (bar.attributes["aria-valuenow"], bar.attributes["aria-valuetext"]) == ("79", "1,590 of 2,000 records")


def test_a_task_with_nothing_to_show_says_why(viewer: Client, cast: Cast) -> None:
    Task.objects.create(
        id="idle",
        kind="share_group",
        datasource=cast.datasource,
        spec=cast.task.spec,
        status=Status.RUNNING,
        created_at=STARTED,
        observation={"topic_exists": True, "end_offsets": {"0": 0}, "settled": 0, "lag": 0},
    )
    reasons = parsed(viewer.get("/tasks/idle/")).one("div", data_reasons="").all("li")
    assert [r.attributes["data-reason"] for r in reasons] == ["topic_empty"]


def test_the_end_of_the_log(viewer: Client, cast: Cast) -> None:
    folder = settings.TASK_DIR / cast.task.pk
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spark.log").write_text("first\n" + "x" * 70_000 + "\nlast line\n")
    log = parsed(viewer.get(f"/tasks/{cast.task.pk}/log/")).one("pre").raw_text
    assert log.endswith("last line\n")
    assert "first" not in log


@pytest.mark.parametrize(("action", "goal"), [("stop", Goal.STOP), ("finish", Goal.FINISH)])
def test_stopping(operator: Client, cast: Cast, action: str, goal: Goal) -> None:
    address = f"/tasks/{cast.task.pk}/"
    page = parsed(operator.get(address))
    [form] = [f for f in page.all("form") if f.attributes.get("action") == f"{address}{action}/"]
    assert form.all("input", name="csrfmiddlewaretoken")
    answer = operator.post(f"{address}{action}/", follow=True)
    cast.task.refresh_from_db()
    assert cast.task.goal == goal
    assert "The task" in parsed(answer).one("div", class_="alert-success").text


def test_a_task_that_has_ended_can_not_be_stopped(operator: Client, cast: Cast) -> None:
    Task.objects.filter(pk=cast.task.pk).update(status=Status.SUCCESS)
    page = parsed(operator.post(f"/tasks/{cast.task.pk}/stop/", follow=True))
    assert "has ended already" in page.one("div", role="alert").text
    assert page.all("dialog", class_="confirm") == []
    assert operator.get(f"/tasks/{cast.task.pk}/confirm/stop/").status_code == 404


def test_a_viewer_has_no_buttons(viewer: Client, cast: Cast) -> None:
    assert parsed(viewer.get(f"/tasks/{cast.task.pk}/")).all("dialog", class_="confirm") == []


def test_without_scripts_a_page_asks(operator: Client, cast: Cast) -> None:
    page = parsed(operator.get(f"/tasks/{cast.task.pk}/confirm/stop/"))
    form = page.one("main").one("form")
    assert "Stop task 06-01 12:00 · abcdefgh now?" in page.one("main").text, "its short name"
    assert form.attributes["action"] == f"/tasks/{cast.task.pk}/stop/"
    assert [a.attributes["href"] for a in form.all("a")] == [f"/tasks/{cast.task.pk}/"]


def test_an_action_needs_post_and_a_token(cast: Cast) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.users["operator"])
    assert client.get(f"/tasks/{cast.task.pk}/stop/").status_code == 405
    refused = client.post(f"/tasks/{cast.task.pk}/stop/")
    assert refused.status_code == 403
    assert "This form has expired" in parsed(refused).one("main").text
    cast.task.refresh_from_db()
    assert cast.task.goal == Goal.RUN


def test_of_a_task_without_records_it_is_not_said_that_all_could_be_read(viewer: Client, cast: Cast) -> None:
    more_tasks(cast, 2)  # the first is one of repair, the second a stream's
    page = parsed(viewer.get("/tasks/task-001/"))
    assert page.one(id="parse-errors").one("p").text == "No record has been polled yet."
    assert "No record was unparseable" not in page.text


def test_of_records_that_could_not_be_read_and_are_kept_no_longer_it_is_not_said_that_all_could_be(
    viewer: Client, cast: Cast
) -> None:
    QuarantinedRecord.objects.all().delete()
    text = parsed(viewer.get(f"/tasks/{cast.task.pk}/")).one(id="parse-errors").one("p").text
    assert text == "No copy was saved of these records: 1 unparseable, 20 with a faulty field."


def test_a_task_lasted_as_long_on_its_page_as_in_the_list(viewer: Client, cast: Cast) -> None:
    """From its start on: before, it has waited."""
    times = {"created_at": STARTED, "started_at": STARTED + timedelta(minutes=5)}
    Task.objects.filter(pk=cast.task.pk).update(
        **times, ended_at=STARTED + timedelta(minutes=12), status=Status.SUCCESS
    )
    [row] = parsed(viewer.get("/tasks/")).one("tbody").all("tr")
    assert [c.text for c in row.all("td") if c.attributes["data-col"] == "lasted"] == ["7 min"]
    facts = parsed(viewer.get(f"/tasks/{cast.task.pk}/")).one("dl", class_="facts").all("div")
    assert [f.one("dd").text for f in facts if f.one("dt").text == "Lasted"] == ["7 min"]
