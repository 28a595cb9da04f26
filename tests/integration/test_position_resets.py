"""Stored offsets moved to a position: previewed over REST and on the page, and then stored as they were shown."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka.admin import AdminClient
from django.test import Client

from controlplane.publishing.models import ProgressKey
from controlplane.sources.models import Source, SourceEvent
from controlplane.supervisors import services
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.run import iterate
from controlplane.tasks.models import Task
from controlplane.teams.models import AuditEntry
from tests.integration.test_beginnings import claimed_by_an_indexer, stored
from tests.integration.test_command_line import Run, run
from tests.integration.test_resolved_positions import produce
from tests.integration.test_supervisor_iterations import submit
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.stored_offsets import post
from tests.support.topic_patterns import submitted
from tests.support.waiting import wait_for

__all__ = ["run"]  # a fixture
AT_FIVE = "2026-01-31T12:05:00Z"


def reading(cast: Cast, broker: Broker) -> str:
    """A topic with records of minutes 0, 10, 5 and 20, and of minute 1; all of it is skipped by its supervisor."""
    topic = broker.topic(partitions=2)
    produce(broker, topic, 0, 10, 5, 20)
    produce(broker, topic, 1, partition=1)
    submit(cast, broker, broker.bootstrap, topic, useEarliestOffset=False)
    iterate()
    assert stored(topic) == {0: 4, 1: 1}
    return topic


def test_a_preview_says_what_a_reset_does_and_changes_nothing(
    cast: Cast, broker: Broker, clients: dict[str, Client]
) -> None:
    topic = reading(cast, broker)
    ProgressKey.objects.filter(source__topic=topic, partition=1).update(next_offset=0)
    plan = clients["owner"].get(f"/api/v1/supervisors/{topic}/reset/", {"position": AT_FIVE}).json()
    [told] = plan["topics"]
    shown = [(p["partition"], p["stored"], p["offset"], p["read_again"], p["skipped"]) for p in told["partitions"]]
    assert shown == [(0, 4, 1, 3, 0), (1, 0, 1, 0, 1)]
    assert (plan["read_again"], plan["skipped"], plan["position"], plan["resolved"]) == (3, 1, AT_FIVE, AT_FIVE)
    assert told["create_time"] is True
    assert "go back and forth" in plan["warnings"][0]
    assert stored(topic) == {0: 4, 1: 0}
    for role, status in (("operator", 403), ("outsider", 404)):
        answer = clients[role].get(f"/api/v1/supervisors/{topic}/reset/", {"position": AT_FIVE})
        assert answer.status_code == status


def test_what_was_shown_is_stored_whatever_arrived_since(
    cast: Cast, broker: Broker, clients: dict[str, Client]
) -> None:
    topic = reading(cast, broker)
    address = f"/api/v1/supervisors/{topic}/reset/"
    plan = clients["owner"].get(address, {"position": "latest"}).json()
    offsets = {t["topic"]: {p["partition"]: p["offset"] for p in t["partitions"]} for t in plan["topics"]}
    produce(broker, topic, 30, 31)
    assert post(clients["owner"], address, {"position": "latest", "topics": offsets}).status_code == 200
    assert stored(topic) == {0: 4, 1: 1}
    assert post(clients["owner"], address, {"position": "latest"}).status_code == 200
    assert stored(topic) == {0: 6, 1: 1}


def test_the_audit_trail_and_the_event_say_what_was_asked_for(
    cast: Cast, broker: Broker, clients: dict[str, Client]
) -> None:
    topic = reading(cast, broker)
    assert post(clients["owner"], f"/api/v1/supervisors/{topic}/reset/", {"position": AT_FIVE}).status_code == 200
    assert stored(topic) == {0: 1, 1: 1}
    entry = AuditEntry.objects.filter(target_id=topic, action="reset").get()
    assert entry.detail == {"topic": topic, "offsets": {"0": 1, "1": 1}, "position": AT_FIVE}
    event = SourceEvent.objects.get(source__topic=topic)
    assert f"owner reset the stored offsets of {topic} to {AT_FIVE}. They were 0: 4, 1: 1" in event.detail


WRONG: list[dict[str, Any]] = [
    {"position": "2026-01-31T12:05:00"},
    {"position": "P30M"},
    {"position": AT_FIVE, "partitions": {"0": 1}},
    {"topics": {"x": {"0": 1}}},
    {"position": AT_FIVE, "topics": {}},
    {"position": AT_FIVE, "topics": {"another": {"0": 1}}},
    {"position": AT_FIVE, "topics": {"TOPIC": {"0": 7}}},
    {"position": AT_FIVE, "topics": {"TOPIC": {"2": 0}}},
    {"position": AT_FIVE, "topics": {"TOPIC": {str(2**40): 0}}},
]


def test_a_wrong_reset_to_a_position_changes_nothing(cast: Cast, broker: Broker, clients: dict[str, Client]) -> None:
    topic = reading(cast, broker)
    taken = []
    for body in WRONG:
        sent = json.loads(json.dumps(body).replace("TOPIC", topic))
        answer = post(clients["owner"], f"/api/v1/supervisors/{topic}/reset/", sent)
        if answer.status_code != 400 or stored(topic) != {0: 4, 1: 1}:
            taken.append((body, answer.status_code, answer.content))
    assert not taken
    asked = clients["owner"].get(f"/api/v1/supervisors/{topic}/reset/?position=2026-01-31T12:05:00+01:00")
    assert asked.status_code == 400 and b"write + as %2B" in asked.content


def test_a_topic_that_was_made_again_has_no_stored_offsets_to_move(
    cast: Cast, broker: Broker, clients: dict[str, Client]
) -> None:
    topic = reading(cast, broker)
    admin: AdminClient = broker.admin
    admin.delete_topics([topic])[topic].result(30)
    wait_for("the topic is gone", lambda: topic not in admin.list_topics(timeout=10).topics, 30)
    broker.make_topic(topic, partitions=2)
    for ask in (
        lambda: clients["owner"].get(f"/api/v1/supervisors/{topic}/reset/", {"position": "earliest"}),
        lambda: post(clients["owner"], f"/api/v1/supervisors/{topic}/reset/", {"position": "earliest"}),
    ):
        answer = ask()
        assert (answer.status_code, "created again" in answer.json()["detail"]) == (409, True)
    assert stored(topic) == {0: 4, 1: 1}


def test_a_page_shows_the_offsets_and_stores_them(cast: Cast, broker: Broker) -> None:
    topic = reading(cast, broker)
    owner, address = browsing_as(cast, "owner"), f"/supervisors/{topic}/reset/"
    page = parsed(owner.post(address, {"position": AT_FIVE, "offsets": ""}))
    cells = [[cell.text for cell in row.all("td")] for row in page.all("tr") if "data-partition" in row.attributes]
    assert [(c[0], c[1], c[3], c[4]) for c in cells] == [("4", "1", "0", "3"), ("1", "1", "0", "0")]
    assert "reads 3 again" in page.one("p", data_preview="").text
    assert stored(topic) == {0: 4, 1: 1}
    values = {e.attributes["name"]: e.attributes["value"] for e in page.one("main").all("input")}
    produce(broker, topic, 2)
    answer = parsed(owner.post(address, {name: values[name] for name in ("position", "topics")}, follow=True))
    assert AT_FIVE in answer.one("div", class_="alert-success").text
    assert stored(topic) == {0: 1, 1: 1}
    wrong = owner.post(address, {"position": "P30M", "offsets": ""})
    assert wrong.status_code == 400 and b"For 30 minutes, write PT30M" in wrong.content
    for topics in ("[]", '{"x": 1}', "{", '{"x": {"a": "b"}}'):
        told = parsed(owner.post(address, {"position": AT_FIVE, "topics": topics}, follow=True))
        assert "Nothing was changed" in told.one("div", class_="alert-danger").text
    assert browsing_as(cast, "operator").post(address, {"position": AT_FIVE}).status_code == 403


def test_every_topic_of_a_pattern_is_moved(cast: Cast, broker: Broker, stem: str, clients: dict[str, Client]) -> None:
    for last, minutes in (("a", (0, 10)), ("b", (5, 6))):
        produce(broker, broker.make_topic(f"{stem}-{last}", partitions=1), *minutes)
    supervisor = submitted(cast, broker, stem, useEarliestOffset=False)
    iterate()
    iterate()
    address = f"/api/v1/supervisors/{supervisor.pk}/reset/"
    plan = clients["owner"].get(address, {"position": AT_FIVE}).json()
    assert [t["topic"] for t in plan["topics"]] == [f"{stem}-a", f"{stem}-b"]
    offsets = {t["topic"]: {p["partition"]: p["offset"] for p in t["partitions"]} for t in plan["topics"]}
    assert post(clients["owner"], address, {"position": AT_FIVE, "topics": offsets}).status_code == 200
    assert [stored(f"{stem}-{last}") for last in "ab"] == [{0: 1}, {0: 0}]


def test_the_command_line_shows_the_offsets_and_stores_them(run: Run, cast: Cast, broker: Broker) -> None:
    topic = reading(cast, broker)
    code, out, err = run("reset", topic, "--to", AT_FIVE)
    assert (code, stored(topic)) == (1, {0: 4, 1: 1}) and "--yes" in err
    assert [line.split()[:4] for line in out.splitlines()[:3]] == [
        ["TOPIC", "PARTITION", "STORED", "OFFSET"],
        [topic, "0", "4", "1"],
        [topic, "1", "1", "1"],
    ]
    assert "reads 3 again" in out and "go back and forth" in err
    assert run("reset", topic, "--to", AT_FIVE, "--yes")[0] == 0
    assert stored(topic) == {0: 1, 1: 1}
    code, _, err = run("reset", topic, "--to", "P30M", "--yes")
    assert code == 1 and "write PT30M" in err


# Where a new supervisor begins


def begun(cast: Cast, broker: Broker, topic: str, **io_config: Any) -> Supervisor:
    supervisor = submit(cast, broker, broker.bootstrap, topic, useEarliestOffset=None, **io_config)
    iterate()
    return supervisor


def test_a_new_supervisor_begins_at_a_position(cast: Cast, broker: Broker) -> None:
    topic = broker.topic(partitions=2)
    produce(broker, topic, 0, 10, 5, 20)
    supervisor = begun(cast, broker, topic, startPosition=AT_FIVE)
    assert stored(topic) == {0: 1, 1: 0}
    assert supervisor.current.spec["spec"]["ioConfig"]["startPosition"] == AT_FIVE
    assert "useEarliestOffset" not in supervisor.current.spec["spec"]["ioConfig"]


def test_a_duration_is_counted_from_when_the_spec_first_had_it(cast: Cast, broker: Broker) -> None:
    """A later number of indexers does not move it: tasks are given the time itself."""
    topic = broker.topic(partitions=1)
    supervisor = begun(cast, broker, topic, startPosition="PT30M")
    first = supervisor.current.created_at
    services.scale(user=cast.users["owner"], supervisor=supervisor, task_count=2)
    supervisor = Supervisor.objects.get(pk=supervisor.pk)
    iterate()
    for task in Task.objects.filter(supervisor_id=supervisor.pk):
        instant = task.io_config.start.instant
        assert instant is not None and (first - instant).total_seconds() == 1800


def test_without_stored_offsets_an_indexer_begins_at_the_position(
    cast: Cast, broker: Broker, clients: dict[str, Client]
) -> None:
    """All of them deleted: its task asks Kafka itself."""
    topic = broker.topic(partitions=2)
    produce(broker, topic, 0, 10, 5, 20)
    begun(cast, broker, topic, startPosition=AT_FIVE)
    assert post(clients["owner"], f"/api/v1/supervisors/{topic}/reset/", {}).status_code == 200
    assert stored(topic) == {0: None, 1: None}
    [task] = Task.objects.filter(supervisor_id=topic)
    claimed_by_an_indexer(task, broker, topic, since_ms=task.io_config.start.timestamp_ms)
    assert stored(topic) == {0: 1, 1: 0}


def test_stored_offsets_stay_where_a_position_comes_to_a_spec(cast: Cast, broker: Broker) -> None:
    topic = reading(cast, broker)
    begun(cast, broker, topic, startPosition="earliest")
    assert stored(topic) == {0: 4, 1: 1}
    assert Source.objects.filter(topic=topic).count() == 1
