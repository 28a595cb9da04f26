"""A login that lacks a right: what the control plane makes of it, and when it has the right."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.supervisors import services
from controlplane.supervisors.lag import observe_waiting
from controlplane.supervisors.retention_countdown import Code
from controlplane.supervisors.run import iterate
from controlplane.supervisors.unread_times import countdown_of, observe_unread
from controlplane.tasks.models import Goal
from tests.integration.test_supervisor_iterations import began_to_read, reads, submit, tasks_of
from tests.integration.test_unread_times import DAY_MS, ms_ago, produce, time_of
from tests.integration.test_waiting_lag import read_source
from tests.support.django_cast import Cast
from tests.support.guarded_kafka import Guarded, guarded
from tests.support.waiting import wait_for

__all__ = ["guarded"]  # a fixture


def test_a_login_without_the_right_says_which(cast: Cast, guarded: Guarded) -> None:
    """To read the topic is enough to follow its lag, and no right to a group is needed."""
    topic = guarded.topic(partitions=2, config={"retention.ms": str(DAY_MS)})
    guarded.give("TOPIC", topic, "READ")
    oldest = ms_ago(3)
    produce(guarded, topic, 1, oldest)
    spec = guarded.kafka_spec(topic)
    spec["ioConfig"]["consumerProperties"] = guarded.properties
    supervisor = services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    read_source(supervisor, guarded, topic)
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    observe_waiting()
    observe_unread()
    found = countdown_of(supervisor)
    assert found is not None
    assert (found.code, found.expires_at) == (Code.UNKNOWN, None)
    assert f"lacks the right DESCRIBE_CONFIGS on topic '{topic}'" in found.text
    guarded.give("TOPIC", topic, "DESCRIBE_CONFIGS")
    observe_unread()
    found = countdown_of(supervisor)
    assert found is not None
    assert found.expires_at == time_of(oldest + DAY_MS)


@pytest.mark.parametrize("lacks", ["TOPIC", "GROUP"])
def test_a_version_whose_login_may_not_read_gets_no_task(
    cast: Cast, guarded: Guarded, clients: dict[str, Client], lacks: str
) -> None:
    """So what reads is not ended for it either, however full the pool is. When it may, it takes over."""
    topic, group = guarded.topic(), f"of-{lacks}"
    guarded.give("TOPIC", topic, "DESCRIBE", *(["READ"] if lacks == "GROUP" else []))
    supervisor = submit(cast, guarded, guarded.bootstrap, topic)
    iterate()
    [first] = tasks_of(supervisor)
    reads(first)
    began_to_read(first, timezone.now())
    iterate()
    spec = guarded.kafka_spec(topic, consumerProperties=guarded.properties, period="PT0.000001S")
    if lacks == "GROUP":
        spec["ioConfig"] |= {"assignment": "consumer_group", "groupId": group}
    services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    for _ in range(3):
        iterate()
    [only] = tasks_of(supervisor)
    assert (only.pk, only.goal) == (first.pk, Goal.RUN)
    missing = f"Grant this login the right READ on {'topic ' + topic if lacks == 'TOPIC' else 'group ' + group}"
    shown = clients["viewer"].get(f"/api/v1/supervisors/{topic}/").json()["health"]
    assert (shown["code"], shown["kind"]) == ("kafka_refuses", "failed")
    assert missing in shown["text"]
    assert "Its task uses version 1 of the spec until a task with version 2 runs." in shown["text"]
    guarded.give(lacks, topic if lacks == "TOPIC" else group, "READ")

    def started() -> bool:
        iterate()
        return any(task.spec_version == 2 for task in tasks_of(supervisor))

    wait_for("a task of version 2 starts", started, 30)
