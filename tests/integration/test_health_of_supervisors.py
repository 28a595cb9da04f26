"""How supervisors stand, by what is in the store: one truth for REST and pages, and as many statements for many."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.common.health import Code, Health, Kind
from controlplane.datasources.models import Datasource
from controlplane.lag.models import LagSample
from controlplane.publishing.models import IndexerFence
from controlplane.sources.models import Source
from controlplane.supervisors import services
from controlplane.supervisors.health_queries import health_by_supervisor, health_of_supervisor
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.selectors import list_supervisors
from controlplane.supervisors.states import Detail
from controlplane.tasks.models import Status, Task
from controlplane.teams.models import Team
from ingestion.specs.source_traits import SHARE_GROUP
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.support.django_cast import Cast, speaking_as, spec_for

FINE_S, COARSE_S, COARSEST_S = 5, 60, 3600


def sample(
    source: Source, ago: timedelta, lag: int, *, processed: int = 0, resolution_s: int = FINE_S, **sums: int
) -> None:
    at = timezone.now() - ago
    LagSample.objects.create(
        source=source,
        resolution_s=resolution_s,
        at=at,
        observed_at=at,
        lag=lag,
        partitions=[lag],
        in_flight=0,
        processed=processed,
        redelivered=0,
        **sums,
    )


def of_flights(cast: Cast, role: str = "viewer") -> Health:
    return health_of_supervisor(cast.users[role], Supervisor.objects.get(pk="flights"))


def test_one_that_falls_behind(cast: Cast) -> None:
    sample(cast.source, timedelta(minutes=30), 0, resolution_s=COARSE_S)
    sample(cast.source, timedelta(minutes=4), 20_000)
    sample(cast.source, timedelta(seconds=30), 49_000, processed=2_100)
    sample(cast.source, timedelta(), 50_000, processed=2_400)
    said = of_flights(cast)
    assert (said.kind, said.code, said.behind, said.trend) == (Kind.NEEDS_ATTENTION, Code.BEHIND, 50_000, "growing")
    assert "50,000 offsets behind for 30 min" in said.text
    assert "10 records per second" in said.text  # 2,400 in four minutes


def test_a_burst_that_is_read_off(cast: Cast) -> None:
    """It is behind since the burst, to the second, though a minute's largest lag was above that long before."""
    sample(cast.source, timedelta(minutes=30), 0, resolution_s=COARSE_S)
    sample(cast.source, timedelta(minutes=20), 9_000_000, resolution_s=COARSE_S)
    sample(cast.source, timedelta(minutes=4), 0)
    sample(cast.source, timedelta(seconds=70), 1_460_000)
    sample(cast.source, timedelta(), 1_060_000, processed=400_000)
    said = of_flights(cast)
    assert (said.kind, said.code, said.behind, said.trend) == (Kind.WORKING, Code.BEHIND, 1_060_000, "shrinking")
    assert "1,060,000 offsets behind for 4 min, and catching up" in said.text
    assert "done in about 2 min 39 s" in said.text  # 400,000 in a minute


def test_one_that_falls_behind_and_one_that_was_looked_at_once(cast: Cast) -> None:
    """How fast the second is read is not known: a whole number among fractions."""
    sample(cast.source, timedelta(minutes=4), 20_000)
    sample(cast.source, timedelta(), 50_000, processed=2_400)
    task = task_of(supervisor_of(cast.datasource, "second"))
    source = Source.objects.create(
        datasource=cast.datasource, cluster_id="c", group="second", topic="second", topic_id="second"
    )
    IndexerFence.objects.create(task_id=task.pk, number=0, datasource=cast.datasource, source=source, published=5)
    sample(source, timedelta(), 700)
    said = health_by_supervisor(
        cast.users["viewer"], Supervisor.objects.filter(pk__in=["flights", "second"]).with_current()
    )
    assert {pk: (s.code, s.behind) for pk, s in said.items()} == {
        "flights": (Code.BEHIND, 50_000),
        "second": (Code.BEHIND, 700),
    }


