"""What a kafka spec's consumerProperties say of transactions and of the consumer group's times."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.connections.kafka import TopicOffsets
from ingestion.specs.errors import SpecError
from ingestion.specs.kafka.group_times import DEFAULTS, group_times
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from ingestion.specs.tasks.stored_specs import io_config_of
from tests.unit.test_specs import changed, of_kafka

SERVERS = {"bootstrap.servers": "k:9092"}


def kafka(assignment: str = "offset_range", **properties: Any) -> dict[str, Any]:
    return of_kafka(assignment=assignment, consumerProperties={**SERVERS, **properties})


def share_group(isolation: str) -> dict[str, Any]:
    return changed(("ioConfig/groupConfig", {"isolationLevel": isolation}))


@pytest.mark.parametrize(
    ("document", "isolation"),
    [
        (kafka(), "read_committed"),
        (kafka(**{"isolation.level": "READ_COMMITTED"}), "read_committed"),
        (kafka(**{"isolation.level": "read_uncommitted"}), "read_uncommitted"),
        (kafka("consumer_group", **{"isolation.level": "READ_UNCOMMITTED"}), "read_uncommitted"),
        (share_group("read_committed"), "read_committed"),
        (share_group("read_uncommitted"), "read_uncommitted"),
    ],
)
def test_the_isolation_of_a_spec(document: dict[str, Any], isolation: str) -> None:
    spec = parse_supervisor_spec(document)
    assert spec.spec.ioConfig.isolation == isolation
    assert io_config_of(spec.canonical()).isolation == isolation


def test_who_reads_what_is_not_committed_has_nothing_undecided() -> None:
    topic = TopicOffsets("id", start_offsets={0: 0, 1: 0}, end_offsets={0: 5, 1: 7}, log_ends={0: 9, 1: 7})
    assert (topic.uncommitted, topic.for_isolation("read_committed")) == (4, topic)
    dirty = topic.for_isolation("read_uncommitted")
    assert (dirty.end_offsets, dirty.uncommitted) == ({0: 9, 1: 7}, 0)


def test_the_times_of_a_consumer_group() -> None:
    given: dict[str, Any] = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": "3000"}
    io_config = parse_supervisor_spec(kafka("consumer_group", **given)).spec.ioConfig
    assert group_times(io_config.consumerProperties) == {**DEFAULTS, **{n: int(v) for n, v in given.items()}}
    assert group_times(SERVERS) == DEFAULTS


@pytest.mark.parametrize(
    ("properties", "name", "message"),
    [
        ({"isolation.level": "dirty"}, "isolation.level", "must be one of READ_COMMITTED, READ_UNCOMMITTED"),
        ({"session.timeout.ms": 5_999}, "session.timeout.ms", "6,000 to 1,800,000"),
        ({"session.timeout.ms": "long"}, "session.timeout.ms", "must be a number of milliseconds"),
        ({"heartbeat.interval.ms": 0}, "heartbeat.interval.ms", "100 to 1,800,000"),
        ({"heartbeat.interval.ms": 10_000}, "heartbeat.interval.ms", "must be less than session.timeout.ms (10,000)"),
        ({"max.poll.interval.ms": 90_000_000}, "max.poll.interval.ms", "6,000 to 86,400,000"),
        ({"max.poll.interval.ms": 9_000}, "max.poll.interval.ms", "must be at least as long as session.timeout.ms"),
        ({"session.timeout.ms": 300_001}, "session.timeout.ms", "max.poll.interval.ms (300,000) must be at least"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_place(properties: dict[str, Any], name: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_supervisor_spec(kafka("consumer_group", **properties))
    [issue] = caught.value.issues
    assert issue.pointer == f"/ioConfig/consumerProperties/{name}"
    assert message in issue.message


def test_without_a_consumer_group_its_times_are_not_looked_at() -> None:
    given: dict[str, Any] = {"session.timeout.ms": 1}
    assert parse_supervisor_spec(kafka(**given)).spec.ioConfig.isolation == "read_committed"
