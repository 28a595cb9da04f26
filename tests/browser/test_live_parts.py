"""A page's live parts are replaced while somebody uses them: what they did to a part stays, and a click counts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.site import Visit

STATE, LOG = "live", "log"  # the last words of the addresses of a task's parts, and of their ids
# What has come is placed so long after: the other part comes meanwhile.
SETTLES_LATE = "htmx.config.defaultSettleDelay = 2000"
ASK_AGAIN = """() => {
    for (const part of document.querySelectorAll("#task-live, #task-log")) part.dataset.old = "";
    document.dispatchEvent(new Event("visibilitychange"));
}"""


class TaskPage:
    """The page of a task that runs, whose two parts are asked for when a test says so."""

    def __init__(self, visit: Visit) -> None:
        visit.become("owner")
        visit.open(f"/tasks/{visit.site.task.pk}/")
        self.page = visit.page
        self.summary = self.page.get_by_text("The other outcomes, all 0", exact=True)
        self.counter = self.page.locator("#sum-zeros .figure").first

    def ask_again(self, held: str) -> Route:
        """What a look at another tab leads to. The request for the part that is held goes on when the test says so."""
        routes: list[Route] = []
        self.page.route(re.compile(rf"/tasks/.+/{held}/(\?|$)"), lambda route: routes.append(route), times=1)
        self.page.evaluate(ASK_AGAIN)
        while not routes:
            self.page.wait_for_timeout(20)
        return routes[0]

    def has_come(self, part: str) -> None:
        expect(self.page.locator(f"#task-{part}[data-old]")).to_have_count(0)


@pytest.fixture
def task_page(visit: Visit) -> TaskPage:
    return TaskPage(visit)


def test_what_is_unfolded_stays_so_while_another_part_comes(task_page: TaskPage) -> None:
    task_page.page.evaluate(SETTLES_LATE)
    task_page.summary.click()
    log = task_page.ask_again(held=LOG)
    task_page.has_come(STATE)
    log.continue_()
    task_page.has_come(LOG)
    expect(task_page.counter).to_be_visible()


def test_a_log_stays_where_its_reader_is_while_another_part_comes(task_page: TaskPage) -> None:
    tail: Locator = task_page.page.locator("#task-log [data-tail]")
    task_page.page.evaluate(SETTLES_LATE)
    tail.evaluate("(tail) => tail.scrollTop = 40")
    state = task_page.ask_again(held=STATE)
    task_page.has_come(LOG)
    state.continue_()
    task_page.has_come(STATE)
    expect(tail).to_have_js_property("scrollTop", 40)


def test_a_click_counts_when_its_part_comes_between_press_and_release(task_page: TaskPage) -> None:
    state = task_page.ask_again(held=STATE)
    task_page.summary.hover()
    task_page.page.mouse.down()
    with task_page.page.expect_event("requestfinished"):
        state.continue_()
    task_page.page.mouse.up()
    task_page.has_come(STATE)  # it is asked for again
    expect(task_page.counter).to_be_visible()
