"""The series of lag: how samples are kept, thinned and read, on a real PostgreSQL, and the REST that shows it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.connections.kafka import TopicOffsets
from controlplane.lag import samples
from controlplane.lag.models import LagSample
from controlplane.lag.series import lag_samples, lag_series, resolution_for
from controlplane.lag.topic_lag import record_lag
from controlplane.lag.trend import lag_trends, last_time_within
from controlplane.publishing.models import IndexerFence
from controlplane.sources.models import Source
from controlplane.supervisors.lag_state import seconds_left
from controlplane.tasks.models import Indexer, Task
from tests.support.django_cast import Cast
from tests.support.publishes import make_source

FLIGHTS = "/api/v1/supervisors/flights/lag/"


@pytest.fixture
def source(db: None) -> Source:
    return make_source("lagging")


def sample(source: Source, at: datetime, seconds: int = 5, **values: Any) -> LagSample:
    known = {"lag": 0, "partitions": [0], "in_flight": 0, "processed": 0, "redelivered": 0, **values}
    return LagSample.objects.create(source=source, resolution_s=seconds, at=at, observed_at=at, **known)


def test_a_look_leaves_a_sample_of_each_resolution_and_no_second_one_at_once(source: Source) -> None:
    samples.store_sample(source, {0: 10, 2: 5}, more=15, in_flight=7)
    began = LagSample.objects.get(source=source, resolution_s=5).at
    samples.store_sample(source, {0: 900})
    fine = LagSample.objects.filter(source=source, resolution_s=5, at=began).get()
    assert (fine.lag, fine.partitions, fine.in_flight) == (30, [10, 0, 5], 7)
    assert set(LagSample.objects.values_list("resolution_s", flat=True)) == {5, 60, 3600}


def test_no_more_is_held_than_is_left(cast: Cast) -> None:
    """Indexers said it seconds ago; what they held then may be settled by now. What is left must be known for that."""
    reads = cast.supervisor.io_config.model_copy(update={"useEarliestOffset": False})
    for partitions, held in (((0, 1), 410), ((0, 1, 2), 68_388)):
        starts, ends = dict.fromkeys(partitions, 0), dict.fromkeys(partitions, 1000)
        topic = TopicOffsets(cast.source.topic_id, starts, ends, ends)
        LagSample.objects.all().delete()
        record_lag(cast.datasource, reads, cast.supervisor.owner, topic, in_flight=68_388)
        assert set(LagSample.objects.values_list("lag", "in_flight")) == {(410, held)}


def test_coarse_samples_keep_the_peak_with_its_partitions_and_the_last_sums(source: Source) -> None:
    held = IndexerFence.objects.create(
        task_id="t", number=0, datasource=source.datasource, source=source, published=100
    )
    samples.store_sample(source, {0: 10, 1: 80}, in_flight=5)
    _make_room(source)
    IndexerFence.objects.filter(pk=held.pk).update(published=400, rolled_up=50, redelivered=3, redelivered_now=4)
    samples.store_sample(source, {0: 20, 1: 30}, in_flight=9)
    hours = LagSample.objects.filter(source=source, resolution_s=3600).order_by("at")
    assert (hours[0].lag, hours[0].partitions) == (90, [10, 80])
    last = hours.latest("at")
    assert (last.processed, last.redelivered, last.in_flight) == (450, 7, 9)


def test_a_trend_counts_what_was_quarantined_lately_and_not_what_a_replay_could_not_read(source: Source) -> None:
    common = {"datasource": source.datasource, "source": source, "number": 0}
    held = IndexerFence.objects.create(task_id="t", published=100, quarantined=7, **common)
    IndexerFence.objects.create(task_id="again", quarantined=500, replay=True, **common)
    samples.store_sample(source, {0: 10})
    _make_room(source)
    IndexerFence.objects.filter(pk=held.pk).update(published=160, thrown_away=400, unparseable=30, quarantined=37)
    samples.store_sample(source, {0: 10})
    Source.objects.filter(pk=source.pk).update(created_at=timezone.now() - timedelta(days=1))
    trend = lag_trends([source.pk])[source.pk]
    assert (trend.ended, trend.quarantined) == (60 + 400 + 30, 30)


def test_a_trend_leaves_out_what_only_backfills_read(source: Source) -> None:
    """What a skip has left is no lag of the reader, and what a backfill stores is not stored by the reader."""
    common = {"datasource": source.datasource, "source": source, "number": 0}
    reader = IndexerFence.objects.create(task_id="t", published=100, **common)
    backfill = IndexerFence.objects.create(task_id="fill", bounded=True, published=1_000, **common)
    samples.store_sample(source, {0: 9_070, 1: 5}, in_flight=20, passed={0: 9_000})
    _make_room(source)
    Source.objects.filter(pk=source.pk).update(created_at=timezone.now() - timedelta(days=1))
    IndexerFence.objects.filter(pk=reader.pk).update(published=160)
    IndexerFence.objects.filter(pk=backfill.pk).update(published=5_000)
    samples.store_sample(source, {0: 5_050, 1: 6}, in_flight=20, passed={0: 5_000})
    trend = lag_trends([source.pk])[source.pk]
    assert (trend.lag, trend.passed, trend.ahead, trend.before, trend.unread) == (5_056, 5_000, 56, 75, 36)
    assert trend.records_per_s == pytest.approx(60 / 60)
    assert not trend.passed_stays, "it is not known for a minute yet"
    assert last_time_within({source.pk: 55.0})[source.pk] is not None
    assert last_time_within({source.pk: 30.0})[source.pk] is None


def test_what_is_skipped_is_not_read(source: Source) -> None:
    """A skip leaves a hundred thousand to a backfill at once; no rate follows from that."""
    now = timezone.now()
    sample(source, now - timedelta(seconds=120), lag=102_500, partitions=[102_500])
    sample(source, now - timedelta(seconds=70), lag=102_500, partitions=[102_500])
    sample(source, now, lag=102_500, partitions=[102_500], passed=[100_000])
    trend = lag_trends([source.pk])[source.pk]
    assert (trend.ahead, trend.before, trend.read_in_minute) == (2_500, 2_500, 0)
    assert (trend.taken_per_s, seconds_left(trend)) == (0, None)


def test_what_a_reader_holds_is_read_before_it_is_stored(source: Source) -> None:
    now = timezone.now()
    sample(source, now - timedelta(seconds=100), lag=9_000, partitions=[9_000], processed=50)
    sample(source, now, lag=8_900, partitions=[8_900], processed=150, in_flight=900)
    trend = lag_trends([source.pk])[source.pk]
    assert (trend.records_per_s, trend.taken_per_s) == (1, 10)
    assert (trend.read_in_minute, seconds_left(trend)) == (1_000, 60 * 8)


@pytest.mark.parametrize(("a_minute_ago", "stays"), [(5_000, True), (5_001, False), (4_000, True)])
def test_what_nothing_reads_stays_for_a_minute(source: Source, a_minute_ago: int, stays: bool) -> None:
    now = timezone.now()
    sample(source, now - timedelta(seconds=70), lag=a_minute_ago, partitions=[a_minute_ago], passed=[a_minute_ago])
    sample(source, now, lag=5_000, partitions=[5_000], passed=[5_000])
    assert lag_trends([source.pk])[source.pk].passed_stays is stays


def test_what_a_new_reader_quarantines_before_the_first_look_counts(source: Source) -> None:
    common = {"datasource": source.datasource, "source": source, "number": 0}
    IndexerFence.objects.create(task_id="t", unparseable=10_000, quarantined=10_000, **common)
    samples.store_sample(source, {0: 0})
    _make_room(source)
    samples.store_sample(source, {0: 0})
    trend = lag_trends([source.pk])[source.pk]
    assert (trend.ended, trend.quarantined) == (10_000, 10_000)


def _make_room(source: Source) -> None:
    """Makes the last look five seconds older."""
    for row in LagSample.objects.filter(source=source, resolution_s=5):
        LagSample.objects.filter(pk=row.pk).update(at=row.at - timedelta(seconds=5))


def test_what_is_told_of_a_reader_may_change_until_minutes_after_its_last_record(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its health is told by its samples: with the last record it catches up, then it keeps up, then it is idle."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    IndexerFence.objects.create(task_id="t", number=0, datasource=source.datasource, source=source, published=100)
    assert not samples.store_sample(source, {0: 0}), "one sample says as much as it says"
    _make_room(source)
    earlier = sample(source, now - timedelta(minutes=5, seconds=8), processed=50)
    assert samples.store_sample(source, {0: 0})
    assert not samples.store_sample(source, {0: 0}), "these five seconds have a sample already"
    earlier.delete()
    _make_room(source)
    assert not samples.store_sample(source, {0: 0}), "nothing has come for so long: nobody need look again"


def test_what_is_old_is_dropped_by_its_resolution(source: Source) -> None:
    now = timezone.now()
    kept = {
        sample(source, now - timedelta(hours=1)).pk,
        sample(source, now - timedelta(hours=47), 60).pk,
        sample(source, now - timedelta(days=29), 3600).pk,
    }
    sample(source, now - timedelta(hours=3))
    sample(source, now - timedelta(hours=49), 60)
    sample(source, now - timedelta(days=31), 3600)
    assert samples.drop_old() == 3
    assert set(LagSample.objects.values_list("pk", flat=True)) == kept


def test_rates_are_differences_and_a_gap_has_none(source: Source) -> None:
    end = timezone.now()
    begin = end - timedelta(minutes=3)
    for n in range(13):
        sample(source, begin - timedelta(seconds=5 * n), processed=6600 - n * 500, redelivered=60, lag=7 + n)
    sample(source, begin + timedelta(seconds=5), processed=1100 + 60 * 101, redelivered=120)
    sample(source, begin + timedelta(seconds=63), processed=1100 + 60 * 101 + 58, redelivered=120)
    sample(source, begin + timedelta(seconds=130), processed=9000, redelivered=130)
    points = lag_series(Source.objects.filter(pk=source.pk), start=begin, end=end).points
    assert [p.processed_per_s for p in points] == [100, 101, 1, None], "two looks a minute apart need none between them"
    assert [p.redelivered_per_s for p in points] == [0, 1, 0, None]
    assert points[0].lag == 7


def test_the_first_minute_of_a_reader_has_rates(source: Source) -> None:
    """Though it has stored rows before anybody looks."""
    now = timezone.now()
    Source.objects.filter(pk=source.pk).update(created_at=now - timedelta(seconds=14))
    sample(source, now - timedelta(seconds=10), processed=300)
    sample(source, now - timedelta(seconds=5), processed=600, redelivered=6)
    points = lag_series(Source.objects.filter(pk=source.pk)).points
    assert [(p.processed_per_s, p.redelivered_per_s) for p in points] == [(5, 0), (10, 0.1)]


def test_two_topics_of_one_name_are_one_series_without_a_rate_between_them(source: Source) -> None:
    now = timezone.now()
    again = make_source("lagging", "topic-id-2")
    sample(source, now - timedelta(seconds=20), processed=500, lag=1)
    sample(again, now - timedelta(seconds=15), processed=900, lag=2)
    series = lag_series(Source.objects.filter(group=source.group))
    assert [(p.lag, p.processed_per_s) for p in series.points] == [(1, None), (2, None)]


@pytest.mark.parametrize(
    ("ago", "length", "name"),
    [
        (timedelta(hours=1), timedelta(hours=1), "5s"),
        (timedelta(hours=3), timedelta(hours=1), "1m"),
        (timedelta(hours=40), timedelta(hours=40), "1m"),
        (timedelta(days=3), timedelta(hours=1), "1h"),
    ],
)
def test_the_finest_resolution_that_reaches_back(ago: timedelta, length: timedelta, name: str) -> None:
    now = timezone.now()
    assert resolution_for(now - ago, now - ago + length, now).name == name


def test_a_window_that_makes_too_many_points_is_refused(source: Source) -> None:
    now = timezone.now()
    window: dict[str, Any] = {"start": now - timedelta(days=2), "end": now}
    with pytest.raises(InvalidInput):
        lag_series(Source.objects.all(), **window, resolution="5s")
    with pytest.raises(InvalidInput):
        lag_series(Source.objects.all(), start=now, end=now)


def test_what_the_autoscaler_reads(source: Source) -> None:
    now = timezone.now()
    for seconds in (40, 30, 20):
        sample(source, now - timedelta(seconds=seconds), lag=seconds)
    since = now - timedelta(seconds=40)
    assert [n for _, n in lag_samples(source, since=since, until=now)] == [30, 20]


# REST


def test_lag_now(viewer: Client, cast: Cast) -> None:
    """Seven offsets lie behind an open transaction: the series has them, and no partition."""
    Source.objects.update(looked_at=timezone.now(), undecided=7)
    Task.objects.update(observation={"error": "", "topic_exists": True})
    Indexer.objects.filter(number=1).update(in_flight=12)
    answer = viewer.get(FLIGHTS).json()
    assert (answer["lag"], answer["problem"], answer["in_flight"]) == (417, "", 12)
    assert [(p["partition"], p["end_offset"], p["settled"], p["lag"]) for p in answer["partitions"]] == [
        (0, 1000, 990, 10),
        (1, 1000, 600, 400),
    ]


@pytest.mark.parametrize(
    ("observation", "status", "part"),
    [
        ({"error": "timed out"}, "RUNNING", "Kafka can't be reached: timed out"),
        ({"error": "", "topic_exists": False}, "RUNNING", "no such topic"),
        ({"error": "", "topic_exists": True}, "RUNNING", "more than a minute"),
        ({}, "FAILED", "more than a minute"),
    ],
)
def test_a_lag_that_is_not_known_as_of_now_says_why(
    viewer: Client, cast: Cast, observation: dict[str, Any], status: str, part: str
) -> None:
    Task.objects.update(observation=observation, status=status)
    answer = viewer.get(FLIGHTS).json()
    assert part in answer["problem"]
    assert answer["lag"] == 410


def test_the_series_over_rest(viewer: Client, cast: Cast) -> None:
    at = timezone.now().replace(microsecond=0) - timedelta(minutes=1)
    sample(cast.source, at, lag=50, partitions=[20, 30], in_flight=3)
    whole = viewer.get(f"{FLIGHTS}series/").json()
    assert (whole["resolution"], [(p["lag"], p["in_flight"]) for p in whole["points"]]) == ("5s", [(50, 3)])
    one = viewer.get(f"{FLIGHTS}series/", {"partition": 1}).json()
    assert [p["lag"] for p in one["points"]] == [30]
    assert [p["lag"] for p in viewer.get(f"{FLIGHTS}series/", {"partition": 7}).json()["points"]] == [0]
    empty = viewer.get(f"{FLIGHTS}series/", {"from": "2025-01-01T00:00:00Z", "to": "2025-01-02T00:00:00Z"}).json()
    assert (empty["resolution"], empty["points"]) == ("1h", [])


@pytest.mark.parametrize(
    "query", [{"resolution": "2s"}, {"partition": -1}, {"from": "x"}, {"from": "2030-01-01T00:00:00Z"}, {"odd": 1}]
)
def test_bad_questions(viewer: Client, query: dict[str, Any]) -> None:
    assert viewer.get(f"{FLIGHTS}series/", query).status_code == 400
