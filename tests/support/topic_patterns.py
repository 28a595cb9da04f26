"""Supervisors whose spec names its topics by a pattern: submitted, with their topics and tasks."""

from __future__ import annotations

from typing import Any

from controlplane.supervisors import services
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.run import run_all
from controlplane.tasks.models import Task
from tests.support.broker import Broker
from tests.support.django_cast import Cast

V1 = "/api/v1/supervisors/"


def a_spec(broker: Broker, stem: str, kind: str = "kafka", **io_config: Any) -> dict[str, Any]:
    """Of a supervisor that is due whenever it is asked. Without a topic it reads those that begin with the stem."""
    spec_of = broker.kafka_spec if kind == "kafka" else broker.spec
    spec = spec_of(stem, startDelay="PT0S", period="PT0.000001S")
    del spec["ioConfig"]["topic"]
    pattern = {} if "topic" in io_config else {"topicPattern": f"{stem}-.*"}
    spec["ioConfig"] |= {**pattern, **io_config}
    return spec


def submitted(cast: Cast, broker: Broker, stem: str, kind: str = "kafka", **io_config: Any) -> Supervisor:
    spec = a_spec(broker, stem, kind, **io_config)
    return services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")


def topics_of(supervisor: Supervisor) -> dict[str, Supervisor]:
    children = Supervisor.objects.filter(parent=supervisor).order_by("pk")
    return {child.io_config.topic: child for child in children}


def rounds() -> None:
    """Its own, theirs, and its own again."""
    for _ in range(3):
        run_all()


def tasks_of(supervisor: Supervisor) -> list[Task]:
    return list(Task.objects.filter(supervisor_id=supervisor.pk))
