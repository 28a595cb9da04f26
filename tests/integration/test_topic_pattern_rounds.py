"""Rounds of a supervisor with a ``topicPattern`` that find it at rest, or meet a change; Kafka's answers are given."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone
from pytest_django import Settings

from controlplane.connections.kafka import KafkaProblem
from controlplane.supervisors import services
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.run import run, run_all
from controlplane.supervisors.topic_checks import TopicAnswer
from controlplane.tasks.models import Status, Task
from tests.support.django_cast import Cast, make_cast, spec_for
from tests.support.waiting import wait_for

TOPIC = "orders-a"


def a_spec(**io_config: Any) -> dict[str, Any]:
    """Of the share group that the pattern's topics are read with, too."""
    spec = spec_for("orders", startDelay="PT0S", **io_config)
    if "topic" not in io_config:
        del spec["ioConfig"]["topic"]
        spec["ioConfig"]["topicPattern"] = "orders-.*"
    return spec


def submitted(cast: Cast, **outer: Any) -> Supervisor:
    document = {**a_spec(), **outer}
    return services.submit_supervisor(user=cast.users["owner"], document=document, team_name="alpha")


def finds(supervisor: Supervisor, *topics: str) -> TopicAnswer:
    return TopicAnswer(supervisor.pk, supervisor.version, topics=list(topics))


def topics_of(supervisor: Supervisor) -> list[Supervisor]:
    return list(supervisor.children.order_by("pk"))


def states(supervisor: Supervisor) -> tuple[str, str]:
    supervisor.refresh_from_db()
    return supervisor.state, supervisor.detailed_state


def rounds() -> None:
    """Its own, theirs, and its own again."""
    for _ in range(3):
        run_all()


@pytest.mark.parametrize("names_it", [True, False])
def test_what_rests_ends_all_the_same(cast: Cast, names_it: bool) -> None:
    """Those that read its topics are suspended; its spec comes to name a topic, or it is terminated."""
    owner, supervisor = cast.users["owner"], submitted(cast)
    run(supervisor.pk, finds(supervisor, TOPIC))
    [child] = topics_of(supervisor)
    run(child.pk, TopicAnswer(child.pk, child.version, partitions=1))
    services.suspend(user=owner, supervisor=supervisor)
    rounds()
    assert states(child) == ("SUSPENDED", "SUSPENDED")
    if names_it:
        submitted(cast, **{**a_spec(topic=TOPIC), "suspended": False})
        supervisor.refresh_from_db()
        run(supervisor.pk, TopicAnswer(supervisor.pk, supervisor.version, partitions=1))
    else:
        services.terminate(user=owner, supervisor=supervisor)
    rounds()
    assert states(child) == ("STOPPING", "TERMINATED")
    own = Task.objects.filter(supervisor_id=supervisor.pk).values_list("status", flat=True)
    assert list(own) == ([Status.PENDING] if names_it else [])
    assert states(supervisor) == (("RUNNING", "CREATING_TASKS") if names_it else ("STOPPING", "TERMINATED"))


def test_one_that_rests_is_terminated_by_the_next_round(cast: Cast) -> None:
    """Where nobody has a round at once: the queue was away."""
    supervisor = cast.supervisor
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    Task.objects.update(status=Status.SUCCESS, ended_at=timezone.now())
    rounds()
    assert states(supervisor) == ("SUSPENDED", "SUSPENDED")
    services.terminate(user=cast.users["owner"], supervisor=supervisor)
    rounds()
    assert states(supervisor) == ("STOPPING", "TERMINATED")


def test_topics_that_could_not_begin_yet_are_none_that_came_later(cast: Cast, settings: Settings) -> None:
    """Kafka's first answer finds it suspended, or too many topics while it is unhealthy: all were there at first."""
    owner, supervisor = cast.users["owner"], submitted(cast)
    services.suspend(user=owner, supervisor=supervisor)
    run(supervisor.pk, finds(supervisor, TOPIC))
    services.resume(user=owner, supervisor=supervisor)
    for _ in range(3):
        run(supervisor.pk, TopicAnswer(supervisor.pk, supervisor.version, problem=KafkaProblem("away")))
    settings.TOPICS_PER_SUPERVISOR = 0
    run(supervisor.pk, finds(supervisor, TOPIC))
    assert topics_of(supervisor) == []
    settings.TOPICS_PER_SUPERVISOR = 1
    run(supervisor.pk, finds(supervisor, TOPIC))
    assert [child.topic_missed for child in topics_of(supervisor)] == [""]
    settings.TOPICS_PER_SUPERVISOR = 2
    run(supervisor.pk, finds(supervisor, TOPIC, "orders-b"))
    assert [child.topic_missed for child in topics_of(supervisor)] == ["", "orders-b"]


@pytest.mark.django_db(transaction=True)
def test_a_new_spec_and_a_round_that_begins_a_topic_take_locks_in_one_order(transactional_db: None) -> None:
    cast = make_cast()
    supervisor = submitted(cast)
    failed: list[BaseException] = []

    def submitting() -> None:
        try:
            submitted(cast, suspended=False, context={"mine": 1})
        except BaseException as error:
            failed.append(error)
        finally:
            connections.close_all()

    other = threading.Thread(target=submitting)
    with transaction.atomic():
        Supervisor.objects.select_for_update().get(pk=supervisor.pk)
        other.start()
        wait_for("the other one waits for a lock", _somebody_waits, 60)
        run(supervisor.pk, finds(supervisor, TOPIC))
    other.join(60)
    assert failed == []
    assert [child.io_config.topic for child in topics_of(supervisor)] == [TOPIC]
    supervisor.refresh_from_db()
    assert supervisor.version == 2


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database OR l.database IS NULL "
            "JOIN pg_stat_activity a ON a.pid = l.pid AND a.datname = current_database() WHERE NOT granted"
        )
        return bool(cursor.fetchone()[0])
