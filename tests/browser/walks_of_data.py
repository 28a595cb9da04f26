"""Each form and button of a datasource's pages, clicked through to what comes of it: the timeline, the quarantine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import expect

from controlplane.datasources.models import MaskedColumn
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.tasks.models import Task
from tests.browser.site import Visit
from tests.browser.timeline import drawn
from tests.support.file_replays import a_record_of_a_file
from tests.support.sql import june_here

State = QuarantinedRecord.State
QUARANTINE = "/datasources/flights/quarantine/"


def move_the_timeline(visit: Visit) -> None:
    visit.open("/datasources/year/")
    whole = drawn(visit.page)
    for label in ("Zoom in", "Zoom in", "Later", "Earlier", "Zoom out", "Last week", "Last day", "Whole"):
        before = visit.page.locator("[data-timeline-status]").inner_text()
        visit.press(label)
        expect(visit.page.locator("[data-timeline-status]")).not_to_have_text(before)
    assert drawn(visit.page) == whole
    visit.page.get_by_label("Height of a bar").select_option("Bytes")
    assert drawn(visit.page) == whole


def switch_layers(visit: Visit) -> None:
    """On the drawing, where what is on stands in the address and is said in words; and as a table."""
    visit.open("/datasources/stored/")
    expect(visit.page.locator("[data-timeline-layers]")).to_have_text("")
    visit.open("/datasources/year/")
    drawn(visit.page)
    for label in ("Unused", "Late", "Small segments"):
        visit.page.get_by_label(label, exact=True).check()
    said = visit.page.locator("[data-timeline-layers]")
    expect(said).to_contain_text("Late: 1,815 segments of 365 intervals")
    expect(said).to_contain_text("Unused: none in view")
    expect(said).to_contain_text("bars coloured; a stronger colour means more segments")
    expect(visit.page).to_have_url(re.compile(r"layers=small%2Cunused%2Clate"))
    visit.page.reload()
    expect(said).to_contain_text("Late: 1,815 segments")
    expect(visit.page.locator("[data-timeline]")).to_have_attribute("data-layers", "small unused late")
    visit.page.get_by_label("Late", exact=True).uncheck()
    expect(said).not_to_contain_text("Late")
    visit.page.get_by_label("Unused", exact=True).check()
    visit.page.get_by_role("link", name="As a table").click()
    expect(visit.page.locator("#layer-unused")).to_be_checked()
    visit.page.locator("#layer-late").check()
    visit.press("Show layers")
    expect(visit.page.get_by_role("columnheader", name="Late")).to_be_visible()
    assert "layers=late" in visit.page.url


def find_a_column(visit: Visit) -> None:
    visit.open("/datasources/flights/columns/")
    visit.page.get_by_label("Name contains").fill("CARR")
    visit.press("Filter")
    rows = visit.page.locator("[data-table=columns] tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("carrier")
    visit.page.get_by_role("link", name="Clear").click()
    expect(rows).to_have_count(3)


def profile_a_column(visit: Visit) -> None:
    with TemporaryDirectory() as place:
        june = june_here(visit.site.cast.alpha, Path(place))
    visit.open("/datasources/june/columns/profile/?column=name")
    found = visit.page.locator("#column-profile")
    expect(found).to_contain_text("Rows from 2025-06-01 to 2025-06-03 12:01 (UTC), read from 3 files.")
    visit.page.get_by_label("From (UTC)").fill("2025-06-03T00:00")
    visit.press("Profile column")
    expect(found).to_contain_text("Rows from 2025-06-03 to 2025-06-03 12:01 (UTC), read from 1 file.")
    expect(found.locator("tbody th")).to_have_text(["name-4", "name-5"])
    visit.page.get_by_role("link", name="Use the newest rows").click()
    expect(found.locator("tbody th")).to_have_count(6)
    june.delete()


def mask_a_column(visit: Visit) -> None:
    visit.open("/datasources/flights/columns/")
    masks = MaskedColumn.objects.filter(datasource__name="flights")
    visit.page.get_by_label("Column that does not exist yet").fill("email")
    visit.press("Mask these columns")
    visit.told("1 column is masked now.")
    assert [(mask.column, mask.role) for mask in masks] == [("email", "admin")]
    visit.page.get_by_label("email", exact=False).first.select_option("")
    visit.press("Mask these columns")
    visit.told("No column is masked now.")
    assert not masks.all().exists()


def _kept_again() -> None:
    QuarantinedRecord.objects.update(state=State.KEPT, replay_id="")


def filter_segments(visit: Visit) -> None:
    visit.open("/datasources/flights/segments/")
    visit.page.get_by_label("From (UTC)").fill("2031-01-01T00:00")
    visit.press("Filter")
    expect(visit.page.get_by_text("No segments in this time.")).to_be_visible()
    visit.page.get_by_role("link", name="Clear").click()
    expect(visit.page.locator("tbody tr").first).to_be_visible()


def filter_events(visit: Visit) -> None:
    visit.open("/datasources/flights/events/")
    rows = visit.page.locator("tr[data-event]")
    expect(rows.first).to_be_visible()
    visit.page.get_by_role("combobox", name="What", exact=True).select_option("quota")
    visit.press("Filter")
    expect(visit.page.get_by_text("No events match these filters.")).to_be_visible()
    visit.page.get_by_role("link", name="Clear").click()
    expect(rows.first).to_be_visible()


def filter_the_quarantine(visit: Visit) -> None:
    visit.open(QUARANTINE)
    visit.page.get_by_label("Partition", exact=True).fill("9")
    visit.press("Filter")
    expect(visit.page.get_by_text("No records match these filters.")).to_be_visible()


def find_a_cause(visit: Visit) -> None:
    """From all causes to the records of one of them."""
    _kept_again()
    visit.open("/quarantine/")
    visit.page.get_by_role("searchbox", name="Datasource").fill("nowhere")
    visit.press("Filter")
    expect(visit.page.get_by_text("No causes match these filters.")).to_be_visible()
    visit.page.get_by_role("searchbox", name="Datasource").fill("flights")
    visit.press("Filter")
    cause = visit.page.locator("tr[data-cause]").last
    fingerprint = str(cause.get_attribute("data-cause"))
    cause.get_by_role("link").first.click()
    visit.page.wait_for_url(f"**{QUARANTINE}?cause={fingerprint}")
    records = len(visit.site.quarantined(cause=fingerprint))
    expect(visit.page.locator(f'[data-matching="{records}"]')).to_be_visible()


def _open_a_fix(visit: Visit) -> str:
    """A cause whose records lack the time that the spec asks for, from its records to the spec; its fingerprint."""
    _kept_again()
    cause = visit.site.cast.quarantined.cause
    QuarantinedRecord.objects.filter(cause=cause).update(payload=b'{"at": "2025-01-01T00:00:00Z"}')
    visit.open(f"{QUARANTINE}?cause={cause}")
    visit.page.get_by_role("link", name="Fix the spec for these records").click()
    visit.page.wait_for_url("**/quarantine/fix/?cause=*")
    return cause


def _with_time_in(visit: Visit, column: str) -> None:
    """The spec in the editor names another time column."""
    field = visit.page.locator("[name=document]")
    spec = json.loads(field.input_value())
    spec["spec"]["dataSchema"]["timestampSpec"]["column"] = column
    editor = visit.page.locator(".cm-content")
    editor.click()
    visit.page.keyboard.press("ControlOrMeta+a")
    visit.page.keyboard.insert_text(json.dumps(spec))


def try_a_spec(visit: Visit) -> None:
    cause = _open_a_fix(visit)
    records = len(visit.site.quarantined(cause=cause))
    visit.press("Try")
    expect(visit.page.locator(f'[data-tried="{records}"][data-passing="0"]')).to_be_visible()
    _with_time_in(visit, "at")
    visit.press("Try")
    expect(visit.page.locator(f'[data-tried="{records}"][data-passing="{records}"]')).to_be_visible()


def submit_a_fix(visit: Visit) -> None:
    cause = _open_a_fix(visit)
    records = len(visit.site.quarantined(cause=cause))
    before = visit.site.supervisor().version
    visit.press("Submit this spec and replay all of this cause…")
    expect(visit.page.locator('[data-passing="0"]')).to_be_visible()
    visit.press("Edit spec")
    _with_time_in(visit, "at")
    visit.press("Submit this spec and replay all of this cause…")
    expect(visit.page.locator(f'[data-passing="{records}"]')).to_be_visible()
    visit.press("Submit and replay")
    visit.page.wait_for_url("**/tasks/replay_*/")
    assert visit.site.supervisor().version == before + 1
    held = visit.site.quarantined(state=State.REPLAYING)
    assert [record.cause for record in held] == [cause] * records


def replay_files_with_a_fix(visit: Visit) -> None:
    """Records of files stand beside the spec of the batch task that has read them; no supervisor is changed."""
    record = a_record_of_a_file(visit.site.cast)
    before = visit.site.supervisor().version
    visit.open(f"{QUARANTINE}?cause={record.cause}")
    visit.page.get_by_role("link", name="Fix the spec for these records").click()
    visit.page.wait_for_url("**/quarantine/fix/?cause=*task=*")
    _with_time_in(visit, "at")
    visit.press("Replay all of this cause with this spec…")
    expect(visit.page.locator('[data-tried="1"][data-passing="1"]')).to_be_visible()
    visit.press("Replay")
    visit.page.wait_for_url("**/tasks/replay_*/")
    record.refresh_from_db()
    assert (record.state, visit.page.url.rstrip("/").rsplit("/", 1)[1]) == (State.REPLAYING, record.replay_id)
    assert visit.site.supervisor().version == before
    record.delete()  # others count what there is


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
    expect(visit.page.get_by_role("heading", name="Ingest 2 records with the current spec?")).to_be_visible()
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
