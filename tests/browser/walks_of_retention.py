"""Each form and button of retention, clicked through to what comes of it: rules, segments, a whole datasource."""

from __future__ import annotations

from playwright.sync_api import expect

from controlplane.compaction.models import Configured
from controlplane.datasources.models import Datasource
from controlplane.retention.models import RuleChange, RuleSet
from controlplane.segments.models import Segment
from controlplane.teams.models import AuditEntry
from tests.browser.site import STORED, Visit, removed_segment

RULES = "/datasources/flights/retention/rules/"
MARK = f"/datasources/{STORED}/retention/mark/"


def _form(visit: Visit) -> None:
    """Opened at a datasource's retention, with two rules that are not saved yet."""
    RuleSet.objects.filter(datasource=visit.site.cast.datasource).delete()
    visit.open("/datasources/flights/retention/")
    visit.page.get_by_role("link", name="Change rules").click()
    for number, (kind, of) in enumerate((("loadByPeriod", "P1M"), ("dropByInterval", "2013-01-01/P1D")), 1):
        visit.press("Add a rule")
        visit.page.get_by_label(f"Rule {number}", exact=True).select_option(kind)
        visit.page.get_by_label(f"Period or interval of rule {number}").fill(of)


def set_rules(visit: Visit) -> None:
    """Looked at, changed again, looked at again, and saved."""
    _form(visit)
    second = visit.page.get_by_label("Period or interval of rule 2")
    visit.press("Preview")
    expect(visit.page.locator("[data-preview]")).to_contain_text("2 segments of 1 interval unused: 900 rows")
    second.fill("2013-01-02/P1D")
    visit.press("Save the rules")
    expect(visit.page.locator("[data-preview]")).to_contain_text("Check this preview")
    expect(visit.page.locator("[data-preview]")).to_contain_text("1 segment of 1 interval unused: 300 rows")
    assert not RuleSet.objects.filter(datasource=visit.site.cast.datasource).exists()
    visit.page.get_by_label("Comment for the history").fill("a month")
    visit.press("Save the rules")
    visit.told("The rules of flights are saved")
    stored = RuleSet.objects.get(datasource=visit.site.cast.datasource)
    assert [rule["type"] for rule in stored.rules] == ["loadByPeriod", "dropByInterval"]
    assert RuleChange.objects.filter(datasource=visit.site.cast.datasource)[0].comment == "a month"
    stored.delete()


def move_rules(visit: Visit) -> None:
    _form(visit)
    first = visit.page.get_by_label("Rule 1", exact=True)
    expect(first).to_have_value("loadByPeriod")
    for label in ("Move rule 1 down", "Move rule 2 up"):
        before = first.input_value()
        visit.press(label)
        expect(first).not_to_have_value(before)
    for label in ("Remove rule 2", "Remove rule 1"):
        visit.press(label)
    expect(visit.page.get_by_text("No rules of its own.")).to_be_visible()
    assert not RuleSet.objects.filter(datasource=visit.site.cast.datasource).exists()


def set_the_sites_rules(visit: Visit) -> None:
    visit.become("superuser")
    visit.open("/retention/")
    visit.press("Add a rule")
    of = visit.page.get_by_label("Period or interval of rule 2")
    visit.page.get_by_label("Rule 2", exact=True).select_option("dropByInterval")
    expect(of).to_be_visible()
    visit.page.get_by_label("Rule 2", exact=True).select_option("dropForever")
    expect(of).to_be_hidden()
    for label in ("Move rule 1 down", "Move rule 2 up"):
        visit.press(label)
    visit.press("Remove rule 1")
    visit.press("Add a rule")
    visit.press("Remove rule 2")
    visit.press("Preview")
    expect(visit.page.get_by_role("region", name="Segments to mark unused, by datasource")).to_contain_text("flights")
    visit.press("Save the rules")
    visit.told("The site's rules are saved")
    [stored] = RuleSet.objects.filter(datasource=None)
    assert stored.rules == [{"type": "dropForever"}]
    stored.delete()


