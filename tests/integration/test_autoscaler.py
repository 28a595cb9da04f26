"""The autoscaler in a supervisor's rounds on a real PostgreSQL: what is changed, kept, shown and refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.lag.models import LagSample
from controlplane.lag.series import lag_samples, lag_series
from controlplane.metrics.snapshot import take_snapshot
from controlplane.publishing.models import ProgressKey
from controlplane.sources.models import Source
from controlplane.supervisors import autoscaler, services
from controlplane.supervisors.models import ScaleAction, Supervisor
from controlplane.supervisors.run import run
from controlplane.tasks.models import Goal, Indexer, Status, Task
from ingestion.specs.source_traits import SHARE_GROUP, SHARE_GROUPS, STORED_OFFSETS
from tests.integration.test_supervisor_services import submit
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.html import parsed

CONFIG = {
    "enableTaskAutoScaler": True,
    "taskCountMin": 1,
    "taskCountMax": 4,
    "scaleOutThreshold": 1000,
    "scaleInThreshold": 10,
    "scaleActionStartDelayMillis": 0,
}


def scaled_spec(name: str, kind: str = "share_group", **changes: Any) -> dict[str, Any]:
    spec = spec_for(name, autoScalerConfig={**CONFIG, **changes})
    if kind != "share_group":
        spec["type"] = "kafka"
        del spec["tuningConfig"], spec["ioConfig"]["groupId"]
        spec["ioConfig"] |= {"assignment": kind, "startDelay": "PT0S"}
    return spec


def reading(supervisor: Supervisor, kind: str = "share_group", partitions: int = 4) -> Source:
    """Its task reads, and its source is known."""
    run(supervisor.pk)
    task = Task.objects.reading().get(supervisor_id=supervisor.pk)
    Task.objects.filter(pk=task.pk).update(status=Status.RUNNING, started_at=timezone.now(), launched_at=timezone.now())
    Indexer.objects.create(task=task, number=0, state="reading")
    io_config = task.spec["spec"]["ioConfig"]
    source = Source.objects.create(
        datasource=supervisor.datasource,
        kind=SHARE_GROUPS.kind if kind == "share_group" else STORED_OFFSETS.kind,
        cluster_id="cluster",
        group=io_config.get("groupId", supervisor.pk),
        topic=io_config["topic"],
        topic_id=f"id-of-{supervisor.pk}",
    )
    ProgressKey.objects.bulk_create(ProgressKey(source=source, partition=p) for p in range(partitions))
    return source


def saw(source: Source, lag: int, partitions: list[int] | None = None, passed: list[int] | None = None) -> None:
    """A lag was seen just now; how much of it lies before the stored offsets."""
    now = timezone.now()
    LagSample.objects.create(
        source=source,
        resolution_s=5,
        at=now,
        observed_at=now,
        lag=lag,
        partitions=[lag] if partitions is None else partitions,
        passed=passed or [],
        in_flight=0,
        processed=0,
        redelivered=0,
    )


def long_ago(supervisor: Supervisor) -> None:
    """The autoscaler may act again."""
    Supervisor.objects.filter(pk=supervisor.pk).update(scaling_checked_at=None)
    for action in ScaleAction.objects.filter(supervisor=supervisor):
        ScaleAction.objects.filter(pk=action.pk).update(at=action.at - timedelta(hours=1))
    for sample in LagSample.objects.all():
        LagSample.objects.filter(pk=sample.pk).update(observed_at=sample.observed_at - timedelta(hours=1))


def wanted(supervisor: Supervisor) -> list[tuple[int, str]]:
    """(indexers, goal) of its tasks, oldest first."""
    tasks = Task.objects.filter(supervisor_id=supervisor.pk).order_by("created_at")
    return list(tasks.values_list("indexers_wanted", "goal"))


@pytest.mark.parametrize("kind", ["share_group", "consumer_group"])
def test_the_running_task_is_scaled_out_and_in(cast: Cast, clients: dict[str, Client], kind: str) -> None:
    supervisor = submit(cast, scaled_spec("swinging", kind))
    source = reading(supervisor, kind)
    assert wanted(supervisor) == [(1, Goal.RUN)]
    saw(source, 5000)
    run(supervisor.pk)
    assert wanted(supervisor) == [(3, Goal.RUN)]
    saw(source, 5000)
    run(supervisor.pk)
    assert wanted(supervisor) == [(3, Goal.RUN)], "it acted again too soon"
    long_ago(supervisor)
    saw(source, 0)
    run(supervisor.pk)
    assert wanted(supervisor) == [(2, Goal.RUN)]
    supervisor.refresh_from_db()
    assert (supervisor.version, supervisor.decided_task_count) == (1, 2)
    shown = clients["viewer"].get("/api/v1/supervisors/swinging/").json()
    assert (shown["task_count"], shown["spec"]["spec"]["ioConfig"]["taskCount"]) == (2, 1)
    assert (shown["auto_scaler"]["task_count_min"], shown["auto_scaler"]["task_count_max"]) == (1, 4)
    assert "at most 10 in 1 of 1 sample" in shown["auto_scaler"]["last_action"]["reason"]
    actions = clients["viewer"].get("/api/v1/supervisors/swinging/scale-actions/").json()["results"]
    assert [(a["before"], a["after"]) for a in actions] == [(3, 2), (1, 3)]


def reason_of(supervisor: Supervisor, client: Client) -> str:
    """After a round, in REST, on both pages and as a metric."""
    run(supervisor.pk)
    told = client.get(f"/api/v1/supervisors/{supervisor.pk}/").json()["auto_scaler"]
    metrics = take_snapshot().get("headgate_supervisor_autoscaler_decision", [])
    assert [labels[-1] for labels, _ in metrics if labels[-2] == supervisor.pk] == (
        [told["reason"]] * bool(told["reason"])
    )
    for path in ("", "autoscaler/"):
        shown = [
            e
            for e in parsed(client.get(f"/supervisors/{supervisor.pk}/{path}")).all()
            if "data-scaling-reason" in e.attributes
        ]
        assert [e.attributes["data-scaling-reason"] for e in shown] == [told["reason"]] * bool(told["reason"])
        assert all(told["text"] in e.text for e in shown)
    return str(told["reason"])


def test_each_check_keeps_its_reason(cast: Cast) -> None:
    viewer = browsing_as(cast, "viewer")
    supervisor = submit(cast, scaled_spec("reasoning", scaleActionPeriodMillis=1))
    assert reason_of(supervisor, viewer) == "lag_unknown", "it has read nothing"
    source = reading(supervisor)
    assert reason_of(supervisor, viewer) == "lag_unknown", "no sample"
    saw(source, 500)
    assert reason_of(supervisor, viewer) == "lag_in_bounds"
    saw(source, 5000)
    assert reason_of(supervisor, viewer) == "scaled"
    assert reason_of(supervisor, viewer) == "cooldown"
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    supervisor.refresh_from_db()
    assert reason_of(supervisor, viewer) == ""


def test_before_its_first_check_it_says_when_that_is(cast: Cast) -> None:
    supervisor = submit(cast, scaled_spec("patient", scaleActionStartDelayMillis=3_600_000))
    reading(supervisor)
    assert reason_of(supervisor, browsing_as(cast, "viewer")) == "start_delay"


@pytest.mark.parametrize(
    ("aggregate", "after", "said"),
    [
        ("SUM", 3, "The lag was at least 1,000 in 1 of 1 sample; it is 1,301 now."),
        ("MAX", 1, ""),
        ("AVERAGE", 1, ""),
        (None, 3, "The lag was at least"),
    ],
)
def test_the_partitions_lags_are_aggregated_as_the_spec_says(
    cast: Cast, aggregate: str | None, after: int, said: str
) -> None:
    supervisor = submit(cast, scaled_spec("aggregating", lagAggregate=aggregate))
    source = reading(supervisor)
    saw(source, 1301, partitions=[999, 301, 1])
    run(supervisor.pk)
    assert wanted(supervisor) == [(after, Goal.RUN)]
    action = ScaleAction.objects.filter(supervisor=supervisor).first()
    assert (action.reason if action else "").startswith(said) and bool(action) is bool(said)


@pytest.mark.parametrize(
    ("aggregate", "passed", "after"),
    [
        ("SUM", [900], 3),
        ("SUM", [901], 1),
        ("MAX", [0, 900], 1),  # the first partition's 600 are the most then
        ("MAX", [], 3),
        ("AVERAGE", [300, 1300], 1),
        ("AVERAGE", [0, 0], 1),  # 950 of 600 and 1,300
    ],
)
def test_what_its_indexers_have_passed_is_not_theirs_to_read(
    cast: Cast, aggregate: str, passed: list[int], after: int
) -> None:
    """Backfills read it, whatever the number of its indexers is. The lag that pages show has it."""
    supervisor = submit(cast, scaled_spec("passing", lagAggregate=aggregate))
    source = reading(supervisor)
    saw(source, 1900, partitions=[600, 1300], passed=passed)
    run(supervisor.pk)
    assert wanted(supervisor) == [(after, Goal.RUN)]
    assert lag_series(Source.objects.filter(pk=source.pk)).points[0].lag == 1900


def test_an_average_is_of_whole_numbers_and_of_nothing_zero(cast: Cast) -> None:
    source = reading(submit(cast, scaled_spec("averaging")))
    saw(source, 12, partitions=[5, 5, 1])
    saw(source, 0, partitions=[])
    since, until = timezone.now() - timedelta(minutes=1), timezone.now()
    for aggregate, lags in (("SUM", [12, 0]), ("MAX", [5, 0]), ("AVERAGE", [3, 0])):
        assert [lag for _, lag in lag_samples(source, since=since, until=until, aggregate=aggregate)] == lags
        drawn = lag_series(Source.objects.filter(pk=source.pk), start=since, aggregate=aggregate)
        assert [point.lag for point in drawn.points] == lags


def test_partitions_dealt_out_by_number_are_dealt_out_anew_by_the_next_task(cast: Cast) -> None:
    supervisor = submit(cast, scaled_spec("by-number", "offset_range"))
    source = reading(supervisor, "offset_range", partitions=2)
    saw(source, 5000)
    run(supervisor.pk)
    assert wanted(supervisor) == [(1, Goal.RUN), (2, Goal.RUN)], "no more than there are partitions"
    new = Task.objects.filter(supervisor_id=supervisor.pk).latest("created_at")
    Task.objects.filter(pk=new.pk).update(status=Status.RUNNING)
    Indexer.objects.create(task=new, number=0, state="waiting")
    run(supervisor.pk)
    assert wanted(supervisor) == [(1, Goal.FINISH), (2, Goal.RUN)]
    assert new.spec["spec"]["ioConfig"]["taskCount"] == 2


def test_nothing_is_decided_while_it_rests_or_nothing_reads(cast: Cast) -> None:
    supervisor = submit(cast, scaled_spec("resting"))
    source = reading(supervisor)
    saw(source, 5000)
    Indexer.objects.filter(task__supervisor_id=supervisor.pk).update(state="starting")
    run(supervisor.pk)
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    run(supervisor.pk)
    assert not ScaleAction.objects.exists()


def test_what_was_decided_outlives_tasks_and_versions_but_not_the_autoscaler(cast: Cast) -> None:
    supervisor = submit(cast, scaled_spec("lasting"))
    saw(reading(supervisor), 5000)
    run(supervisor.pk)
    submit(cast, scaled_spec("lasting", taskCountMax=2))
    run(supervisor.pk)
    assert wanted(supervisor) == [(2, Goal.RUN)], "the task goes on, within the new bounds"
    submit(cast, spec_for("lasting", taskCount=4))
    run(supervisor.pk)
    supervisor.refresh_from_db()
    assert (wanted(supervisor), supervisor.decided_task_count) == ([(4, Goal.RUN)], None)


def test_a_resume_begins_anew(cast: Cast) -> None:
    supervisor = submit(cast, scaled_spec("anew", scaleActionStartDelayMillis=60_000))
    began = supervisor.scaling_since
    saw(reading(supervisor), 5000)
    Supervisor.objects.filter(pk=supervisor.pk).update(scaling_since=began - timedelta(minutes=2))
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    services.resume(user=cast.users["owner"], supervisor=supervisor)
    run(supervisor.pk)
    assert not ScaleAction.objects.exists()


def test_scaling_by_hand_is_refused_meanwhile(cast: Cast) -> None:
    supervisor = submit(cast, scaled_spec("by-itself"))
    with pytest.raises(Conflict, match="autoscaler"):
        services.scale(user=cast.users["owner"], supervisor=supervisor, task_count=2)


def test_it_may_not_want_more_than_there_can_be(cast: Cast, settings: LazySettings) -> None:
    with pytest.raises(InvalidInput, match=r"autoScalerConfig\.taskCountMax is 33"):
        submit(cast, scaled_spec("greedy", taskCountMax=33))
    settings.WORKER_CAPACITY = 3
    with pytest.raises(InvalidInput, match="HEADGATE_WORKER_CAPACITY"):
        submit(cast, scaled_spec("greedy"))


def test_it_is_given_what_the_pool_has(cast: Cast, settings: LazySettings) -> None:
    Task.objects.all().delete()
    settings.WORKER_CAPACITY = 4
    supervisor = submit(cast, scaled_spec("modest", scaleOutStep=3))
    source = reading(supervisor)
    Task.objects.create(
        id="neighbour",
        kind=SHARE_GROUP.kind,
        datasource=cast.datasource,
        spec={},
        indexers_wanted=2,
        created_at=timezone.now(),
        launched_at=timezone.now(),
    )
    saw(source, 5000)
    run(supervisor.pk)
    assert wanted(supervisor) == [(2, Goal.RUN)]
    Task.objects.filter(pk="neighbour").delete()
    run(supervisor.pk)
    assert wanted(supervisor) == [(4, Goal.RUN)]


def test_its_history_is_bounded(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoscaler, "ACTIONS_KEPT", 3)
    supervisor = submit(cast, scaled_spec("busy", minTriggerScaleActionFrequencyMillis=0, scaleActionPeriodMillis=1))
    source = reading(supervisor)
    for n in range(5):
        saw(source, 5000 if n % 2 == 0 else 0)
        run(supervisor.pk)
        long_ago(supervisor)
    assert ScaleAction.objects.filter(supervisor=supervisor).count() == 3
