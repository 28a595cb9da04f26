"""What pages and health tell of backfills and gaps, and the forms that begin a backfill."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.supervisors import backfills, offset_reset, services
from controlplane.supervisors.backfills import backfill_statuses
from controlplane.supervisors.health_queries import health_of_supervisor
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.run import iterate
from controlplane.tasks.models import Task
from tests.integration.test_backfills import begin_reader, begins, publish, skipped, the_backfill
from tests.integration.test_supervisor_iterations import reads, tasks_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import Element, parsed
from tests.support.records import numbered

pytestmark = pytest.mark.usefixtures("checked_here")


@pytest.fixture
def supervisor(cast: Cast, broker: Broker) -> Supervisor:
    """Its task has published the offsets 0 to 9 of partition 0, which has 40 records, and reads on."""
    topic = broker.topic(partitions=2)
    broker.produce(topic, numbered(0, 40), partition=0)
    return begin_reader(cast, broker, topic)


def test_its_health_says_what_is_still_to_be_filled(supervisor: Supervisor, owner: Client, cast: Cast) -> None:
    def cause() -> str:
        supervisor.refresh_from_db()
        return health_of_supervisor(cast.users["owner"], supervisor).cause

    before = cause()
    skipped(owner, supervisor)
    assert cause() == f"{before} Its backfills fill 30 offsets."
    iterate()
    backfill = the_backfill(supervisor)
    [fills] = tasks_of(backfill)
    reads(fills)
    samples = [["2026-01-31T12:00:00+00:00", 0], ["2026-01-31T12:00:10+00:00", 1]]
    Task.objects.filter(pk=fills.pk).update(observation={"samples": samples})
    assert " Its backfills fill 30 offsets, done at about " in cause()
    page = parsed(browsing_as(cast, "owner").get(f"/datasources/{supervisor.datasource.name}/"))
    note = page.one("div", id="datasource-filling")
    assert "Its backfills fill 30 offsets, done at about " in note.text
    assert note.one("a").attributes["href"] == page_of(supervisor)
    publish(begins(backfill, fills), fills, supervisor, 10, 40)
    assert "backfill" not in cause()
    live = parsed(browsing_as(cast, "viewer").get(f"/datasources/{supervisor.datasource.name}/totals/"))
    assert live.one("div", id="datasource-filling").text == ""


def test_its_page_shows_a_skip_before_it_is_done_and_fills_what_was_cancelled(
    supervisor: Supervisor, cast: Cast
) -> None:
    browser, address = browsing_as(cast, "owner"), f"/supervisors/{supervisor.pk}/backfills/"
    shown = parsed(browser.get(address, {"skip": "1"}))
    assert "reads the 30 offsets that it skips" in shown.text
    assert not supervisor.backfills.exists()
    assert browser.post(address).status_code == 302
    backfill = the_backfill(supervisor)
    assert backfill.pk in parsed(browser.get(address)).text
    assert not parsed(browser.get(f"/supervisors/{backfill.pk}/")).all("dialog", id="ask-reset")
    services.suspend(user=cast.users["owner"], supervisor=backfill)
    services.terminate(user=cast.users["owner"], supervisor=backfill)
    said = parsed(browser.get(f"/supervisors/{backfill.pk}/")).one(id="supervisor-live")
    assert "Of its offsets, 30 are not settled." in said.attributes["data-announce"]
    assert "Fill them again" in said.text and "SUSPENDED" not in said.text
    assert "terminated, a gap" in parsed(browser.get(address)).text
    assert browser.post(address, {"again": backfill.pk}).status_code == 302
    bounded = the_backfill(supervisor, 2).io_config.boundedStreamConfig
    assert bounded is not None and bounded.ranges == {0: (10, 40)}
    assert "nothing to skip" in parsed(browser.get(address, {"skip": "1"}, follow=True)).text
    for odd in ("", "none", "a\x00b", "x" * 5_000):
        assert browser.post(address, {"again": odd}).status_code == 404
    assert browser.post(address, {"again": supervisor.pk}).status_code == 302, "it is no backfill, which a message says"
    assert supervisor.backfills.count() == 2
    viewer = browsing_as(cast, "viewer")
    assert "Show what a skip" not in parsed(viewer.get(address)).text
    assert viewer.post(address).status_code == 403


def test_a_list_of_backfills_asks_as_often_as_one_of_a_single_one(
    supervisor: Supervisor, cast: Cast, owner: Client
) -> None:
    skipped(owner, supervisor)
    with CaptureQueriesContext(connection) as of_one:
        assert [s.progress.left for s in backfill_statuses(supervisor)] == [30]
    services.terminate(user=cast.users["owner"], supervisor=the_backfill(supervisor))
    wanted = ({0: (10, 20)}, {0: (15, 40)}, {0: (0, 12)})
    for spans in wanted:
        starts, ends = ({str(p): span[n] for p, span in spans.items()} for n in (0, 1))
        backfills.fill(
            user=cast.users["owner"],
            supervisor=supervisor,
            wanted={"startSequenceNumbers": starts, "endSequenceNumbers": ends},
        )
    with CaptureQueriesContext(connection) as of_four:
        statuses = backfill_statuses(supervisor)
    assert len(of_four) == len(of_one), [query["sql"] for query in of_four]
    assert [(s.progress.total, s.progress.done) for s in statuses] == [(12, 10), (25, 0), (10, 0), (30, 0)]


def test_what_two_backfills_read_counts_once_in_the_health_of_their_supervisor(
    supervisor: Supervisor, cast: Cast, owner: Client
) -> None:
    skipped(owner, supervisor)
    services.terminate(user=cast.users["owner"], supervisor=the_backfill(supervisor))
    for first, last in ((10, 25), (20, 40)):
        wanted = {"startSequenceNumbers": {"0": first}, "endSequenceNumbers": {"0": last}}
        backfills.fill(user=cast.users["owner"], supervisor=supervisor, wanted=wanted)
    assert [status.progress.left for status in backfill_statuses(supervisor)] == [20, 15, 30]
    supervisor.refresh_from_db()
    assert "Its backfills fill 30 offsets." in health_of_supervisor(cast.users["owner"], supervisor).cause


def test_its_page_refreshes_what_backfills_have_left(supervisor: Supervisor, cast: Cast, owner: Client) -> None:
    browser, address = browsing_as(cast, "viewer"), page_of(supervisor)
    asked = parsed(browsing_as(cast, "owner").get(address, {"skip": "1"})).one("div", id="backfills")
    assert "data-live" not in asked.attributes, "a question that is open is not taken away"
    skipped(owner, supervisor)
    iterate()
    backfill = the_backfill(supervisor)
    [fills] = tasks_of(backfill)
    part = parsed(browser.get(address)).one("div", id="backfills")
    assert part.one("td", data_label="Left").text.strip() == "30"
    shown = part.attributes
    assert f"datasource:{supervisor.datasource.name}" in shown["data-live"].split()
    assert (shown["hx-trigger"], shown["hx-select"]) == ("live", "#backfills")
    publish(begins(backfill, fills), fills, supervisor, 10, 30)
    part = parsed(browser.get(shown["hx-get"])).one("div", id="backfills")
    assert (part.one("td", data_label="Left").text.strip(), part.one("td", data_label="Settled").text.strip()) == (
        "10",
        "66 %",
    )


def page_of(supervisor: Supervisor) -> str:
    return f"/supervisors/{supervisor.pk}/backfills/"


def listed_gaps(client: Client, supervisor: Supervisor) -> list[tuple[int, int, int]]:
    gaps = client.get(f"/api/v1{page_of(supervisor)}").json()["gaps"]
    return [(gap["partition"], gap["start"], gap["end"]) for gap in gaps]


def confirmed(page: Element, **more: str) -> dict[str, str]:
    """What the page's question sends when it is answered with yes."""
    section = page.one("section", aria_labelledby="plan-title")
    fields = {e.attributes["name"]: e.attributes.get("value", "") for e in section.all("input")}
    return {name: value for name, value in {**fields, **more}.items() if name != "csrfmiddlewaretoken"}


