"""The pages of lag, of the autoscaler and of the pool of indexers."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from controlplane.lag.models import LagSample
from controlplane.metrics.snapshot import take_snapshot
from controlplane.publishing.models import ProgressKey
from controlplane.sources.models import Source
from controlplane.supervisors.models import ScaleAction, SpecVersion, Supervisor
from controlplane.tasks.models import Task
from ingestion.specs.source_traits import SHARE_GROUP
from tests.integration.test_autoscaler import scaled_spec, submit
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed

FLIGHTS = "/supervisors/flights/"


@pytest.fixture
def viewer(cast: Cast) -> Client:
    return browsing_as(cast, "viewer")


@pytest.fixture
def now() -> datetime:
    """One for all samples of a test: they are as far apart as it says."""
    return timezone.now().replace(microsecond=0)


def sample(cast: Cast, now: datetime, minutes_ago: float, lag: int, processed: int) -> int:
    """Returns when it was, in ms."""
    at = now - timedelta(minutes=minutes_ago)
    LagSample.objects.create(
        source=cast.source,
        resolution_s=5,
        at=at,
        observed_at=at,
        lag=lag,
        partitions=[lag, 0],
        in_flight=7,
        processed=processed,
        redelivered=0,
    )
    return int(at.timestamp() * 1000)


def test_the_charts_data(viewer: Client, cast: Cast, now: datetime) -> None:
    first = sample(cast, now, 10, 400, 0)
    second = sample(cast, now, 10 - 5 / 60, 300, 600)
    answer = viewer.get(f"{FLIGHTS}lag.json").json()
    assert answer["resolution"] == 5000
    assert answer["end"] - answer["start"] == 3_600_000
    assert answer["points"] == [[first, 400, 7, 0.0, 0.0], [second, 300, 7, 10.0, 0.0]], "in a minute"
    assert viewer.get(f"{FLIGHTS}lag.json?window=7d").json()["resolution"] == 3_600_000
    assert viewer.get(f"{FLIGHTS}lag.json?window=odd").json()["resolution"] == 5000


def test_the_chart_marks_what_happened_and_shows_a_partition(viewer: Client, cast: Cast, now: datetime) -> None:
    sample(cast, now, 10, 400, 100)
    Task.objects.update(started_at=now - timedelta(minutes=7))
    ScaleAction.objects.create(supervisor=cast.supervisor, at=now, before=1, after=3, reason="The lag was so.")
    SpecVersion.objects.update(created_at=now - timedelta(minutes=20))
    marks = viewer.get(f"{FLIGHTS}lag.json").json()["marks"]
    assert [kind for _, kind in marks] == ["spec", "restart", "scale"]
    assert marks[1][0] == int((now - timedelta(minutes=7)).timestamp() * 1000)
    told = [e.text for e in parsed(viewer.get(f"{FLIGHTS}lag/")).all("li") if "data-mark" in e.attributes]
    assert ["from 1 to 3 indexers" in told[0], "A task started" in told[1], "Spec version 1 by owner" in told[2]] == [
        True
    ] * 3
    lags = [viewer.get(f"{FLIGHTS}lag.json?partition={p}").json()["points"][0][1] for p in ("0", "1", "7", "x", "-1")]
    assert lags == [400, 0, 0, 400, 400]


def test_other_parameters_of_an_autoscaler_are_tried(viewer: Client, cast: Cast, now: datetime) -> None:
    for n in range(60):
        sample(cast, now, 10 - n / 12, 5000, n)
    page = parsed(viewer.get(f"{FLIGHTS}autoscaler/"))
    assert "has no enabled autoscaler" in page.text
    assert page.one("p", data_simulated="0")
    tried = {"taskCountMax": "3", "scaleOutThreshold": "1000", "scaleActionStartDelayMillis": "0"}
    page = parsed(viewer.get(f"{FLIGHTS}autoscaler/", tried))
    assert "from 1 to 3 indexers" in page.one("p", data_simulated="1").text
    assert Supervisor.objects.get(pk="flights").scale_actions.count() == 0


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"taskCountMin": "5", "taskCountMax": "2"}, "is less than taskCountMin"),
        ({"taskCountMax": "x"}, "Enter a whole number"),
        ({"triggerScaleOutFractionThreshold": "2"}, "less than or equal to 1"),
        ({"lagCollectionIntervalMillis": "10", "lagCollectionRangeMillis": "5"}, "is longer than"),
        ({"window": "1y"}, ""),
    ],
)
def test_parameters_that_can_not_be(viewer: Client, cast: Cast, query: dict[str, str], said: str) -> None:
    answer = viewer.get(f"{FLIGHTS}autoscaler/", query)
    assert answer.status_code == 200
    assert said in parsed(answer).text


def test_the_chart_has_a_table_beside_it(viewer: Client) -> None:
    section = parsed(viewer.get(FLIGHTS)).one("section", data_lag="")
    assert section.attributes["data-url"] == f"{FLIGHTS}lag.json"
    assert f"{FLIGHTS}lag/" in [a.attributes["href"] for a in section.all("a")]


def test_partitions_by_lag_and_by_number(viewer: Client, cast: Cast) -> None:
    Task.objects.update(observation={"error": "", "topic_exists": True})
    Source.objects.update(looked_at=timezone.now())
    for query, numbers in (("", ["1", "0"]), ("?sort=partition", ["0", "1"])):
        page = parsed(viewer.get(f"{FLIGHTS}lag/{query}"))
        table = page.all("tbody")[0]
        assert [r.one("th").text for r in table.all("tr")] == numbers
    assert [c.text for c in table.all("tr")[1].all("td")][:4] == ["1,000", "600", "600", "400"]
    assert "Stored offset" not in page.text, "a share group has none"


def test_partitions_come_in_pages(viewer: Client, cast: Cast) -> None:
    Source.objects.update(bounds={str(p): [0, 0, p] for p in range(250)})
    page = parsed(viewer.get(f"{FLIGHTS}lag/?page=3"))
    assert len(page.all("tbody")[0].all("tr")) == 50


def test_a_lag_that_is_not_known_is_no_number(viewer: Client, cast: Cast) -> None:
    Source.objects.update(bounds={}, looked_at=None)
    told = parsed(viewer.get(f"{FLIGHTS}lag/")).text
    assert "– offsets" not in told
    assert "Indexers hold 0 records now." in told


def test_a_lag_of_the_past_says_so(viewer: Client, cast: Cast) -> None:
    Task.objects.update(status="FAILED")
    warning = parsed(viewer.get(f"{FLIGHTS}lag/")).one("div", data_lag_problem="").text
    assert "more than a minute" in warning
    assert "2025-06-01 12:00:00" in warning


def test_samples_as_a_table_the_latest_first(viewer: Client, cast: Cast, now: datetime) -> None:
    sample(cast, now, 10, 400, 100)
    sample(cast, now, 10 - 5 / 60, 300, 600)
    for n in range(14):
        sample(cast, now, 20 - n / 12, 200, 50_000 if n > 11 else 2)
    rows = parsed(viewer.get(f"{FLIGHTS}lag/")).all("tbody")[1].all("tr")
    assert [[c.text for c in row.all("td")] for row in rows] == [
        ["300", "7", "–", "0"],
        ["400", "7", "–", "0"],
        *[["200", "7", "833.3", "0"]] * 2,
        ["200", "7", "0", "0"],
        *[["200", "7", "–", "0"]] * 11,
    ]


def test_the_list_says_how_far_behind_it_is_now_and_not_at_the_minutes_peak(
    viewer: Client, cast: Cast, now: datetime
) -> None:
    for minutes_ago in (1, 0.5, 0):
        sample(cast, now, minutes_ago, 0, 100)
    LagSample.objects.create(
        source=cast.source, resolution_s=60, at=now, observed_at=now, lag=224_467, partitions=[],
        in_flight=0, processed=100, redelivered=0,
    )  # fmt: skip
    row = parsed(viewer.get("/supervisors/")).one("tr", data_supervisor="flights")
    assert row.one("td", data_label="Lag").text == "0"


def test_nothing_was_seen_yet(viewer: Client, cast: Cast) -> None:
    ProgressKey.objects.all().delete()
    Source.objects.update(bounds={}, looked_at=None)
    text = parsed(viewer.get(f"{FLIGHTS}lag/")).text
    assert "No partitions yet" in text
    assert "No lag was recorded in this time" in text


def test_an_autoscaler_shows_what_it_did_and_takes_the_scale_button_away(cast: Cast) -> None:
    submit(cast, scaled_spec("scaled"))
    supervisor = Supervisor.objects.get(pk="scaled")
    owner = browsing_as(cast, "owner")
    page = parsed(owner.get("/supervisors/scaled/"))
    assert "The autoscaler has changed nothing yet" in page.text
    assert "ask-scale" not in [d.attributes["id"] for d in page.all("dialog", class_="confirm")]
    assert owner.get("/supervisors/scaled/confirm/scale/").status_code == 404
    ScaleAction.objects.create(supervisor=supervisor, at=timezone.now(), before=1, after=3, reason="The lag was so.")
    Supervisor.objects.filter(pk="scaled").update(decided_task_count=3)
    text = parsed(owner.get("/supervisors/scaled/live/")).text
    assert "3 of 1 to 4" in text
    assert "The lag was so." in text
    rows = parsed(owner.get("/supervisors/")).one("tbody").all("tr")
    assert "3" in [c.text for c in rows[1].all("td")]


def test_the_pool_is_shown(viewer: Client, cast: Cast, settings: LazySettings) -> None:
    def line() -> str:
        return parsed(viewer.get("/tasks/")).one("span", data_capacity="").text

    assert line() == "2 indexers in use, of all teams."
    settings.WORKER_CAPACITY = 3
    Task.objects.create(
        id="waits",
        kind=SHARE_GROUP.kind,
        datasource=cast.datasource,
        spec=cast.task.spec,
        indexers_wanted=2,
        created_at=timezone.now(),
    )
    assert line() == "2 of 3 indexers in use, of all teams. 1 task waits for 2 more."
    waiting = parsed(viewer.get("/tasks/waits/"))
    assert [r.attributes["data-reason"] for r in waiting.all("li") if "data-reason" in r.attributes] == [
        "waiting_for_slot"
    ]
    Supervisor.objects.update(decided_task_count=None)
    assert "data-lacks-overlap" not in viewer.get(FLIGHTS).content.decode()
    settings.WORKER_CAPACITY = 1
    assert "too few for two tasks of 1" in viewer.get(FLIGHTS).content.decode()


def drained(cast: Cast, viewer: Client, lag: int, **query: str) -> dict[str, object]:
    """What is said of a lag that was 100,000 four minutes ago and has changed evenly since; 24,000 records ended."""
    Source.objects.filter(pk=cast.source.pk).update(looked_at=timezone.now())
    now = timezone.now()
    for ago_s in (240, 61, 0):
        at, since = now - timedelta(seconds=ago_s), 240 - ago_s
        behind, ended = 100_000 + (lag - 100_000) * since // 240, 100 * since
        values = {
            "at": at,
            "observed_at": at,
            "lag": behind,
            "partitions": [behind],
            "processed": ended,
            "ended": ended,
        }
        LagSample.objects.create(source=cast.source, resolution_s=5, in_flight=0, redelivered=0, **values)
    answer = viewer.get("/api/v1/supervisors/flights/lag/", query)
    assert answer.status_code == 200, answer.content
    found: dict[str, object] = answer.json()["drain"]
    return found


def drain_metric() -> float:
    [(_, value)] = take_snapshot()["headgate_supervisor_drain_seconds"]
    return value


def test_a_lag_that_shrinks_says_when_it_is_over(viewer: Client, cast: Cast) -> None:
    found = drained(cast, viewer, 60_000)
    assert (found["code"], found["net_per_s"]) == ("draining", pytest.approx(40_000 / 240, rel=0.01))
    left = datetime.fromisoformat(str(found["done_at"])) - timezone.now()
    assert left.total_seconds() == pytest.approx(360, abs=30)
    assert drain_metric() == pytest.approx(360, abs=30)
    for path in (FLIGHTS, f"{FLIGHTS}lag/"):
        [said] = [e for e in parsed(viewer.get(path)).all() if "data-drain" in e.attributes]
        assert "At the present rate it has caught up in" in said.text


def test_how_many_indexers_would_do_it_by_a_time(viewer: Client, cast: Cast) -> None:
    """60,000 in an hour are 17 a second, and the cast's indexers end 100."""
    by = (timezone.now() + timedelta(hours=1)).isoformat()
    needs = drained(cast, viewer, 60_000, by=by)["needs"]
    assert isinstance(needs, list)
    assert [(n["indexers"], n["possible"]) for n in needs] == [(1, True)]
    over = viewer.get("/api/v1/supervisors/flights/lag/", {"by": "2020-01-01T00:00:00Z"})
    assert (over.status_code, "is over" in over.json()["detail"]) == (400, True)


def test_a_lag_that_grows_never_ends(viewer: Client, cast: Cast) -> None:
    found = drained(cast, viewer, 130_000)
    assert (found["code"], found["done_at"]) == ("never", None)
    assert drain_metric() == float("inf")


def test_a_lag_that_is_not_known_has_no_time(viewer: Client, cast: Cast) -> None:
    assert viewer.get("/api/v1/supervisors/flights/lag/").json()["drain"]["code"] == "unknown"
    assert "headgate_supervisor_drain_seconds" not in take_snapshot()