def test_a_burst_that_was_read_within_the_minute_is_no_lag(cast: Cast) -> None:
    sample(cast.source, timedelta(minutes=4), 0)
    sample(cast.source, timedelta(seconds=30), 0)
    sample(cast.source, timedelta(), 50_000)
    assert of_flights(cast).code == Code.UP_TO_DATE


def quarantining(source: Source, *parts: tuple[int, int], resolution_s: int = COARSE_S) -> list[datetime]:
    """Samples one by one up to now, each with how many more records have ended by then, and been quarantined."""
    ended, bad = 0, 0
    for n, (more, of_these_bad) in enumerate(parts, start=1 - len(parts)):
        ended, bad = ended + more, bad + of_these_bad
        sample(source, timedelta(seconds=-n * resolution_s), 0, resolution_s=resolution_s, ended=ended, quarantined=bad)
    if resolution_s == COARSE_S:  # and what is looked at as of now
        sample(source, timedelta(minutes=14), 0, ended=ended - 200, quarantined=bad - 40)
        for ago in (timedelta(minutes=1), timedelta()):
            sample(source, ago, 0, ended=ended, quarantined=bad)
    return list(LagSample.objects.filter(resolution_s=resolution_s).order_by("at").values_list("at", flat=True))


FINE, BAD, QUIET, FEW_BAD = (100, 0), (100, 20), (0, 0), (3, 3)


@pytest.mark.parametrize(
    ("minutes", "first_bad"),
    [
        ([FINE, FINE, BAD, BAD, BAD], 2),
        ([FINE, FEW_BAD, FEW_BAD, BAD], 1),  # ten come together only later
        ([FINE, BAD, FINE, BAD, QUIET, BAD], 1),  # one minute among them ends nothing
        ([FINE, BAD, *[FINE] * 20, BAD], 22),
        ([FINE, BAD, *[QUIET] * 20, BAD], 22),
    ],
)
def test_since_when_a_large_part_is_quarantined(cast: Cast, minutes: list[tuple[int, int]], first_bad: int) -> None:
    times = quarantining(cast.source, FINE, *minutes)
    said = of_flights(cast)
    assert (said.code, said.since) == (Code.QUARANTINING, times[1 + first_bad])


def test_a_large_part_is_quarantined_for_longer_than_samples_are_kept(cast: Cast) -> None:
    Source.objects.update(created_at=timezone.now() - timedelta(days=90))
    quarantining(cast.source, *[BAD] * 4)
    said = of_flights(cast)
    assert (said.code, said.since) == (Code.QUARANTINING, None)
    assert "for at least 3 min" in said.text
    hours = quarantining(cast.source, FINE, FINE, BAD, BAD, resolution_s=COARSEST_S)
    assert of_flights(cast).since == hours[2]


def test_it_has_recovered_once_no_bad_record_came_for_a_quarter_of_an_hour(cast: Cast) -> None:
    quarantining(cast.source, FINE, BAD, BAD)
    assert of_flights(cast).code == Code.QUARANTINING
    LagSample.objects.all().delete()
    for minutes, ended in ((14, 500), (1, 900), (0, 1000)):
        ago = timedelta(minutes=minutes)
        sample(cast.source, ago, 0, processed=ended - 60, ended=ended, quarantined=60)
    said = of_flights(cast)
    assert (said.kind, said.code, said.since) == (Kind.OK, Code.UP_TO_DATE, None)


def test_a_reader_that_has_quarantined_from_its_first_record_on(cast: Cast) -> None:
    assert of_flights(cast).code != Code.QUARANTINING
    times = quarantining(cast.source, *[BAD] * 4)
    assert of_flights(cast).since == times[0]


def test_who_suspended_it_and_when(cast: Cast) -> None:
    Task.objects.update(status=Status.SUCCESS)
    before = timezone.now()
    services.suspend(user=cast.users["operator"], supervisor=cast.supervisor)
    said = of_flights(cast)
    assert said.code == Code.SUSPENDED
    assert "by operator since" in said.text
    assert said.since is not None and before <= said.since <= timezone.now()
    Supervisor.objects.update(suspended=False)
    services.suspend(user=cast.users["owner"], supervisor=Supervisor.objects.get())
    assert "by owner since" in of_flights(cast).text


