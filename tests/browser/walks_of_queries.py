"""Each form and button of the query page, clicked through to what comes of it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from controlplane.query.models import PastQuery, SavedQuery
from tests.browser.control_rows import question, row
from tests.browser.crawl import EVERYWHERE
from tests.browser.site import Visit

DAYS = "SELECT TIMESTAMP '2026-01-01' + INTERVAL (range) DAY AS day, range AS n FROM range(150)"
FOREVER = "SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c WHERE a.range + b.range = c.range"


def write(visit: Visit, statement: str) -> None:
    visit.page.locator(".cm-content").click()
    visit.page.keyboard.press("Control+a")
    visit.page.keyboard.insert_text(statement)


def result_is(visit: Visit, text: str) -> None:
    expect(visit.page.locator("[data-query-status]")).to_contain_text(text)


def ask(visit: Visit) -> None:
    """The result is a table, a chart and a file; Explain shows which files a query reads."""
    visit.open("/query/")
    write(visit, DAYS)
    visit.press("Run")
    result_is(visit, "150 rows in ")
    table = visit.page.locator("[data-query-table]")
    expect(table.locator("tbody tr")).to_have_count(100)
    visit.press("Next")
    expect(table).to_contain_text("Rows 101 to 150 of 150")
    visit.press("Chart")
    text = visit.page.locator("#query-chart-text")
    expect(text).to_contain_text("Lines across day: 150 points from 2026-01-01T00:00:00.000Z to 2026-05-30")
    expect(visit.page.locator("[data-query-canvas] canvas")).to_be_visible()
    visit.page.get_by_label("Across", exact=True).select_option("n")
    visit.page.get_by_label("Values", exact=True).select_option("n")
    expect(text).to_contain_text("A chart needs a column of numbers")
    visit.press("Table")
    expect(table).to_be_visible()
    with visit.page.expect_download() as download:
        visit.press("Download")
    assert Path(download.value.path()).read_text().startswith("day,n\n2026-01-01")
    visit.press("Explain")
    result_is(visit, "Explained in ")
    expect(visit.page.get_by_role("table", name="Files that are read")).to_be_visible()


def cancel(visit: Visit) -> None:
    visit.open("/query/")
    write(visit, FOREVER)
    visit.press("Run")
    visit.press("Cancel query")
    expect(visit.page.get_by_role("alert")).to_contain_text("The query was cancelled.")
    expect(visit.button("Run")).to_be_enabled()
    visit.page.get_by_role("link", name="History").click()
    expect(visit.page.locator("[data-past=cancelled]")).to_have_count(1)
    assert PastQuery.objects.get(statement=FOREVER).state == "cancelled"


def copy_the_link(visit: Visit) -> None:
    """Who opens it has the statement, and nothing has run."""
    visit.open("/query/")
    write(visit, DAYS)
    visit.press("Copy link")
    expect(visit.button("Copied")).to_be_visible()
    ran = PastQuery.objects.count()
    visit.page.goto(visit.page.evaluate("navigator.clipboard.readText()"))
    expect(visit.page.locator(".cm-content")).to_contain_text("INTERVAL (range) DAY")
    assert PastQuery.objects.count() == ran


def save_find_and_change(visit: Visit) -> None:
    SavedQuery.objects.all().delete()
    visit.open("/query/")
    write(visit, DAYS)
    visit.press("Save…")
    visit.page.get_by_label("Name", exact=True).fill("Days")
    visit.page.get_by_label("Shared with").select_option("alpha")
    visit.press("Save")
    visit.told("The query Days is saved.")
    visit.page.get_by_role("link", name="Change saved query").click()
    visit.page.get_by_label("Name", exact=True).fill("All days")
    visit.press("Save")
    visit.told("The query All days is saved.")
    [stored] = SavedQuery.objects.all()
    assert (stored.name, stored.statement, str(stored.team)) == ("All days", DAYS, "alpha")
    visit.open("/query/saved/")
    visit.page.get_by_label("Name or description contains").fill("nothing")
    visit.press("Filter")
    expect(visit.page.locator("main")).to_contain_text("No saved queries match these filters.")


def _stored(visit: Visit) -> SavedQuery:
    wanted = {"owner": visit.site.cast.users["owner"], "team": None, "name": "Days", "statement": DAYS}
    return SavedQuery.objects.filter(**wanted).first() or SavedQuery.objects.create(**wanted)


def delete(visit: Visit) -> None:
    stored = _stored(visit)
    visit.open(f"/query/saved/{stored.pk}/")
    visit.answer("Delete", "Delete")
    visit.told("The query is deleted.")
    assert not SavedQuery.objects.filter(pk=stored.pk).exists()


def delete_on_a_page(visit: Visit) -> None:
    stored = _stored(visit)
    for label in ("Cancel", "Delete"):
        visit.open(f"/query/saved/{stored.pk}/delete/")
        visit.press(label)
        visit.page.wait_for_url("**/query/saved/")
    assert not SavedQuery.objects.filter(pk=stored.pk).exists()


EDITOR, NEW, ONE = "query/", "query/saved/-/new/", "query/saved/<int:number>/"
SAVE = f"POST {NEW}"
QUERIES = [
    row(
        EDITOR,
        ask,
        *((SAVE, label) for label in ("Run", "Explain", "Download")),
        *(("", label) for label in ("Table", "Chart", "Across", "Values")),
    ),
    row(EDITOR, cancel, (SAVE, "Cancel query")),
    row(EVERYWHERE, copy_the_link, (SAVE, "Copy link")),
    row(EDITOR, save_find_and_change, (SAVE, "Save…"))
    .and_on(NEW, (SAVE, "Save"))
    .and_on(ONE, (f"POST {ONE}", "Save"))
    .and_on("query/saved/", ("GET query/saved/", "Filter")),
    question((ONE,), f"{ONE}delete/", "Delete", "Delete", delete),
    row(f"{ONE}delete/", delete_on_a_page, (f"POST {ONE}delete/", "Delete"), ("", "Cancel")),
]