def test_a_gap_is_listed_while_nothing_reads_it_and_filled_from_its_row(
    supervisor: Supervisor, cast: Cast, owner: Client
) -> None:
    browser, address = browsing_as(cast, "owner"), page_of(supervisor)
    assert listed_gaps(owner, supervisor) == []
    skipped(owner, supervisor)
    assert listed_gaps(owner, supervisor) == [], "its backfill reads it"
    services.terminate(user=cast.users["owner"], supervisor=the_backfill(supervisor))
    assert listed_gaps(owner, supervisor) == [(0, 10, 40)]
    viewer = parsed(browsing_as(cast, "viewer").get(address))
    assert viewer.all("tr", data_gap="0: 10-40") and not viewer.all("form", method="post", action=address)
    link = parsed(browser.get(address)).one("tr", data_gap="0: 10-40").one("a")
    shown = parsed(browser.get(address + link.attributes["href"]))
    assert "reads 30 offsets that are not settled" in shown.text
    assert shown.one("textarea", id="fill_offsets").text == "0: 10-40"
    assert supervisor.backfills.count() == 1, "nothing begins before the answer"
    assert browser.post(address, confirmed(shown, task_count="3")).status_code == 302
    backfill = the_backfill(supervisor, 2)
    bounded = backfill.io_config.boundedStreamConfig
    assert bounded is not None and (bounded.ranges, backfill.io_config.taskCount) == ({0: (10, 40)}, 3)
    assert listed_gaps(owner, supervisor) == []
    twice = parsed(browser.post(address, confirmed(shown), follow=True))
    assert "Other backfills read all of these offsets already" in twice.text
    assert supervisor.backfills.count() == 2