def test_the_topic_is_gone(cast: Cast) -> None:
    seen = datetime.fromisoformat("2025-06-01T12:00:00+00:00")
    Task.objects.update(observation={"topic_exists": False})
    Source.objects.update(looked_at=seen)
    said = of_flights(cast)
    assert (said.kind, said.code, said.since) == (Kind.FAILED, Code.TOPIC_MISSING, seen)
    assert "1,500 rows" in said.text  # of the cast's two indexers


def test_the_old_version_reads_on(cast: Cast) -> None:
    spec = parse_supervisor_spec(spec_for("flights", topic="other-topic")).canonical()
    SpecVersion.objects.create(supervisor=cast.supervisor, version=2, spec=spec)
    Supervisor.objects.update(version=2)
    assert of_flights(cast).code == Code.CHANGING_SPEC


def test_another_number_of_indexers_is_no_change_of_the_spec(cast: Cast) -> None:
    services.scale(user=cast.users["owner"], supervisor=cast.supervisor, task_count=3)
    assert of_flights(cast).code != Code.CHANGING_SPEC


def test_who_has_the_room_is_named_only_to_those_who_may_know(cast: Cast, settings: Any) -> None:
    settings.WORKER_CAPACITY = 2
    beta = Datasource.objects.create(name="betas", team=cast.beta)
    made = supervisor_of(beta, "betas")
    task_of(made, launched_at=None, started_at=None, status=Status.PENDING)
    [said] = health_by_supervisor(cast.users["outsider"], [made]).values()
    assert (said.kind, said.code) == (Kind.WAITING, Code.WAITING_FOR_SLOT)
    assert "0 of 2 are free (others have 2)" in said.text
    [said] = health_by_supervisor(cast.users["superuser"], [made]).values()
    assert "(flights has 2)" in said.text


def test_failing_since_the_first_of_the_failures_in_a_row(cast: Cast) -> None:
    Task.objects.update(status=Status.FAILED)
    errors = [{"at": f"2025-06-01T12:0{n}:00+00:00", "class": "TaskFailed", "message": "m"} for n in (3, 2, 1)]
    Supervisor.objects.update(detailed_state=Detail.UNHEALTHY_TASKS, failures=3, recent_errors=errors)
    said = of_flights(cast)
    assert (said.kind, said.code) == (Kind.FAILED, Code.FAILING)
    assert said.since == datetime.fromisoformat("2025-06-01T12:01:00+00:00")


def test_rest_says_it_of_one_and_of_all(cast: Cast) -> None:
    sample(cast.source, timedelta(minutes=1), 0)
    sample(cast.source, timedelta(), 0)
    client = speaking_as(cast, "viewer")
    one = client.get("/api/v1/supervisors/flights/").json()["health"]
    [listed] = client.get("/api/v1/supervisors/").json()["results"]
    assert one["code"] == listed["health"]["code"] == "idle"
    assert set(one) == {"kind", "code", "label", "text", "cause", "action", "since", "behind", "trend"}


def test_the_list_over_rest_is_filtered_by_how_supervisors_stand(cast: Cast) -> None:
    client = speaking_as(cast, "viewer")

    def found(code: str) -> list[str]:
        return [s["id"] for s in client.get("/api/v1/supervisors/", {"health": code}).json()["results"]]

    code = of_flights(cast).code
    assert (found(code), found("suspended")) == (["flights"], [])
    refused = client.get("/api/v1/supervisors/", {"health": "lagging"})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "health")


def supervisor_of(datasource: Datasource, name: str, **values: Any) -> Supervisor:
    made = Supervisor.objects.create(id=name, datasource=datasource, detailed_state="RUNNING", **values)
    spec = parse_supervisor_spec(spec_for(datasource.name, topic=name, groupId=name)).canonical()
    SpecVersion.objects.create(supervisor=made, version=1, spec=spec)
    return made


