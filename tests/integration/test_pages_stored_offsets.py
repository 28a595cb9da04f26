"""What an operator does to a supervisor of the type kafka on its page: hands it off, and resets its offsets."""

from __future__ import annotations

import pytest
from django.test import Client

from controlplane.publishing.models import ProgressKey
from controlplane.supervisors.models import Supervisor
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.stored_offsets import PAGE, begin_reading, source_of, stored


@pytest.fixture
def reading(cast: Cast, owner: Client) -> Supervisor:
    """A supervisor whose task has published offsets 0 to 9 of partition 0, and reads on."""
    return begin_reading(owner)


def test_a_page_hands_off(cast: Cast, reading: Supervisor) -> None:
    operator = browsing_as(cast, "operator")
    page = parsed(operator.get(PAGE))
    assert [d.attributes["id"] for d in page.all("dialog", class_="confirm")] == ["ask-suspend", "ask-handoff"]
    answer = parsed(operator.post(f"{PAGE}handoff/", follow=True))
    assert "hands off" in answer.one("div", class_="alert-success").text
    reading.refresh_from_db()
    assert reading.handoff_asked_at is not None


@pytest.mark.parametrize(
    ("typed", "stored"),
    [("0: 4", {0: 4, 1: 0}), (" 1 : 7 \n\n0=2", {0: 2, 1: 7}), ("", {0: None, 1: None})],
)
def test_a_page_resets_offsets(cast: Cast, reading: Supervisor, typed: str, stored: dict[int, int | None]) -> None:
    owner = browsing_as(cast, "owner")
    assert parsed(owner.get(PAGE)).one("dialog", id="ask-reset").one("textarea", name="offsets").raw_text.strip() == ""
    page = parsed(owner.post(f"{PAGE}reset/", {"offsets": typed}, follow=True))
    assert "reset" in page.one("div", class_="alert-success").text
    keys = ProgressKey.objects.filter(source=source_of(reading))
    assert dict(keys.values_list("partition", "next_offset")) == stored


NO_OFFSETS = {
    "nonsense": "Line 1",
    "0: 4\n0: 5": "Line 2 repeats partition 0",
    "0: -4": "Line 1",
    "0": "Line 1",
}


def test_a_page_asks_again_for_offsets_that_are_none(cast: Cast, reading: Supervisor) -> None:
    owner = browsing_as(cast, "owner")
    said, shown, after = {}, [], []
    for typed in NO_OFFSETS:
        answer = owner.post(f"{PAGE}reset/", {"offsets": typed})
        page = parsed(answer)
        said[typed] = (answer.status_code, page.one("main").one("div", role="alert").text)
        shown.append(page.one("textarea", name="offsets").raw_text.strip())
        after.append(stored(reading))
    wrong = {t: found for t, found in said.items() if found[0] != 400 or NO_OFFSETS[t] not in found[1]}
    assert not wrong
    assert shown == list(NO_OFFSETS)
    assert after == [{0: 10, 1: 0}] * len(NO_OFFSETS)


def test_an_offset_beyond_all_is_refused_on_the_page(cast: Cast, reading: Supervisor) -> None:
    page = parsed(browsing_as(cast, "owner").post(f"{PAGE}reset/", {"offsets": f"0: {10**18}"}, follow=True))
    assert "each with an offset of 0 to" in page.one("div", class_="alert-danger").text
