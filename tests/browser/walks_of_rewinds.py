"""Each form and button of a supervisor's rewinds, clicked through to what comes of it."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import expect

from controlplane.publishing.models import ProgressKey, Rewind, RewindPart
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.sources.models import Source
from tests.browser.site import STORED, Site, Visit
from tests.support.django_cast import STARTED, make_receipt

PAGE = f"/supervisors/{STORED}/rewinds/"
_ROUTE = "POST supervisors/<str:supervisor_id>/rewinds/"
QUESTIONS = ((_ROUTE, "Cancel rewind"), (_ROUTE, "Undo rewind"))
PREVIEWED = ((_ROUTE, "Dry run"), (_ROUTE, "Begin rewind"), ("", "Cancel"))
State = RewindPart.State


def a_rewind(site: Site) -> Rewind:
    """One part of it is done, and one waits."""
    source, now = Source.objects.get(group=STORED), timezone.now()
    rewind = Rewind.objects.create(
        datasource=source.datasource,
        source=source,
        spec={},
        supervisor_id=STORED,
        spec_version=1,
        choice={"spec_version": 1},
        by=str(site.cast.users["owner"]),
        created_at=now,
    )
    done = {"state": State.DONE, "ended_at": now, "publish_ids": [uuid.uuid4()], "rows_before": 5, "rows_after": 4}
    rewind.parts.create(number=0, taken=[], ranges=[[0, 0, 5]], **done)
    rewind.parts.create(number=1, taken=[], ranges=[[0, 5, 9]])
    return rewind


def a_wide_dry_run(site: Site) -> Rewind:
    """It would change 150 columns, of all kinds, and more than are named; one has a name without spaces."""
    rewind = a_rewind(site)
    Rewind.objects.filter(pk=rewind.pk).update(dry_run=True)
    kinds = (("long", "double", -(2.0**70)), (None, "string", None), ("array<struct<a: long>>", None, None))
    columns = [
        {
            "name": f"column_{number:03}" if number else "a_" * 60,
            "type_before": before,
            "values_before": number * 10**9,
            "sum_before": number * 10**15 if before == "long" else None,
            "type_after": after,
            "values_after": number,
            "sum_after": total,
        }
        for number in range(150)
        for before, after, total in [kinds[number % 3]]
    ]
    rewind.parts.filter(number=0).update(
        state=State.READ,
        changes={"columns": columns, "more": 7},
        interval_start=STARTED,
        interval_end=STARTED + timedelta(hours=1),
    )
    return rewind


def cancel_and_undo(visit: Visit) -> None:
    """Each asks first, and a question can be left."""
    rewind = a_rewind(visit.site)
    visit.open(PAGE)
    visit.page.get_by_role("link", name=f"Cancel rewind {rewind.pk}").click()
    visit.page.get_by_role("link", name="Back", exact=True).click()
    assert rewind.parts.filter(state=State.WAITING).exists()
    visit.page.get_by_role("link", name=f"Cancel rewind {rewind.pk}").click()
    visit.press("Cancel rewind")
    visit.told("Its waiting parts are cancelled.")
    visit.page.get_by_role("link", name=f"Undo rewind {rewind.pk}").click()
    visit.press("Undo rewind")
    visit.told("The old segments are in use again.")
    assert list(rewind.parts.values_list("state", flat=True)) == [State.UNDONE, State.CANCELLED]
    rewind.delete()


def preview_a_rewind(visit: Visit) -> None:
    """Where no Kafka answers: the page says so, and keeps what was written."""
    visit.open(PAGE)
    field = visit.page.get_by_role("textbox", name="Records at these offsets")
    field.fill("0: 1-5")
    visit.press("Preview rewind")
    expect(visit.page.get_by_role("alert")).to_contain_text("Kafka did not answer")
    expect(field).to_have_value("0: 1-5")
    assert not Rewind.objects.filter(supervisor_id=STORED).exists()


def try_and_begin(visit: Visit) -> None:
    """With a broker, which has these offsets: they were thrown away."""
    make_receipt_partitions()
    key = ProgressKey.objects.get(source__group=STORED)
    since = timezone.now() - STARTED - timedelta(minutes=1)
    make_receipt(visit.site.cast.task, key, (0, 5), {"thrown_away": [[0, 5]]}, [], after=since)
    for button, said in (("Dry run", "A dry run begins."), ("Begin rewind", "A rewind begins.")):
        visit.open(PAGE)
        visit.page.get_by_role("textbox", name="Records at these offsets").fill("0: 0-5")
        visit.press("Preview rewind")
        expect(visit.page.locator("[data-plan]")).to_contain_text("reads 5 records again")
        visit.press(button)
        visit.told(said)
        rewind = Rewind.objects.filter(supervisor_id=STORED).latest("pk")
        assert (rewind.dry_run, [part.ranges for part in rewind.parts.all()]) == (button == "Dry run", [[[0, 0, 5]]])
        rewind.parts.update(state=State.CANCELLED)
