"""The quarantine's pages by cause."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.quarantine.models import QuarantinedRecord
from frontend.team_scope import TEAM_KEY
from ingestion.specs.causes import cause_of
from tests.support.django_cast import Cast, browsing_as

PAGE = "/quarantine/"
OWN = "/datasources/flights/quarantine/"


@pytest.fixture
def viewer(cast: Cast) -> Client:
    return browsing_as(cast, "viewer")


def keep(cast: Cast, offset: int, error: str, **more: Any) -> QuarantinedRecord:
    values = {
        "source": cast.source, "datasource": cast.datasource, "task_id": cast.task.pk, "partition": 1, "offset": offset,
        "delivery_count": 1, "reason": "unparseable", "error": error, "payload": b"{", "created_at": timezone.now(),
        "cause": cause_of("unparseable", error).fingerprint, "publish_id": "3f2b8c1a-0000-4000-8000-123456789abc",
    }  # fmt: skip
    return QuarantinedRecord.objects.create(**{**values, **more})


def shown(client: Client, address: str, **query: Any) -> str:
    answer = client.get(address, query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_cause_stands_with_its_counts_and_leads_to_its_records(cast: Cast, viewer: Client) -> None:
    one = keep(cast, 1, "field '<b>' has no time of format auto: <i>7</i>")
    keep(cast, 2, "field '<b>' has no time of format auto: 8")
    page = shown(viewer, PAGE)
    assert "field &#x27;&lt;b&gt;&#x27; has no time of format auto" in page
    assert "<i>" not in page
    assert "<b>" not in page
    assert f"{OWN}?cause={one.cause}" in page
    assert "2 in the last 24 hours, at most 2 in one" in page
    records = shown(viewer, OWN, cause=one.cause)
    assert 'data-matching="2"' in records
    assert records.count("data-cause=") == 1
    assert shown(viewer, OWN).count("data-cause=") == 2


def test_filters_stand_in_the_address(cast: Cast, viewer: Client) -> None:
    keep(cast, 1, "one")
    done = keep(cast, 2, "two", state="stored")
    assert shown(viewer, PAGE).count("data-cause=") == 2  # the cast's own and "one"
    assert shown(viewer, PAGE, show="all").count("data-cause=") == 3
    assert f'data-cause="{done.cause}"' in shown(viewer, PAGE, show="all", cause=done.cause)
    for nothing in ({"reason": "refused"}, {"datasource": "x"}, {"cause": "x"}):
        assert "No causes match these filters." in shown(viewer, PAGE, **nothing)
    assert (
        shown(viewer, PAGE, team="beta", cause="\0").count("data-cause=") == 2
    )  # what can't be chosen filters nothing
    soon = (timezone.now() + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M")
    assert "No causes match these filters." in shown(viewer, PAGE, since=soon)


def test_others_see_nothing(cast: Cast) -> None:
    assert "No records in quarantine" in shown(browsing_as(cast, "outsider"), PAGE)


def test_pages_turn(cast: Cast, viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontend.views.causes.PER_PAGE", 2)
    for n, word in enumerate(["a", "b", "c", "d"]):
        keep(cast, n, word)
    first = viewer.get(PAGE)
    assert first.context["page"].previous is None
    second = viewer.get(PAGE, {"cursor": first.context["page"].next})
    titles = [row.title for page in (first, second) for row in page.context["causes"]]
    assert titles == ["d", "c", "b", "a"]
    back = viewer.get(PAGE, {"cursor": second.context["page"].previous})
    assert [row.title for row in back.context["causes"]] == ["d", "c"]


def test_the_navigation_counts_what_is_new(cast: Cast, viewer: Client) -> None:
    def badge() -> list[int]:
        return [item.badge for item in viewer.get(PAGE).context["navigation"] if item.label == "Quarantine"]

    assert badge() == [0]
    keep(cast, 1, "one")
    assert badge() == [1]


def test_a_team_that_was_chosen_alone_is_shown(cast: Cast) -> None:
    root = browsing_as(cast, "superuser")
    assert shown(root, PAGE).count("data-cause=") == 1
    session = root.session
    session[TEAM_KEY] = "beta"
    session.save()
    assert shown(root, PAGE).count("data-cause=") == 0
    assert shown(root, PAGE, team="alpha").count("data-cause=") == 1