def task_of(supervisor: Supervisor, **values: Any) -> Task:
    now = timezone.now()
    running = {"created_at": now, "launched_at": now, "started_at": now, "status": Status.RUNNING}
    return Task.objects.create(
        id=f"task-of-{supervisor.pk}",
        kind=SHARE_GROUP.kind,
        datasource=supervisor.datasource,
        supervisor_id=supervisor.pk,
        spec_version=1,
        **{**running, "spec": supervisor.current.spec, **values},
    )


def one_of_everything(team: Team, number: int) -> None:
    """Supervisors that are behind, wait for room, change their spec, lack their topic, and are suspended."""
    datasource = Datasource.objects.create(name=f"many-{number}", team=team)
    behind = supervisor_of(datasource, f"behind-{number}")
    source = Source.objects.create(
        datasource=datasource, cluster_id="c", group=behind.pk, topic=behind.pk, topic_id=behind.pk
    )
    sample(source, timedelta(minutes=4), 10)
    sample(source, timedelta(), 1000)
    task = task_of(behind)
    IndexerFence.objects.create(task_id=task.pk, number=0, datasource=datasource, source=source, published=5)
    task_of(supervisor_of(datasource, f"waits-{number}"), launched_at=None, started_at=None, status=Status.PENDING)
    changes = supervisor_of(datasource, f"changes-{number}", version=2)
    spec = parse_supervisor_spec(spec_for(datasource.name, topic="other")).canonical()
    SpecVersion.objects.create(supervisor=changes, version=2, spec=spec)
    task_of(changes, spec=spec)
    gone = supervisor_of(datasource, f"gone-{number}")
    task_of(gone, observation={"topic_exists": False})
    Source.objects.create(
        datasource=datasource, cluster_id="c", group=gone.pk, topic=gone.pk, topic_id=gone.pk, looked_at=timezone.now()
    )
    supervisor_of(datasource, f"suspended-{number}", suspended=True)


@pytest.mark.parametrize("listed", [True, False])
def test_many_cost_as_many_statements_as_a_few(cast: Cast, settings: Any, listed: bool) -> None:
    settings.WORKER_CAPACITY = 3
    Supervisor.objects.all().delete()

    def statements() -> int:
        user = cast.users["owner"]
        found = list(list_supervisors(user)) if listed else Supervisor.objects.order_by("pk").with_current()
        with CaptureQueriesContext(connection) as captured:
            said = health_by_supervisor(user, found)
        codes = {s.code for s in said.values()}
        assert codes >= {Code.BEHIND, Code.WAITING_FOR_SLOT, Code.CHANGING_SPEC, Code.TOPIC_MISSING, Code.SUSPENDED}
        return len(captured)

    one_of_everything(cast.alpha, 0)
    few = statements()
    for number in range(1, 6):
        one_of_everything(cast.alpha, number)
    assert statements() == few


def test_a_new_task_that_has_read_nothing_knows_no_better_than_the_one_before(cast: Cast) -> None:
    seen = {"topic_exists": True, "total": 50, "settled": 50, "partitions": 1}
    Task.objects.filter(pk=cast.task.pk).update(observation=seen)
    IndexerFence.objects.all().delete()
    IndexerFence.objects.create(
        task_id=cast.task.pk, datasource=cast.datasource, number=0, epoch=1, polled=50, unparseable=50
    )
    before = of_flights(cast)
    Task.objects.filter(pk=cast.task.pk).update(status=Status.SUCCESS, ended_at=timezone.now())
    copied = Task.objects.get(pk=cast.task.pk)
    copied.pk, copied.status, copied.ended_at, copied.created_at = "next", Status.RUNNING, None, timezone.now()
    copied.save(force_insert=True)
    copied.indexers.create(number=0, state="reading")
    assert (before.code, of_flights(cast).code) == (Code.NOTHING_STORED, Code.NOTHING_STORED)
    Task.objects.filter(pk="next").update(spec_version=2)
    assert of_flights(cast).code != Code.NOTHING_STORED