def test_a_backfills_lag_is_that_of_its_supervisor_and_says_so(
    supervisor: Supervisor, cast: Cast, owner: Client
) -> None:
    skipped(owner, supervisor)
    browser, backfill = browsing_as(cast, "viewer"), the_backfill(supervisor)
    for page in ("", "lag/"):
        said = parsed(browser.get(f"/supervisors/{backfill.pk}/{page}")).one("p", data_lag_of=supervisor.pk)
        assert "This is the lag of" in said.text
        assert not parsed(browser.get(f"/supervisors/{supervisor.pk}/{page}")).all("p", data_lag_of=supervisor.pk)


def test_offsets_that_a_reset_has_passed_over_are_a_gap(supervisor: Supervisor, cast: Cast, owner: Client) -> None:
    offset_reset.reset_offsets(user=cast.users["owner"], supervisor=supervisor, offsets={0: 30})
    assert listed_gaps(owner, supervisor) == [(0, 10, 30)]
    [task] = tasks_of(supervisor)
    publish(begins(supervisor, task), task, supervisor, 30, 40)
    assert listed_gaps(owner, supervisor) == [(0, 10, 30)]
    page = parsed(browsing_as(cast, "viewer").get(f"/datasources/{supervisor.datasource.name}/progress/"))
    assert page.all("a", href=f"{page_of(supervisor)}#gaps-title")


def test_positions_become_the_offsets_that_are_shown(supervisor: Supervisor, cast: Cast, broker: Broker) -> None:
    browser, address = browsing_as(cast, "owner"), page_of(supervisor)
    shown = parsed(browser.post(address, {"start": "earliest", "end": "latest", "preview": "1"}))
    assert "reads 30 offsets" in shown.text
    broker.produce(supervisor.io_config.topic, numbered(40, 50), partition=0)
    assert browser.post(address, confirmed(shown)).status_code == 302
    bounded = the_backfill(supervisor).io_config.boundedStreamConfig
    assert bounded is not None and bounded.ranges == {0: (0, 40)}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "Give offsets, or a start and an end."),
        ({"start": "earliest"}, "Give offsets, or a start and an end."),
        ({"start": "earliest", "end": "tomorrow"}, "Write earliest, latest"),
        ({"offsets": "0: 1-5", "start": "earliest"}, "Leave this empty, or leave both positions empty."),
        ({"offsets": "0: 5"}, "Line 1 must be partition: start-end"),
        ({"offsets": "0: 1-2\n0: 4-5"}, "Line 2 repeats partition 0."),
        ({"offsets": "0: 9-5"}, "the start 9 lies behind the end 5"),
        ({"offsets": "9: 0-1"}, "no such partition"),
        ({"offsets": "0: 0-9999999999999999999"}, "endSequenceNumbers"),
        ({"offsets": "0: 0-10"}, "settled already"),
        ({"offsets": "1: 0-0"}, "no offsets between"),
    ],
)
def test_the_form_says_what_is_wrong(supervisor: Supervisor, cast: Cast, asked: dict[str, str], said: str) -> None:
    browser, address = browsing_as(cast, "owner"), page_of(supervisor)
    blank = {"offsets": "", "start": "", "end": ""}
    answer = browser.post(address, {**blank, **asked, "preview": "1"})
    assert (answer.status_code in (200, 400), said in parsed(answer).text) == (True, True)
    assert browser.post(address, {**blank, **asked}, follow=True).status_code == 200, "a message says it"
    assert not supervisor.backfills.exists()
    assert browsing_as(cast, "operator").post(address, {"offsets": "0: 10-40", "preview": "1"}).status_code == 403