def _preview(visit: Visit, step: str, scope: str) -> None:
    visit.open(MARK)
    visit.page.get_by_label("Action", exact=True).select_option(step)
    visit.page.get_by_label("Segments", exact=True).select_option(scope)
    if scope == "interval":
        visit.page.get_by_label("Interval (UTC)").fill("2013-01-01/P1D")
    visit.press("Preview")
    expect(visit.page.locator("[data-preview]")).to_contain_text("of 1 interval: 10 rows")


def use_again_and_take_out(visit: Visit) -> None:
    segment = removed_segment(visit.site.cast)
    _preview(visit, "mark_used", "interval")
    visit.press("Mark used")
    visit.told("1 segment (10 rows) is in use again.")
    assert Segment.objects.get(pk=segment.pk).used
    _preview(visit, "mark_unused", "everything")
    visit.press("Mark unused")
    visit.told("1 segment (10 rows) is unused now.")
    assert not Segment.objects.get(pk=segment.pk).used


def delete_segments_for_good(visit: Visit) -> None:
    segment = removed_segment(visit.site.cast)
    _preview(visit, "kill", "everything")
    visit.press("Delete for good")
    visit.told("1 segment (10 rows) is deleted for good")
    assert Segment.objects.get(pk=segment.pk).kill_began_at is not None
    removed_segment(visit.site.cast)


def filter_merges(visit: Visit) -> None:
    visit.open("/datasources/flights/compaction/")
    merges = visit.page.locator("[data-merge]")
    expect(merges).to_have_count(2)
    visit.page.get_by_role("combobox", name="State").select_option("failed")
    visit.press("Filter")
    expect(merges).to_have_count(1)
    expect(merges).to_contain_text("no memory")
    visit.page.get_by_role("link", name="Clear").click()
    expect(merges).to_have_count(2)


def try_compaction(visit: Visit) -> None:
    """Settings that are no good are said so; what is tried changes nothing until it is applied."""
    Configured.objects.all().delete()
    visit.open("/datasources/flights/compaction/")
    visit.page.get_by_label("Rows per segment").fill("600")
    skip = visit.page.get_by_label("Skip newest")
    skip.fill("a day")
    visit.press("Simulate")
    expect(visit.page.get_by_text("must be an ISO 8601 duration")).to_be_visible()
    skip.fill("P1D")
    visit.press("Simulate")
    expect(visit.page.locator("table[data-simulated]")).to_contain_text("Skipped by skipOffsetFromLatest")
    assert not Configured.objects.exists()
    visit.press("Apply these settings")
    visit.told("Compaction of flights is on with these settings.")
    stored = Configured.objects.get(datasource=visit.site.cast.datasource)
    assert (stored.document["maxRowsPerSegment"], stored.document["skipOffsetFromLatest"]) == (600, "P1D")
    stored.delete()


def delete_a_datasource(visit: Visit) -> None:
    """While a supervisor reads into it, there is no form."""
    visit.open("/datasources/flights/delete/")
    expect(visit.page.get_by_text("These still write to the datasource")).to_be_visible()
    expect(visit.button("Delete datasource")).to_have_count(0)
    visit.open("/datasources/year/")
    visit.page.get_by_role("link", name="Delete…").click()
    visit.page.get_by_label("Type its name").fill("year")
    visit.press("Delete datasource")
    visit.told("The datasource year is deleted")
    expect(visit.page.get_by_role("link", name="year", exact=True)).to_have_count(0)
    assert not Segment.objects.filter(datasource__name="year", used=True).exists()
    assert AuditEntry.objects.filter(action="delete", target="datasource", target_id="year").exists()
    visit.open("/datasources/year/")
    expect(visit.page.locator("[data-deleted]")).to_contain_text("owner deleted this datasource")
    Datasource.objects.filter(name="year").update(deleted_at=None)
