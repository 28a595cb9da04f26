"""Alarms that somebody sees to: over REST, on home, in the audit trail."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.sources.celery_tasks import drop_old_events
from controlplane.sources.models import SourceEvent
from controlplane.teams.models import AuditEntry
from tests.support.django_cast import Cast, browsing_as, speaking_as
from tests.support.html import parsed

EVENTS = "/api/v1/datasources/flights/events/"


@pytest.fixture
def operator(cast: Cast) -> Client:
    return speaking_as(cast, "operator")


def another(cast: Cast, kind: str = "gap", alarm: bool = True) -> SourceEvent:
    """A newer one of the datasource."""
    return SourceEvent.objects.create(datasource=cast.datasource, kind=kind, alarm=alarm, detail="Another one.")


def problems(cast: Cast, role: str) -> list[tuple[str, int | None]]:
    """What home's REST address says, of events."""
    told = speaking_as(cast, role).get("/api/v1/overview/").json()["problems"]
    return sorted((p["code"], p["event"]) for p in told if p["event"] is not None)


def test_an_alarm_and_the_older_ones_of_its_kind_leave_home_for_everybody(operator: Client, cast: Cast) -> None:
    newest, repaired = another(cast), another(cast, "repaired")
    assert problems(cast, "viewer") == [("gap", newest.pk), ("repaired", repaired.pk)]
    answer = operator.post(f"{EVENTS}{newest.pk}/acknowledge/")
    assert answer.status_code == 200
    assert (answer.json()["acknowledged_by"], answer.json()["id"]) == ("operator", newest.pk)
    assert problems(cast, "viewer") == [("repaired", repaired.pk)]
    by = {e["id"]: e["acknowledged_by"] for e in operator.get(EVENTS).json()["results"]}
    assert by == {newest.pk: "operator", cast.event.pk: "operator", repaired.pk: ""}
    entry = AuditEntry.objects.get(action="acknowledge")
    assert (entry.username, entry.target, entry.target_id) == ("operator", "datasource", "flights")
    assert entry.detail == {"kind": "gap", "events": 2}
    later = another(cast)
    assert ("gap", later.pk) in problems(cast, "viewer"), "a new one calls again"


def test_the_newer_ones_of_its_kind_go_on_calling(operator: Client, cast: Cast) -> None:
    newer = another(cast)
    assert operator.post(f"{EVENTS}{cast.event.pk}/acknowledge/").status_code == 200
    assert problems(cast, "viewer") == [("gap", newer.pk)]


def test_what_is_no_alarm_or_acknowledged_or_elsewhere_changes_nothing(operator: Client, cast: Cast) -> None:
    quiet = another(cast, "partitions_added", alarm=False)
    refused = operator.post(f"{EVENTS}{quiet.pk}/acknowledge/")
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "This event is not an alarm: there is nothing to acknowledge.",
    )
    assert operator.post(f"{EVENTS}{cast.event.pk}/acknowledge/").status_code == 200
    again = operator.post(f"{EVENTS}{cast.event.pk}/acknowledge/")
    assert (again.status_code, again.json()["detail"]) == (409, "This alarm is already acknowledged.")
    assert operator.post(f"{EVENTS}{quiet.pk + 1000}/acknowledge/").status_code == 404
    assert AuditEntry.objects.filter(action="acknowledge").count() == 1


@pytest.mark.parametrize(("role", "may"), [("operator", True), ("viewer", False), ("superuser", True)])
def test_home_offers_it_to_who_may(cast: Cast, role: str, may: bool) -> None:
    client, address = browsing_as(cast, role), f"/datasources/flights/events/{cast.event.pk}/acknowledge/"
    row = parsed(client.get("/")).one("div", data_problem="gap")
    assert (address in [a.attributes["href"] for a in row.all("a")]) is may
    events = parsed(client.get("/datasources/flights/events/"))
    assert (address in [a.attributes.get("href") for a in events.all("a")]) is may
    if not may:
        return
    assert "Offsets 5 to 6 were removed by retention." in parsed(client.get(address)).text
    assert client.post(address)["Location"] == "/datasources/flights/events/"
    assert f"acknowledged by {role}" in parsed(client.get("/datasources/flights/events/")).text
    assert not parsed(client.get("/")).all("div", data_problem="gap")
    assert client.get(address).status_code == 404


def test_old_news_goes_and_what_became_of_records_stays(operator: Client, cast: Cast) -> None:
    """``HEADGATE_EVENT_RETENTION``: 90 days."""
    woken, failed = another(cast, "woken", alarm=False), another(cast, "task_failed")
    kept = [another(cast), another(cast, "partitions_added", alarm=False), another(cast, "refused")]
    SourceEvent.objects.update(created_at=timezone.now() - timedelta(days=91))
    young = another(cast, "woken", alarm=False)
    assert drop_old_events() == 1
    assert not SourceEvent.objects.filter(pk=woken.pk).exists()
    assert operator.post(f"{EVENTS}{failed.pk}/acknowledge/").status_code == 200
    assert drop_old_events() == 1
    left = {young.pk, cast.event.pk, *(event.pk for event in kept)}
    assert set(SourceEvent.objects.filter(datasource=cast.datasource).values_list("pk", flat=True)) == left
