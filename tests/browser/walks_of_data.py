"""Each form and button of a datasource's pages, clicked through to what comes of it: the timeline, the quarantine."""

from __future__ import annotations

from playwright.sync_api import expect

from controlplane.segments.models import QuarantinedRecord
from controlplane.tasks.models import Task
from tests.browser.site import Visit
from tests.browser.timeline import drawn

State = QuarantinedRecord.State
QUARANTINE = "/datasources/flights/quarantine/"


def move_the_timeline(visit: Visit) -> None:
    visit.open("/datasources/year/")
    whole = drawn(visit.page)
    for label in ("Zoom in", "Zoom in", "Later", "Earlier", "Zoom out", "Whole"):
        before = visit.page.locator("[data-timeline-status]").inner_text()
        visit.press(label)
        expect(visit.page.locator("[data-timeline-status]")).not_to_have_text(before)
    assert drawn(visit.page) == whole
    visit.page.get_by_label("Height of a bar").select_option("Bytes")
    assert drawn(visit.page) == whole


def _kept_again() -> None:
    QuarantinedRecord.objects.update(state=State.KEPT, replay_id="")


def filter_the_quarantine(visit: Visit) -> None:
    visit.open(QUARANTINE)
    visit.page.get_by_label("Partition", exact=True).fill("9")
    visit.press("Filter")
    expect(visit.page.get_by_text("No record is like that.")).to_be_visible()


def _tick(visit: Visit, *offsets: int) -> None:
    _kept_again()
    visit.open(QUARANTINE)
    for offset in offsets:
        visit.page.get_by_label(f"Choose partition 0, offset {offset}", exact=True).check()


def _is_replayed(visit: Visit, mode: str, records: int) -> None:
    """A task of this mode holds so many, and its page is open."""
    visit.page.wait_for_url("**/tasks/replay_*/")
    task = Task.objects.get(pk=visit.page.url.rstrip("/").rsplit("/", 1)[1])
    assert (task.kind, task.replay_mode) == (Task.Kind.REPLAY, mode)
    held = visit.site.quarantined(state=State.REPLAYING)
    assert [record.replay_id for record in held] == [task.pk] * records


def ingest_ticked(visit: Visit) -> None:
    _tick(visit, 529, 528)
    visit.press("Ingest…")
    expect(visit.page.get_by_role("heading", name="Ingest 2 records with the present spec?")).to_be_visible()
    visit.press("Ingest")
    _is_replayed(visit, "ingest", 2)


def produce_all_that_match(visit: Visit) -> None:
    _kept_again()
    visit.open(f"{QUARANTINE}?reason=unparseable")
    there = QuarantinedRecord.objects.count()
    visit.page.get_by_label(f"all {there} that match the filter").check()
    visit.press("Produce again…")
    visit.press("Produce again")
    _is_replayed(visit, "produce", there)


def purge_ticked(visit: Visit) -> None:
    _tick(visit, 527)
    visit.press("Purge…")
    visit.press("Purge")
    visit.told("1 record deleted.")
    assert not QuarantinedRecord.objects.filter(offset=527).exists()


def _open_one(visit: Visit, offset: int) -> None:
    _kept_again()
    visit.open(f"{QUARANTINE}{QuarantinedRecord.objects.get(offset=offset).pk}/")


def ingest_one(visit: Visit) -> None:
    _open_one(visit, 526)
    visit.press("Ingest…")
    visit.press("Ingest")
    _is_replayed(visit, "ingest", 1)


def produce_one(visit: Visit) -> None:
    _open_one(visit, 526)
    visit.press("Produce again…")
    visit.press("Produce again")
    _is_replayed(visit, "produce", 1)


def purge_one(visit: Visit) -> None:
    _open_one(visit, 525)
    visit.press("Purge…")
    visit.press("Purge")
    visit.told("1 record deleted.")
    assert not QuarantinedRecord.objects.filter(offset=525).exists()
