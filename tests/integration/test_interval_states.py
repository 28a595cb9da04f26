"""How the timeline's intervals stand, and where there are none: by REST, for the drawing, and as a table."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from controlplane.compaction.models import Job, State
from controlplane.sources.models import Source
from controlplane.supervisors.models import Supervisor
from tests.support.django_cast import DAY, Cast, browsing_as, make_segment
from tests.support.html import parsed

REST = "/api/v1/datasources/flights/timeline/"


def stated(client: Client, **query: str) -> list[tuple[str, str, bool]]:
    bars: list[dict[str, Any]] = client.get(REST, query).json()["bars"]
    return [(b["start"][:10], b["state"], b["compacting"]) for b in bars]


def gaps(client: Client, **query: str) -> list[tuple[str, str]]:
    return [(g["start"][:13], g["end"][:13]) for g in client.get(REST, query).json()["gaps"]]


def complete_until(cast: Cast, days: float) -> None:
    Source.objects.filter(pk=cast.source.pk).update(complete_until=DAY + timedelta(days=days))


def merging(cast: Cast, day: int, state: State = State.RUNNING) -> None:
    Job.objects.create(
        id=f"job-{day}",
        datasource=cast.datasource,
        interval_start=DAY + timedelta(days=day),
        interval_end=DAY + timedelta(days=day + 1),
        tier=0,
        state=state,
        inputs=[],
        data_schema={},
        rollup=False,
        max_rows_per_segment=1,
        rows_before=1,
        bytes_before=1,
        created_at=timezone.now(),
    )


def intervals_table(client: Client) -> list[str]:
    """What the table says of each state, the latest first."""
    page = parsed(client.get("/datasources/flights/intervals/"))
    place = [th.text for th in page.one("thead").all("th")].index("State") - 1  # the row's head is no cell
    return [tr.all("td")[place].text for tr in page.one("tbody").all("tr")]


def test_each_interval_says_whether_it_is_complete(cast: Cast, clients: dict[str, Client]) -> None:
    viewer = clients["viewer"]
    assert {state for _, state, _ in stated(viewer)} == {"unknown"}
    complete_until(cast, 2)
    assert stated(viewer) == [
        ("2013-01-01", "complete", False),
        ("2013-01-02", "complete", False),
        ("2013-01-03", "filling", False),
    ]
    complete_until(cast, 1.9)
    assert [state for _, state, _ in stated(viewer)] == ["complete", "filling", "filling"]


def test_what_is_merged_now_is_being_compacted_and_what_is_planned_waits(
    cast: Cast, clients: dict[str, Client]
) -> None:
    merging(cast, 1)
    merging(cast, 2, State.WAITING)
    merging(cast, 0, State.DONE)
    bars = clients["viewer"].get(REST).json()["bars"]
    assert [bar["compacting"] for bar in bars] == [False, True, False]
    assert [bar["awaiting"] for bar in bars] == [False, False, True]
    states = intervals_table(browsing_as(cast, "viewer"))
    assert ["waiting for compaction" in state for state in states] == [True, False, False]
    assert ["being compacted" in state for state in states] == [False, True, False]


def test_what_no_supervisor_fills_is_by_hand(cast: Cast, clients: dict[str, Client]) -> None:
    viewer = browsing_as(cast, "viewer")
    assert set(intervals_table(viewer)) == {"completeness unknown"}
    page = viewer.get("/datasources/flights/intervals/").content.decode()
    assert f'title="{cast.supervisor.pk}: Headgate has not checked its topic' in page
    Supervisor.objects.update(terminated_at=timezone.now())
    assert {state for _, state, _ in stated(clients["viewer"])} == {"by_hand"}
    assert set(intervals_table(viewer)) == {"manual"}


def test_a_gap_lies_between_segments_and_within_the_window(cast: Cast, clients: dict[str, Client]) -> None:
    viewer = clients["viewer"]
    assert gaps(viewer) == []
    make_segment(cast.datasource, cast.task.pk, DAY + timedelta(days=6), 0, 10)
    assert gaps(viewer) == [("2013-01-04T00", "2013-01-07T00")]
    assert gaps(viewer, **{"from": "2013-01-05T06:00:00Z", "to": "2013-01-06"}) == [("2013-01-05T06", "2013-01-06T00")]
    assert gaps(viewer, **{"from": "2012-12-01", "to": "2013-01-02"}) == []  # nothing lies before


def test_the_drawing_and_the_table_say_it_too(cast: Cast) -> None:
    complete_until(cast, 2)
    merging(cast, 2)
    make_segment(cast.datasource, cast.task.pk, DAY + timedelta(days=6), 0, 10)
    viewer = browsing_as(cast, "viewer")
    drawn = viewer.get("/datasources/flights/timeline.json").json()
    assert [(state, compacting) for *_, state, compacting, _ in drawn["bars"]] == [
        ("complete", False),
        ("complete", False),
        ("filling", True),
        ("filling", False),
    ]
    assert len(drawn["gaps"]) == 1
    states = intervals_table(viewer)
    assert [state.split()[0] for state in states] == ["filling", "filling", "complete", "complete"]
    assert "gap before, since 2013-01-04" in states[0]
    assert "being compacted" in states[1]
    assert "gap" not in "".join(states[1:])
