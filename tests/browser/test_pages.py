"""The pages in a browser, on rows made for them: drawing, zoom, keyboard, themes, live parts."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from pytest_django.live_server_helper import LiveServer

from controlplane.datasources.models import Datasource
from controlplane.publishing.models import IndexerFence
from controlplane.segments.models import Segment, SegmentSchema
from controlplane.tasks.models import Status, Task
from tests.browser.conftest import Quiet
from tests.browser.crawl import NARROW
from tests.browser.site import YEAR, log_in_as, make_year
from tests.browser.site import segment as make_segment
from tests.browser.timeline import changed, drawn, point_at
from tests.support.django_cast import DAY, PASSWORD, STARTED, Cast, make_cast, sum_intervals


@pytest.fixture
def site(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture
def owner(page: Page, site: Cast, live_server: LiveServer) -> Page:
    log_in_as(page, live_server.url, site.users["owner"])
    return page


@pytest.fixture
def year(owner: Page, site: Cast, live_server: LiveServer) -> Page:
    """The page of the datasource ``year``."""
    make_year(site.alpha)
    owner.goto(f"{live_server.url}/datasources/year/")
    return owner


def test_a_year_is_drawn_and_zoomed(year: Page) -> None:
    whole = drawn(year)
    segments = 1 + 2 + 3 + 4 + 5 * (YEAR - 4)
    assert (whole.bars, whole.intervals, whole.segments, whole.rows) == (YEAR, YEAR, segments, segments * 10)
    states = year.get_by_role("list", name="States of the intervals in view").get_by_role("listitem")
    expect(states).to_have_text([f"Manual: {YEAR}"])
    point_at(year, 0.5)
    tip = year.locator(".timeline-tip")
    expect(tip).to_contain_text("2013-0")
    expect(tip).to_contain_text("Rows50")
    year.mouse.wheel(0, -600)
    near = changed(year, whole)
    assert 0 < near.bars < YEAR
    year.get_by_role("button", name="Zoom in").click()
    nearer = changed(year, near)
    year.get_by_role("button", name="Later").click()
    later = changed(year, nearer)
    year.get_by_role("button", name="Zoom out").click()
    wider = changed(year, later)
    assert wider.bars > later.bars
    year.get_by_role("button", name="Whole").click()
    assert changed(year, wider) == whole


def test_the_keyboard_goes_from_bar_to_bar_and_into_one(year: Page) -> None:
    before = drawn(year)
    year.get_by_role("application").focus()
    for _ in range(3):
        year.keyboard.press("ArrowRight")
    expect(year.locator("[data-timeline-announce]")).to_have_text(
        "2013-01-03 – 2013-01-04 UTC: 30 rows, 3 segments, manual"
    )
    year.keyboard.press("+")
    near = changed(year, before)
    year.keyboard.press("0")
    changed(year, near)
    year.keyboard.press("ArrowRight")
    year.keyboard.press("Enter")
    year.wait_for_url("**/segments/?from=2013-01-01*")
    expect(year.locator("tbody tr")).to_have_count(1)


def test_a_click_on_a_bar_shows_its_segments(year: Page) -> None:
    drawn(year)
    year.mouse.click(*point_at(year, 0.5))
    year.wait_for_url("**/segments/?from=2013-0*")
    expect(year.locator("tbody tr")).to_have_count(5)


def test_one_interval_and_none(owner: Page, site: Cast, live_server: LiveServer) -> None:
    one = Datasource.objects.create(name="one", team=site.alpha)
    make_segment(one, DAY, timedelta(days=1), 0, 5).save()
    sum_intervals(one)
    owner.goto(f"{live_server.url}/datasources/one/")
    assert drawn(owner).status == "2013-01-01 – 2013-01-02 UTC: 1 interval, 5 rows, 1 segment, 500 B"
    Datasource.objects.create(name="none", team=site.alpha)
    owner.goto(f"{live_server.url}/datasources/none/")
    expect(owner.get_by_text("Bars appear with the next publish")).to_be_visible()


def test_more_intervals_than_pixels_come_merged_and_finer_when_zoomed(
    owner: Page, site: Cast, live_server: LiveServer
) -> None:
    many = Datasource.objects.create(name="many", team=site.alpha)
    minute, schema = timedelta(minutes=1), SegmentSchema.of(many, [])
    Segment.objects.bulk_create(make_segment(many, DAY + minute * n, minute, 0, 3, schema) for n in range(3600))
    sum_intervals(many)
    owner.goto(f"{live_server.url}/datasources/many/")
    whole = drawn(owner)
    assert whole.bars < 1000
    assert (whole.intervals, whole.rows) == (3600, 10_800)
    owner.get_by_role("button", name="Zoom in").click()
    near = changed(owner, whole)
    assert near.bars == near.intervals
    assert 1750 < near.intervals < 1900
    owner.get_by_role("link", name="As a table").click()
    expect(owner.locator("main")).to_contain_text(f"{near.rows:,} rows. The timeline draws the same data.")
    owner.get_by_role("link", name="Show all intervals", exact=True).click()
    expect(owner.locator("main")).to_contain_text("10,800 rows. Neighbouring intervals are added up")


def test_a_running_task_is_followed_to_its_end(owner: Page, site: Cast, live_server: LiveServer) -> None:
    owner.goto(f"{live_server.url}/tasks/{site.task.pk}/")
    published = owner.locator("[data-counter=published] .figure-value")
    expect(published).to_contain_text("1,500")
    IndexerFence.objects.filter(pk=site.fences[0].pk).update(published=2000, polled=2008)
    expect(published).to_contain_text("2,500")
    expect(owner.locator("#announcer")).to_have_text("The task is RUNNING")
    Task.objects.filter(pk=site.task.pk).update(status=Status.SUCCESS, ended_at=STARTED)
    expect(owner.locator("#task-live[data-status=SUCCESS]")).to_be_visible()


@pytest.mark.parametrize("kept_back", [False, True], ids=["refused", "never answered"])
def test_where_no_stream_comes_through_the_page_asks_by_itself_and_says_how_old_it_is(
    owner: Page, site: Cast, live_server: LiveServer, kept_back: bool
) -> None:
    """What is between may refuse the stream, or take it and never answer."""
    held: list[Route] = []
    if kept_back:
        owner.route("**/-/live/**", lambda route: held.append(route))
    owner.clock.install()
    owner.goto(f"{live_server.url}/tasks/{site.task.pk}/")
    mark = owner.locator("[data-live-mark]")
    expect(mark).to_be_visible()
    owner.clock.fast_forward(11_000)
    expect(mark).to_have_attribute("data-state", "polling")
    owner.clock.fast_forward(60_000)
    IndexerFence.objects.filter(pk=site.fences[0].pk).update(published=2000, polled=2008)
    expect(owner.locator("[data-counter=published] .figure-value")).to_contain_text("2,500")
    expect(mark).to_have_text("Up to date")
    for route in held:
        route.abort()


def test_a_page_whose_session_has_ended_says_so_and_asks_no_more(
    owner: Page, site: Cast, live_server: LiveServer, quiet: Quiet
) -> None:
    quiet.expected += ["401 (Unauthorized)", "Response Status Error Code 401"]  # the browser's words, and htmx's
    address = f"{live_server.url}/tasks/{site.task.pk}/"
    owner.clock.install()
    owner.goto(address)
    other = owner.context.new_page()
    other.goto(address)
    other.locator("form[action='/logout/'] button").first.evaluate("button => button.form.submit()")
    other.wait_for_url("**/login/**")
    owner.clock.fast_forward(5_000)
    notice = owner.locator("#logged-out")
    expect(notice).to_be_visible()
    expect(notice).to_contain_text("You are logged out.")
    expect(owner.locator("#task-live[data-status=RUNNING]")).to_be_visible()  # it stays as it was
    expect(owner.locator("#offline")).to_be_hidden()
    with pytest.raises(PlaywrightTimeout), owner.expect_request(lambda _: True, timeout=1_000):
        owner.clock.fast_forward(10_000)  # polls were four seconds apart
    notice.get_by_role("link", name="Log in").click()
    owner.get_by_label("Username").fill("owner")
    owner.get_by_label("Password").fill(PASSWORD)
    owner.get_by_role("button", name="Log in", exact=True).click()
    owner.wait_for_url(address)


def test_an_action_asks_first_and_the_focus_stays_in_the_question(
    owner: Page, site: Cast, live_server: LiveServer
) -> None:
    owner.goto(f"{live_server.url}/tasks/{site.task.pk}/")
    owner.get_by_role("button", name="Stop now…").click()
    question = owner.get_by_role("dialog")
    expect(question).to_be_visible()
    owner.keyboard.press("Escape")
    expect(question).to_be_hidden()
    expect(owner.get_by_role("button", name="Stop now…")).to_be_focused()
    owner.keyboard.press("Enter")
    question.get_by_role("button", name="Stop now").click()
    expect(owner.get_by_text("The task is stopping.")).to_be_visible()


def test_the_editor_marks_each_fault_and_leads_to_it(owner: Page, live_server: LiveServer, quiet: Quiet) -> None:
    quiet.expected.append("status of 400")  # the browser's own line about the answer
    owner.goto(f"{live_server.url}/tasks/-/new/")
    editor = owner.locator(".cm-content")
    expect(editor).to_contain_text("your_datasource")
    editor.click()
    owner.keyboard.press("Control+a")
    owner.keyboard.insert_text(json.dumps({"type": "index_kafka_share_group", "dataSchema": {"dataSource": "a b"}}))
    owner.get_by_role("button", name="Submit task").click()
    expect(owner.locator("#problem li")).to_have_count(3)
    expect(owner.locator(".cm-lintRange-error").first).to_be_visible()
    owner.locator("#problem").get_by_role("link", name="dataSchema.dataSource").click()
    assert owner.evaluate("document.getSelection().toString()") == '"dataSource"'


def test_the_theme_follows_the_system_until_one_is_chosen(owner: Page, live_server: LiveServer) -> None:
    def theme(name: str) -> None:
        expect(owner.locator("html")).to_have_attribute("data-bs-theme", name)

    owner.goto(f"{live_server.url}/datasources/")
    theme("light")
    owner.emulate_media(color_scheme="dark")
    theme("dark")
    owner.get_by_role("button", name="Theme").click()
    owner.get_by_role("button", name="Light").click()
    theme("light")
    owner.goto(f"{live_server.url}/tasks/")
    theme("light")


def test_times_say_what_the_reader_s_clock_says(owner: Page, site: Cast, live_server: LiveServer) -> None:
    owner.goto(f"{live_server.url}/tasks/{site.task.pk}/")
    started = owner.locator("time[datetime='2025-06-01T12:00:00Z']").first
    expect(started).to_have_text("2025-06-01 12:00:00 UTC")
    assert "21:00:00" in (started.get_attribute("title") or "")


def test_the_first_tab_leads_past_the_navigation(owner: Page, live_server: LiveServer) -> None:
    owner.goto(f"{live_server.url}/datasources/")
    owner.keyboard.press("Tab")
    skip = owner.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    owner.keyboard.press("Enter")
    expect(owner.locator("main")).to_be_focused()


def test_without_scripts_everything_can_be_read_and_done(
    browser: Browser, site: Cast, live_server: LiveServer, quiet: Quiet
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{live_server.url}/login/")
    page.get_by_label("Username").fill("owner")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(f"{live_server.url}/")
    page.goto(f"{live_server.url}/datasources/flights/")
    page.get_by_role("link", name="View intervals as a table.").click()
    expect(page.locator("tbody tr")).to_have_count(3)
    page.goto(f"{live_server.url}/supervisors/flights/")
    page.get_by_role("button", name="Suspend…").click()
    page.get_by_role("button", name="Suspend", exact=True).click()
    expect(page.get_by_text("flights is suspended")).to_be_visible()
    page.goto(f"{live_server.url}/tasks/-/new/")
    expect(page.get_by_label("Spec (JSON)")).to_contain_text("your_datasource")
    context.close()


def test_the_chosen_tab_is_seen_when_the_screen_gets_narrow(owner: Page, live_server: LiveServer) -> None:
    owner.goto(f"{live_server.url}/datasources/flights/retention/")
    tab = owner.locator(".tab-bar .active")
    expect(tab).to_be_in_viewport(ratio=1)
    owner.set_viewport_size({"width": NARROW, "height": 800})
    expect(tab).to_be_in_viewport(ratio=1)
