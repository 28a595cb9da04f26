"""Everything that can be sent or pressed, on which pages it stands, and what comes of it: the table that
``test_every_page`` compares with the pages and ``test_controls`` clicks through.

A control that stands on several pages has the same address on each, which the comparison shows; it is clicked on one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tests.browser import walks, walks_of_data
from tests.browser.crawl import EVERYWHERE, Control
from tests.browser.site import Visit

Walk = Callable[[Visit], None]


@dataclass(frozen=True)
class Row:
    """``walk`` clicks every one of these controls and looks at what came of it. ``places``: by route."""

    places: frozenset[tuple[str, Control]]
    walk: Walk

    def and_on(self, page: str, *controls: tuple[str, str]) -> Row:
        """With controls of the page that the first leads to."""
        return replace(self, places=self.places | {(page, Control(*c)) for c in controls})


def places(rows: Iterable[Row]) -> set[tuple[str, Control]]:
    return {place for row in rows for place in row.places}


def row(pages: str | tuple[str, ...], walk: Walk, *controls: tuple[str, str]) -> Row:
    """Some controls, on each of some pages."""
    on = (pages,) if isinstance(pages, str) else pages
    return Row(frozenset((page, Control(*c)) for page in on for c in controls), walk)


def question(pages: tuple[str, ...], route: str, opener: str, label: str, walk: Walk) -> Row:
    """A button that asks first, and the answer."""
    return row(pages, walk, ("", f"{opener}…"), ("", "Cancel"), (f"POST {route}", label))


DS, SV, TASK = "datasources/<str:name>/", "supervisors/<str:supervisor_id>/", "tasks/<str:task_id>/"
QUARANTINE, RECORD = f"{DS}quarantine/", f"{DS}quarantine/<int:number>/"
ASK, ASK_TASK = f"{SV}confirm/<str:action>/", f"{TASK}confirm/<str:action>/"
CHOOSE = f"POST {DS}quarantine/confirm/"
ANSWER = "POST teams/<str:name>/<str:action>/"
ASKED = f"{DS}quarantine/confirm/"
OF_BOTH = (SV, f"{SV}lag/", f"{SV}spec/")
TABS = (*OF_BOTH, f"{SV}share-group/")

SITE = [
    row("login/", walks.log_in, ("POST login/", "Log in")),
    row(EVERYWHERE, walks.choose_a_theme, ("", "Theme"), ("", "As the system"), ("", "Light"), ("", "Dark")),
    row(EVERYWHERE, walks.open_the_navigation, ("", "Show the navigation")),
    row(EVERYWHERE, walks.log_out, ("", "owner"), ("POST logout/", "Log out")),
    row("audit/", walks.filter_the_audit_trail, ("GET audit/", "Filter")),
    row("teams/", walks.accept_an_invitation, (ANSWER, "Accept the invitation of beta")),
    row("teams/", walks.decline_an_invitation, (ANSWER, "Decline the invitation of beta")),
    row("teams/", walks.leave_a_team, (ANSWER, "Leave team alpha")),
    row("records/", walks.find_a_record, ("GET records/", "Find")),
    row("tasks/", walks.filter_tasks, ("GET tasks/", "Filter")),
    row("supervisors/", walks.filter_supervisors, ("GET supervisors/", "Filter")),
    row("datasources/", walks.search_datasources, ("GET datasources/", "Search")),
]
SUPERVISORS = [
    question(TABS, f"{SV}suspend/", "Suspend", "Suspend", walks.suspend),
    question(OF_BOTH, f"{SV}resume/", "Resume", "Resume", walks.resume),
    question(TABS, f"{SV}handoff/", "Hand off", "Hand off", walks.hand_off),
    question(TABS, f"{SV}scale/", "Scale", "Scale", walks.scale),
    question(OF_BOTH, f"{SV}reset/", "Reset offsets", "Reset offsets", walks.reset),
    question(TABS, f"{SV}terminate/", "Terminate", "Terminate", walks.terminate),
    row(ASK, walks.answer_on_a_page("handoff", "Hand off", walks.was_handed_off), (f"POST {SV}handoff/", "Hand off")),
    row(ASK, walks.answer_on_a_page("suspend", "Suspend", walks.is_suspended), (f"POST {SV}suspend/", "Suspend")),
    row(ASK, walks.answer_on_a_page("resume", "Resume", walks.is_resumed), (f"POST {SV}resume/", "Resume")),
    row(ASK, walks.scale_on_a_page, (f"POST {SV}scale/", "Scale")),
    row(ASK, walks.answer_on_a_page("reset", "Reset offsets", walks.is_reset), (f"POST {SV}reset/", "Reset offsets")),
    row(ASK, walks.think_better_of_it, ("", "Cancel")),
    row(
        ASK,
        walks.answer_on_a_page("terminate", "Terminate", walks.is_terminated),
        (f"POST {SV}terminate/", "Terminate"),
    ),
    row(SV, walks.look_further_back, ("", "How far back")),
    row(f"{SV}lag/", walks.show_another_window, (f"GET {SV}lag/", "Show")),
    row(f"{SV}spec/", walks.copy_the_version, ("", "Copy")),
]
TASKS = [
    question((TASK,), f"{TASK}finish/", "Finish", "Finish", walks.finish),
    question((TASK,), f"{TASK}stop/", "Stop now", "Stop now", walks.stop),
    row(ASK_TASK, walks.finish_on_a_page, (f"POST {TASK}finish/", "Finish"), ("", "Cancel")),
    row(ASK_TASK, walks.stop_on_a_page, (f"POST {TASK}stop/", "Stop now")),
    row(TASK, walks.copy_log_and_spec, ("", "Copy")),
]
SPECS = [
    row("tasks/-/new/", walks.submit_a_task, ("POST tasks/-/new/", "Submit task")),
    row("tasks/-/new/", walks.check_a_task, ("POST tasks/-/new/", "Check only")),
    row("tasks/-/new/", walks.preview("tasks"), ("POST tasks/-/new/", "Preview")),
    row("supervisors/-/new/", walks.submit_a_supervisor, ("POST supervisors/-/new/", "Submit supervisor")),
    row("supervisors/-/new/", walks.check_a_supervisor, ("POST supervisors/-/new/", "Check only")),
    row("supervisors/-/new/", walks.preview("supervisors"), ("POST supervisors/-/new/", "Preview")),
]
DATA = [
    row(
        DS,
        walks_of_data.move_the_timeline,
        *(("", label) for label in ("Earlier", "Zoom in", "Zoom out", "Later", "Whole", "Height of a bar")),
    ),
    row(QUARANTINE, walks_of_data.filter_the_quarantine, (f"GET {QUARANTINE}", "Filter")),
    row(QUARANTINE, walks_of_data.ingest_ticked, (CHOOSE, "Ingest…")).and_on(
        ASKED, (f"POST {QUARANTINE}replay/", "Ingest")
    ),
    row(QUARANTINE, walks_of_data.produce_all_that_match, (CHOOSE, "Produce again…")).and_on(
        ASKED, (f"POST {QUARANTINE}replay/", "Produce again")
    ),
    row(QUARANTINE, walks_of_data.purge_ticked, (CHOOSE, "Purge…")).and_on(
        ASKED, (f"POST {QUARANTINE}purge/", "Purge")
    ),
    row(RECORD, walks_of_data.ingest_one, (CHOOSE, "Ingest…")),
    row(RECORD, walks_of_data.produce_one, (CHOOSE, "Produce again…")),
    row(RECORD, walks_of_data.purge_one, (CHOOSE, "Purge…")),
]
# What a page has only when a broker answers; ``test_controls`` does so with a real one.
WITH_A_BROKER = [
    row(f"{SV}share-group/", walks.apply_the_spec, (f"POST {SV}share-group/apply/", "Apply the spec")),
]
GROUPS = {"site": SITE, "supervisors": SUPERVISORS, "tasks": TASKS, "specs": SPECS, "data": DATA}
