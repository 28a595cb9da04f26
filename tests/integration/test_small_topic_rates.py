"""Whether a supervisor's next task shares an application, by what its last one did and how much comes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.lag.trend import LagTrend
from controlplane.supervisors import small_topics
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Status, Task
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.support.django_cast import Cast, spec_for


@pytest.fixture
def version(cast: Cast) -> SpecVersion:
    """Of a supervisor whose topic may have ten records/s."""
    supervisor = Supervisor.objects.create(id="small", datasource=cast.datasource)
    spec = parse_supervisor_spec(spec_for("flights", smallTopicRate=10)).canonical()
    return SpecVersion.objects.create(supervisor=supervisor, version=1, spec=spec, created_by=cast.users["owner"])


def task(cast: Cast, name: str, age_s: float = 0, **fields: Any) -> Task:
    values = {"kind": cast.task.kind, "spec": cast.task.spec, "supervisor_id": "small", "spec_version": 1, **fields}
    created = timezone.now() - timedelta(seconds=age_s)
    return Task.objects.create(pk=name, datasource=cast.datasource, created_at=created, **values)


def comes(monkeypatch: pytest.MonkeyPatch, rate: float) -> None:
    monkeypatch.setattr(small_topics, "_trend", lambda _: LagTrend(timezone.now(), 0, 0, taken_per_s=rate))


def test_a_topic_that_was_never_read_shares(version: SpecVersion) -> None:
    assert small_topics.may_share(version.supervisor, version)


def test_on_a_cluster_nothing_is_shared(version: SpecVersion, settings: Any) -> None:
    settings.SPARK_MASTER = "spark://elsewhere:7077"
    assert not small_topics.may_share(version.supervisor, version)


@pytest.mark.parametrize(("rate", "shares"), [(10, True), (11, False)])
def test_one_that_shares_goes_on_until_it_has_grown(
    cast: Cast, version: SpecVersion, monkeypatch: pytest.MonkeyPatch, rate: float, shares: bool
) -> None:
    last = task(cast, "last", status=Status.RUNNING, shares_application=True)
    task(cast, "ended", 60, status=Status.SUCCESS, shares_application=True)
    comes(monkeypatch, rate)
    assert small_topics.may_share(version.supervisor, version) is shares
    assert small_topics.outgrown(version.supervisor, list(Task.objects.filter(supervisor_id="small"))) == (
        set() if shares else {last.pk}
    )


@pytest.mark.parametrize(("rate", "shares"), [(5, True), (6, False)])
def test_one_that_grew_comes_back_when_it_is_much_smaller(
    cast: Cast, version: SpecVersion, monkeypatch: pytest.MonkeyPatch, rate: float, shares: bool
) -> None:
    task(cast, "shared", 60, status=Status.SUCCESS, shares_application=True)
    task(cast, "alone", status=Status.RUNNING)
    comes(monkeypatch, rate)
    assert small_topics.may_share(version.supervisor, version) is shares
    assert small_topics.outgrown(version.supervisor, list(Task.objects.filter(supervisor_id="small"))) == set()


def test_a_spec_that_asks_for_it_first_is_not_measured_by_tasks_of_another(
    cast: Cast, version: SpecVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    task(cast, "of another spec", status=Status.RUNNING, spec_version=None)
    comes(monkeypatch, 9)
    assert small_topics.may_share(version.supervisor, version)
