"""A datasource that is deleted whole: what is lost, what stays, and how it is made anew."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from controlplane.alerts.evaluating import evaluate
from controlplane.common.errors import Conflict, InvalidInput, NotAllowed
from controlplane.datasources.models import Datasource
from controlplane.publishing.models import SettledRange
from controlplane.publishing.selectors.fate import record_fate
from controlplane.quarantine.selectors.filters import Choice
from controlplane.retention import datasource_deletion
from controlplane.retention.datasource_deletion import continue_deleting, delete_datasource
from controlplane.segments import marking
from controlplane.segments.models import DaySum, Interval, Removal, Segment
from controlplane.supervisors import services
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.replays import replay
from controlplane.tasks.models import Status, Task
from controlplane.teams.models import AuditEntry
from tests.integration.test_supervisor_services import submit
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.html import parsed

PATH = "/api/v1/datasources/flights/delete/"


@pytest.fixture
def idle(cast: Cast) -> Cast:
    """Nothing reads into it."""
    services.terminate(user=cast.users["owner"], supervisor=cast.supervisor)
    Task.objects.update(status=Status.SUCCESS)
    return cast


def delete(cast: Cast, role: str = "owner", name: str = "flights") -> None:
    delete_datasource(user=cast.users[role], datasource=cast.datasource, name=name)


def test_its_segments_are_lost_and_its_progress_stays(idle: Cast, clients: dict[str, Client]) -> None:
    settled = list(SettledRange.objects.order_by("pk").values_list("span", flat=True))
    answer = clients["owner"].post(PATH, {"name": "flights"}, content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {"segments": 4, "rows": 1500, "size_bytes": 15000})
    assert not Segment.objects.filter(used=True).exists()
    assert not Segment.objects.filter(kill_began_at=None).exists(), "nobody can use them again"
    assert sum(DaySum.objects.values_list("rows", flat=True)) == 0
    assert list(SettledRange.objects.order_by("pk").values_list("span", flat=True)) == settled
    [fate] = record_fate(idle.users["owner"], topic="flights-topic", partition=0, offset=3)[:1]
    assert "removed by owner" in fate.explanation
    entry = AuditEntry.objects.get(action="delete")
    assert (entry.username, entry.target_id, entry.detail["segments"]) == ("owner", "flights", 4)


def test_it_leaves_the_lists_and_says_what_it_is(idle: Cast, clients: dict[str, Client]) -> None:
    delete(idle)
    listed = clients["owner"].get("/api/v1/datasources/").json()["results"]
    assert [d["name"] for d in listed] == []
    assert clients["owner"].get("/api/v1/datasources/flights/").json()["deleted_at"] is not None
    assert clients["owner"].get("/druid/coordinator/v1/datasources").json() == []
    page = parsed(browsing_as(idle, "owner").get("/datasources/flights/"))
    assert "owner deleted this datasource" in page.text
    assert "flights" not in parsed(browsing_as(idle, "owner").get("/datasources/")).one("main").text
    again = clients["owner"].post(PATH, {"name": "flights"}, content_type="application/json")
    assert (again.status_code, again.json()["detail"]) == (409, "The datasource flights is already deleted.")


def test_while_something_reads_into_it_it_stays(cast: Cast) -> None:
    with pytest.raises(Conflict) as refused:
        delete(cast)
    assert f"supervisor flights, task {cast.task.pk} write to flights" in refused.value.detail
    Supervisor.objects.update(terminated_at=cast.task.created_at)
    with pytest.raises(Conflict):
        delete(cast)
    assert Segment.objects.filter(used=True).count() == 4
    assert not AuditEntry.objects.filter(action="delete").exists()


@pytest.mark.parametrize(
    ("role", "name", "error"),
    [("owner", "flight", InvalidInput), ("owner", "", InvalidInput), ("operator", "flights", NotAllowed)],
)
def test_another_name_or_role_deletes_nothing(idle: Cast, role: str, name: str, error: Any) -> None:
    with pytest.raises(error):
        delete(idle, role, name)
    assert Datasource.objects.get().deleted_at is None
    assert Segment.objects.filter(used=True).count() == 4


def test_a_spec_that_names_it_makes_it_anew_for_its_team(idle: Cast, clients: dict[str, Client]) -> None:
    delete(idle)
    with pytest.raises(NotAllowed):
        submit(idle, spec_for("flights"), "operator")
    with pytest.raises(Conflict, match="taken"):
        services.submit_supervisor(user=idle.users["outsider"], document=spec_for("flights"), team_name=None)
    submit(idle, spec_for("flights"))
    assert Datasource.objects.get().deleted_at is None
    [listed] = clients["viewer"].get("/api/v1/datasources/").json()["results"]
    assert (listed["name"], listed["rows"]) == ("flights", 0)


def test_what_was_left_goes_on_with_whoever_comes_next(
    idle: Cast, clients: dict[str, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took longer than anybody waits, or its process died: until all have gone no spec can name it."""
    monkeypatch.setattr(datasource_deletion, "FIRST_RUN_S", -1.0)
    answer = clients["owner"].post(PATH, {"name": "flights"}, content_type="application/json")
    assert (answer.status_code, answer.json()["segments"]) == (200, 4)
    assert Segment.objects.filter(used=True).count() == 4
    assert [d["name"] for d in clients["owner"].get("/api/v1/datasources/").json()["results"]] == []
    with pytest.raises(Conflict, match="still being deleted; try again in a minute"):
        submit(idle, spec_for("flights"))
    monkeypatch.setattr(marking, "MAX_SEGMENTS", 1)
    monkeypatch.setattr(marking, "INTERVALS_PER_TRANSACTION", 1)
    assert continue_deleting(60.0) == 1
    assert not Segment.objects.filter(kill_began_at=None).exists()
    assert sum(Interval.objects.values_list("segments", flat=True)) == 0
    [removal] = Removal.objects.all()
    assert (removal.by, removal.segments, removal.rows) == ("owner", 4, 1500)
    submit(idle, spec_for("flights"))
    assert continue_deleting(60.0) == 0


def test_who_comes_late_to_a_deleted_datasource_loses_nothing_of_one_made_anew(
    idle: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes clear datasources: one has found this one, and comes to it when the other has long been done."""
    monkeypatch.setattr(datasource_deletion, "FIRST_RUN_S", -1.0)
    delete(idle)
    found = Datasource.objects.get(clearing=True)
    assert continue_deleting(60.0) == 1
    submit(idle, spec_for("flights"))
    Segment.objects.update(used=True, kill_began_at=None)  # as if they had been published since
    assert not marking.give_up_all(found, by="owner", what="the whole datasource, deleted", seconds=60.0)
    Segment.objects.filter(interval_start=Segment.objects.earliest("interval_start").interval_start).update(used=False)
    assert not marking.give_up_all(found, by="owner", what="the whole datasource, deleted", seconds=60.0)
    assert not Segment.objects.exclude(kill_began_at=None).exists()


def test_its_quarantine_is_replayed_once_it_is_there_again(idle: Cast) -> None:
    delete(idle)
    with pytest.raises(Conflict, match="is deleted"):
        replay(user=idle.users["owner"], datasource=idle.datasource, choice=Choice(), mode=Task.Replay.INGEST)
    assert not Task.objects.active().exists()
    assert evaluate() == 0
