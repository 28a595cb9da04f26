"""The page of a supervisor's rewinds: what it lists, asks before it changes, and says of odd forms."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.utils import timezone

from controlplane.datasources.models import MaskedColumn
from controlplane.publishing.models import Rewind, RewindPart
from controlplane.publishing.rewind_changes import changed_columns
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.states import Detail
from controlplane.tasks.models import Task
from frontend.rewind_rows import choice_text
from ingestion.specs.messages.protocol import ColumnSummary
from tests.support.django_cast import DAY, Cast, browsing_as
from tests.support.html import Element, parsed

State = RewindPart.State


@pytest.fixture
def supervisor(cast: Cast) -> Supervisor:
    return cast.supervisor


def page_of(supervisor: Supervisor) -> str:
    return f"/supervisors/{supervisor.pk}/rewinds/"


def a_rewind(cast: Cast, *states: str, **fields: Any) -> Rewind:
    rewind = Rewind.objects.create(
        datasource=cast.datasource,
        source=cast.source,
        spec={},
        supervisor_id=cast.supervisor.pk,
        spec_version=2,
        choice={"spec_version": 1},
        by="owner",
        created_at=timezone.now(),
        **fields,
    )
    for number, state in enumerate(states):
        ended = None if state == State.WAITING else timezone.now()
        rewind.parts.create(
            number=number,
            taken=[],
            ranges=[[0, 10 * number, 10 * number + 10]],
            state=state,
            rows_before=10,
            rows_after=7,
            after={"thrown_away": 3},
            ended_at=ended,
            publish_ids=[uuid.uuid4()],
        )
    return rewind


def test_a_rewind_goes_on_and_is_followed_after_its_supervisor_has_ended(cast: Cast, supervisor: Supervisor) -> None:
    Supervisor.objects.filter(pk=supervisor.pk).update(
        suspended=True, terminated_at=timezone.now(), detailed_state=Detail.TERMINATED
    )
    rewind, owner = a_rewind(cast, State.DONE, State.WAITING), browsing_as(cast, "owner")

    def listed() -> Element:
        return parsed(owner.get(page_of(supervisor))).one("section", id="rewinds-live")

    assert listed().attributes["data-live"] == f"supervisor:{supervisor.pk}"
    assert "1 waiting, 1 done" in listed().text and "Cancel…" in listed().text
    owner.post(page_of(supervisor), {"cancel": rewind.pk})
    assert "1 done, 1 cancelled" in listed().text and "Undo…" in listed().text
    assert "data-live" not in listed().attributes, "nothing of it changes by itself any more"


def test_rewinds_are_listed_with_their_parts(cast: Cast, supervisor: Supervisor) -> None:
    viewer = browsing_as(cast, "viewer")
    empty = parsed(viewer.get(page_of(supervisor)))
    assert "It has no rewinds." in empty.text
    assert empty.one("a", href=page_of(supervisor)).attributes["aria-current"] == "page"
    old = a_rewind(cast, State.DONE, State.DONE, State.WAITING)
    new = a_rewind(cast, State.READ, dry_run=True)
    page = parsed(viewer.get(page_of(supervisor)))
    rows = {n: page.one("tr", data_rewind=str(n.pk)).text for n in (old, new)}
    assert "stored by version 1; read with version 2" in rows[old]
    assert "1 waiting, 2 done" in rows[old]
    assert "dry run" in rows[new]
    assert f"Parts of rewind {new.pk}" in page.text, "the newest is shown"
    parts = parsed(viewer.get(page_of(supervisor), {"rewind": old.pk}))
    assert [len(parts.all("tr", data_part=str(n))) for n in range(4)] == [1, 1, 1, 0]
    assert "Preview rewind" not in page.text and not page.all("a", href=f"{page_of(supervisor)}?undo={old.pk}")
    for odd in ("0", "none", "a\x00b", "9" * 30):
        assert viewer.get(page_of(supervisor), {"rewind": odd}).status_code == 404


def test_changed_columns_of_a_dry_run_are_shown_and_sums_of_masked_ones_hidden(
    cast: Cast, supervisor: Supervisor
) -> None:
    rewind = a_rewind(cast, State.READ, State.READ, dry_run=True)
    summaries = [
        ColumnSummary(name=name, type="long", values=2, total=total, checksum=7)
        for name, total in (("price", 4_711.25), ("salary", 8_888))
    ]
    rewind.parts.filter(number=0).update(changes={**changed_columns(summaries, summaries[:1]), "more": 3})
    rewind.parts.filter(number=1).update(changes=changed_columns([], summaries))
    MaskedColumn.objects.create(datasource=cast.datasource, column="salary", role="admin")
    address = f"/api/v1/supervisors/{supervisor.pk}/rewinds/"
    for role, sees in (("viewer", False), ("owner", True)):
        browser = browsing_as(cast, role)
        page = parsed(browser.get(page_of(supervisor)))
        rows = [row.text for row in page.all("tr", data_changed="salary")]
        assert ["would be gone" in row for row in rows] == [True, False] and "new: long" in rows[1]
        assert ("8,888" in page.text, "4,711.25" in page.text) == (sees, True)
        assert "3 more columns." in page.text
        told = str(browser.get(address).json()["rewinds"][0]["parts"])
        assert ("8888" in told, "4711.25" in told) == (sees, True)


def test_an_undo_and_a_cancellation_ask_first(cast: Cast, supervisor: Supervisor) -> None:
    owner, rewind = browsing_as(cast, "owner"), a_rewind(cast, State.DONE, State.WAITING)
    address = page_of(supervisor)
    listed = parsed(owner.get(address))
    for name, question in (("cancel", "Cancel rewind"), ("undo", "Undo rewind")):
        link = listed.one("a", href=f"{address}?{name}={rewind.pk}").attributes["href"]
        asked = parsed(owner.get(link)).one("section", aria_labelledby="ask-title")
        assert f"{question} {rewind.pk}?" in asked.text
        assert RewindPart.objects.filter(rewind=rewind, state__in=[State.CANCELLED, State.UNDONE]).count() == (
            name == "undo"
        ), "a question changes nothing"
        assert owner.post(address, {name: rewind.pk}).status_code == 302
    assert list(rewind.parts.values_list("state", flat=True)) == [State.UNDONE, State.CANCELLED]
    again = parsed(owner.post(address, {"undo": rewind.pk}, follow=True))
    assert "No part of this rewind is done, so there is nothing to undo." in again.text
    for odd in ("", "0", "none", "²", "9" * 40, "a\x00b"):
        assert owner.post(address, {"undo": odd}).status_code == 404
    for role in ("operator", "viewer"):
        browser = browsing_as(cast, role)
        assert browser.post(address, {"undo": rewind.pk}).status_code == 403
        assert browser.get(address, {"undo": rewind.pk}).status_code == 403


def test_an_undo_that_is_refused_offers_the_version_that_had_stored_the_records(
    cast: Cast, supervisor: Supervisor
) -> None:
    """By the newest receipt before the rewind."""
    Task.objects.filter(pk=cast.task.pk).update(spec_version=1)
    rewind, owner = a_rewind(cast, State.DONE), browsing_as(cast, "owner")
    question = parsed(owner.get(page_of(supervisor), {"undo": rewind.pk}))
    [link] = [a for a in question.all("a") if "read the same records again" in a.text]
    assert link.attributes["href"] == f"{page_of(supervisor)}?of_rewind={rewind.pk}&read_with=1"


def test_an_earlier_version_leads_to_a_rewind_of_what_it_stored(cast: Cast, supervisor: Supervisor) -> None:
    SpecVersion.objects.create(supervisor=supervisor, version=2, spec=supervisor.current.spec)
    Supervisor.objects.filter(pk=supervisor.pk).update(version=2)
    address, link = f"/supervisors/{supervisor.pk}/spec/", f"{page_of(supervisor)}?spec_version=1"
    seen = {
        (role, version): len(parsed(browsing_as(cast, role).get(address, {"version": version})).all("a", href=link))
        for role in ("owner", "viewer")
        for version in (1, 2)
    }
    assert seen == {("owner", 1): 1, ("owner", 2): 0, ("viewer", 1): 0, ("viewer", 2): 0}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"offsets": "0: 5"}, "Line 1 must be partition: start-end"),
        ({"offsets": "0: 1-2\n0: 9-5"}, "Line 2: the start 9 must be lower than the end 5."),
        ({"published_from": "2025-06-01T00:00"}, "Give both times, or none."),
        ({"rows_from": "2025-06-02T00:00", "rows_until": "2025-06-01T00:00"}, "This must be later"),
        ({"rows_from": "yesterday", "rows_until": "2025-06-01T00:00"}, "Enter a valid date/time."),
        ({"spec_version": "99"}, "99 is not one of the available choices."),
        ({"of_rewind": "x"}, "Enter a whole number."),
    ],
)
def test_the_form_says_what_is_wrong(cast: Cast, supervisor: Supervisor, asked: dict[str, str], said: str) -> None:
    owner, address = browsing_as(cast, "owner"), page_of(supervisor)
    answer = owner.post(address, {**asked, "preview": "1"})
    assert (answer.status_code, said in parsed(answer).text) == (400, True)
    assert "The choice was not understood." in parsed(owner.post(address, asked, follow=True)).text
    assert browsing_as(cast, "operator").post(address, {**asked, "preview": "1"}).status_code == 403
    assert not Rewind.objects.exists()


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"spec_version": 7}, "stored by version 7"),
        ({"of_rewind": 3}, "read by rewind 3"),
        (
            {"published": ["2025-06-01T09:00:00+00:00", "2025-06-02T00:00:00+00:00"], "spec_version": 7},
            "stored by version 7, published from 2025-06-01 09:00 to 2025-06-02 UTC",
        ),
        ({"times": [DAY.isoformat(), DAY.isoformat()]}, "with rows from 2013-01-01 to 2013-01-01 UTC"),
        (
            {"offsets": {"0": [[1, 2000], [3000, 4000]], "1": [[0, 1], [2, 3], [4, 5]]}},
            "at offsets 0: 1–2,000; 0: 3,000–4,000; 1: 0–1 and 2 more",
        ),
    ],
)
def test_a_choice_in_words(choice: dict[str, Any], text: str) -> None:
    assert choice_text(choice) == text
