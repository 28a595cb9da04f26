"""A broker that says no: the reader names what is missing, for as long as it is, and reads on by itself afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer, ShareConsumer

from controlplane.connections.kafka import KafkaProblem, KafkaRefuses, holds_records, partition_count, topic_offsets
from controlplane.connections.probe import NeededRights, try_kafka
from ingestion.sources import client_problems, share_group
from ingestion.sources import reader as reading
from ingestion.sources.base import ACCEPT, ReadRefused
from ingestion.sources.reader import Reader
from ingestion.sources.repair import RepairSource
from ingestion.sources.share_group import ShareGroupSource
from ingestion.sources.stored_offsets import StartPosition
from ingestion.sources.topic import ReadableTopic, TopicIdentity, TopicWatch, configure_group
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.kafka import properties as kafka_properties
from ingestion.specs.messages.protocol import RepairRange
from tests.support.formats import HERE
from tests.support.guarded_kafka import Guarded, guarded
from tests.support.records import numbered
from tests.support.waiting import wait_for

__all__ = ["guarded"]  # a fixture

MakeReader = Callable[..., Reader]


@pytest.fixture
def make_reader(guarded: Guarded) -> Iterator[MakeReader]:
    made = []

    def make(topic: str, group: str | None = None, **more: str) -> Reader:
        dealt = {"partition.assignment.strategy": "cooperative-sticky"} if group else {}
        reader = Reader(topic, {**guarded.client, **more}, "read_committed", group, "a client", 0.2, **dealt)
        made.append(reader)
        return reader

    yield make
    for reader in made:
        reader.close()


def assigned(reader: Reader, partitions: int) -> Reader:
    starts = {p: StartPosition(offset=0, stored=0, generation=1) for p in range(partitions)}
    reader.consumer.assign(reader.add(starts))
    return reader


def read(reader: Reader, records: int, ends: dict[int, int] | None = None) -> dict[int, int]:
    """Wait until it has read so many more, each once and in order; by partition, where it goes on then.

    ``ends``: where it went on before.
    """
    ends, seen = ends or {}, [0]

    def enough() -> bool:
        batch = reader.read(0.2)
        if batch is not None:
            seen[0] += len(batch.offsets)
            for partition, part in (batch.progress or {}).items():
                assert part.start == ends.get(partition, 0)
                mine = batch.offsets[batch.partitions == partition].tolist()
                assert mine == sorted(set(mine)) and all(part.start <= n < part.end for n in mine)
                ends[partition] = part.end
        return seen[0] >= records

    wait_for(f"{records} records", enough, 60, lambda: (seen, reader.client_problems.text))
    assert seen[0] == records
    return ends


def refused(reader: Reader, *words: str) -> None:
    def said() -> bool:
        reader.read(0.2)
        return bool(reader.client_problems.refused)

    wait_for("it is refused", said, 60)
    assert all(word in reader.client_problems.text for word in words), reader.client_problems.text


def test_partitions_that_may_not_be_read(
    guarded: Guarded, make_reader: MakeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two partitions, one of which stays empty: it is read again once its end is met."""
    monkeypatch.setattr(client_problems, "CLIENT_PROBLEM_S", 2.0)
    monkeypatch.setattr(reading, "REFUSED_RETRY_S", 1.0)
    topic = guarded.topic(partitions=2)
    guarded.give("TOPIC", topic, "DESCRIBE")
    guarded.produce(topic, numbered(0, 100), partition=0)
    reader = assigned(make_reader(topic), 2)
    refused(reader, f"lacks the right READ on topic '{topic}'")
    guarded.give("TOPIC", topic, "READ")
    read(reader, 100)
    wait_for("nothing is refused", lambda: reader.read(0.2) is None and not reader.client_problems.refused, 60)
    guarded.take("TOPIC", topic, "READ")
    refused(reader, f"lacks the right READ on topic '{topic}'")
    for _ in range(20):  # 4 s: longer than other complaints are remembered, and than it takes to ask again
        reader.read(0.2)
    assert reader.client_problems.refused and reader.client_problems.text
    guarded.give("TOPIC", topic, "READ")
    wait_for(
        "it is read, though nothing came", lambda: reader.read(0.2) is None and not reader.client_problems.refused, 60
    )
    assert reader.client_problems.text == ""


def test_a_group_that_may_not_be_read(guarded: Guarded, make_reader: MakeReader) -> None:
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "READ")
    readers = [make_reader(topic, "a-group") for _ in range(2)]
    joined: list[int] = []
    for n, reader in enumerate(readers):
        reader.consumer.subscribe([topic], on_assign=lambda *_, n=n: joined.append(n))
    for reader in readers:
        refused(reader, "lacks the right READ on group 'a-group'")
    guarded.give("GROUP", "a-group", "READ")

    def both_are_in() -> bool:
        for reader in readers:
            reader.read(0.2)
        return set(joined) == {0, 1}

    wait_for("who has no partition hears that it is in, too", both_are_in, 60)


def test_a_group_of_others(guarded: Guarded, make_reader: MakeReader) -> None:
    """One whose members have another assignor, and a share group."""
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "READ")
    admitted = {"bootstrap.servers": guarded.bootstrap}
    theirs = Consumer({**admitted, "group.id": "of-others", "partition.assignment.strategy": "range"})
    shared = ShareConsumer({**admitted, "group.id": "shared"})
    try:
        theirs.subscribe([topic])
        shared.subscribe([topic])
        wait_for("they are in", lambda: shared.poll(0.2) or theirs.poll(0.2) or theirs.assignment(), 60)
        for group in ("of-others", "shared"):
            guarded.give("GROUP", group, "READ")
            reader = make_reader(topic, group)
            reader.consumer.subscribe([topic])
            refused(reader, f"Group '{group}' is a share group, or another application is in it")
    finally:
        theirs.close()
        shared.close()


def test_what_is_assigned_needs_no_right_to_a_group(guarded: Guarded) -> None:
    """Repairs, and looks whether records are left; without READ on the topic they do not say that there is nothing."""
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "READ")
    guarded.produce(topic, numbered(0, 10))
    repair = RepairSource(guarded.client, topic, [RepairRange(partition=0, start=2, end=5)])
    batch = repair.poll(1)
    assert batch is not None and batch.offsets.tolist() == [2, 3, 4]
    assert holds_records(guarded.properties, topic, 0, 9, 10)
    guarded.take("TOPIC", topic, "READ")
    guarded.give("TOPIC", topic, "DESCRIBE")
    with pytest.raises(KafkaProblem, match="authorization failed"):
        holds_records(guarded.properties, topic, 0, 9, 10)


def test_a_batch_whose_checksum_is_wrong_is_not_passed_over(guarded: Guarded, make_reader: MakeReader) -> None:
    """librdkafka does so, where it looks at checksums: it says that there is one, and goes on behind it."""
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "READ")
    for payload in (b"before", b"to-be-broken", b"behind"):
        guarded.produce(topic, [payload])
    (file,) = guarded.kafka.home.path.rglob(f"{topic}-0/00000000000000000000.log")
    at = file.read_bytes().index(b"to-be-broken")
    with file.open("r+b") as log:
        log.seek(at)
        log.write(b"T")
    reader = assigned(make_reader(topic, **{"check.crcs": "true"}), 1)
    assert read(reader, 1) == {0: 1}
    refused(reader, "")
    for _ in range(20):
        assert reader.read(0.2) is None
    assert reader.client_problems.refused == [0]


def test_a_topic_that_may_not_be_described_is_refused_not_silent(guarded: Guarded) -> None:
    topic = guarded.topic(partitions=1)
    for ask in (partition_count, topic_offsets):
        with pytest.raises(KafkaRefuses, match=f"lacks the right DESCRIBE on topic '{topic}'"):
            ask(guarded.properties, topic)
    guarded.give("TOPIC", topic, "DESCRIBE")
    assert partition_count(guarded.properties, topic) == 1


def test_why_the_members_of_a_group_are_not_known(guarded: Guarded) -> None:
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "READ")
    asked = topic_offsets(guarded.properties, topic, "not-seen")
    assert asked is not None and asked.members_problem == "This login lacks the right DESCRIBE on group 'not-seen'."
    guarded.give("GROUP", "not-seen", "READ")
    asked = topic_offsets(guarded.properties, topic, "not-seen")
    assert asked is not None and (asked.members, asked.members_problem) == ((), "")


@pytest.mark.parametrize("group", [None, "of-nobody-yet"])
def test_who_may_not_read_does_not_begin(guarded: Guarded, group: str | None) -> None:
    """Nor says that it reads, so that nobody who does is ended for it."""
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "DESCRIBE")
    readable = ReadableTopic(TopicWatch(guarded.client, topic, HERE), group)
    missing = [("TOPIC", topic), *([("GROUP", group)] if group else [])]
    for kind, name in missing:
        with pytest.raises(ReadRefused, match=f"^This login lacks the right READ on {kind.lower()} '{name}'.$"):
            readable.identity()
        guarded.give(kind, name, "READ")
    assert readable.identity() == TopicWatch({"bootstrap.servers": guarded.bootstrap}, topic, HERE).identity()
    unguarded = ReadableTopic(TopicWatch({"bootstrap.servers": guarded.bootstrap}, topic, HERE), group)
    assert isinstance(unguarded.identity(), TopicIdentity)


def share_config(guarded: Guarded, topic: str, group: str) -> ShareGroupIOConfig:
    return ShareGroupIOConfig.model_validate(
        {
            "topic": topic,
            "groupId": group,
            "consumersPerIndexer": 1,
            "consumerProperties": {"bootstrap.servers": guarded.bootstrap},
            "inputFormat": {"type": "json"},
            "pollTimeout": 500,
        }
    )


def denied(guarded: Guarded, request: str) -> int:
    """How many requests of a kind the broker's authorizer has denied, by its log."""
    lines = guarded.kafka.log.read_text(errors="replace").splitlines()
    return sum("Denied" in line and f"request = {request} " in line for line in lines)


def test_a_share_group_by_the_name_of_a_consumer_group(guarded: Guarded) -> None:
    """One that is in use."""
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "READ")
    guarded.give("GROUP", "in-use", "READ")
    guarded.produce(topic, numbered(0, 10))
    theirs = Consumer({"bootstrap.servers": guarded.bootstrap, "group.id": "in-use"})
    source = ShareGroupSource(guarded.client, share_config(guarded, topic, "in-use"), "a client")
    try:
        theirs.subscribe([topic])
        wait_for("it is in", lambda: theirs.poll(0.2) or theirs.assignment(), 60)
        source.open()
        wait_for("it is refused", lambda: source.poll(0.2) is None and source.refused, 60, lambda: source.problem)
        assert "Group 'in-use' is a group of another kind" in source.problem
        assert "Use another groupId." in source.problem
    finally:
        theirs.close()
        source.close()


def test_a_share_group_without_rights(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not flood the broker meanwhile: its consumer is closed, and made anew after a while."""
    monkeypatch.setattr(share_group, "RECREATE_AFTER_S", 1.0)
    topic = guarded.topic(partitions=2)
    guarded.give("TOPIC", topic, "DESCRIBE")
    io_config = share_config(guarded, topic, "readers")
    configure_group({"bootstrap.servers": guarded.bootstrap}, io_config, HERE)
    guarded.produce(topic, numbered(0, 100))
    source = ShareGroupSource(guarded.client, io_config, "a client")
    source.open()
    try:
        for missing in (("GROUP", "readers"), ("TOPIC", topic)):
            said = f"lacks the right READ on {missing[0].lower()} {missing[1]!r}"

            def refused_so(said: str = said) -> bool:
                return source.poll(0.2) is None and source.refused and said in source.problem

            wait_for(said, refused_so, 60, lambda: source.problem)
            for _ in range(15):  # 3 s: it is made anew twice
                assert source.poll(0.2) is None
            guarded.give(*missing, "READ")
        assert 0 < denied(guarded, "ShareFetch") < 1_000, "a client that asks on does so thousands of times a second"
        taken: set[tuple[int, int]] = set()

        def all_of_them() -> bool:
            batch = source.poll(0.5)
            if batch is not None:
                taken.update(zip(batch.partitions.tolist(), batch.offsets.tolist(), strict=True))
                source.acknowledge(batch, np.full(len(batch.offsets), ACCEPT))
            return len(taken) == 100

        wait_for("all are read", all_of_them, 60, lambda: (len(taken), source.problem))
        assert not source.refused and source.problem == ""
        readable = ReadableTopic(TopicWatch(guarded.client, topic, HERE), "readers")
        assert readable.identity(), "Kafka says of a group with members, too, what this login may do"
        guarded.take("GROUP", "readers", "READ")
        with pytest.raises(ReadRefused, match="lacks the right READ on group 'readers'"):
            readable.identity()
    finally:
        source.close()


def test_a_long_stretch_of_aborted_records_is_passed(guarded: Guarded, make_reader: MakeReader) -> None:
    """It takes longer than one look at what lies before the first record."""
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "READ")
    admitted = {"bootstrap.servers": guarded.bootstrap, "queue.buffering.max.kbytes": 200_000}
    aborting = Producer({**admitted, "transactional.id": f"of-{topic}"})
    aborting.init_transactions(60)
    aborting.begin_transaction()
    for _ in range(100):
        aborting.produce(topic, bytes(500_000))
        aborting.poll(0)
    aborting.flush(60)
    aborting.abort_transaction(60)
    guarded.produce(topic, numbered(0, 10))
    reader = assigned(make_reader(topic), 1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "PROBE_S", 0.001)
        read(reader, 10)


@pytest.mark.parametrize("more", [{}, {"fetch.max.bytes": "1000000"}])
def test_a_batch_that_unpacks_to_very_much(
    guarded: Guarded, make_reader: MakeReader, monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    """4 kB of zstd are 120 MB, which librdkafka refuses by itself; what is larger than the bound is named."""
    topic = guarded.topic(partitions=2)
    guarded.give("TOPIC", topic, "READ")
    guarded.produce(topic, numbered(0, 5), partition=0)
    guarded.produce(topic, numbered(5, 10), partition=1)
    large = {"message.max.bytes": 200_000_000, "batch.size": 200_000_000, "queue.buffering.max.kbytes": 300_000}
    packing = Producer({"bootstrap.servers": guarded.bootstrap, "compression.type": "zstd", **large})
    guarded.produce(topic, [b"x" * 120_000_000], partition=0, by=packing)
    guarded.produce(topic, numbered(20, 25), partition=0)
    if more:
        monkeypatch.setattr(kafka_properties, "MAX_UNPACKED", 1)
    reader = assigned(make_reader(topic, **more), 2)
    if not more:
        read(reader, 16)
        return
    ends = read(reader, 10)
    guarded.produce(topic, numbered(10, 15), partition=1)
    ends = read(reader, 5, ends)
    assert ends == {0: 5, 1: 10}, "nothing behind it is read"
    refused(reader, "The batch at offset 5 of partition 0", "set fetch.max.bytes in consumerProperties")


def test_many_partitions_that_begin_behind_a_hole(guarded: Guarded, make_reader: MakeReader) -> None:
    """More of them than are looked into side by side: each has its records all the same."""
    many = reading.MAX_PROBES + 4
    topic = guarded.topic(partitions=many)
    guarded.give("TOPIC", topic, "READ")
    aborting = Producer({"bootstrap.servers": guarded.bootstrap, "transactional.id": f"of-{topic}"})
    aborting.init_transactions(60)
    aborting.begin_transaction()
    for partition in range(many):
        aborting.produce(topic, b"aborted", partition=partition)
    aborting.flush(60)
    aborting.abort_transaction(60)
    for partition in range(many):
        guarded.produce(topic, numbered(0, 5), partition=partition)
    assert read(assigned(make_reader(topic), many), 5 * many) == dict.fromkeys(range(many), 7)


def test_a_test_of_the_connection_says_what_the_login_may_do_with_a_topic(guarded: Guarded) -> None:
    topic = guarded.topic(partitions=1)

    def tried() -> tuple[bool, str, str, str]:
        verdict = try_kafka(guarded.client, NeededRights(topic))
        return verdict.ok, verdict.cause, verdict.message, verdict.advice

    hidden = f"There is no topic {topic!r}, or this login may not describe it."
    both = f"Check the name. Grant this login the rights DESCRIBE and READ on topic {topic}."
    assert tried() == (False, "authorisation", hidden, both)
    guarded.give("TOPIC", topic, "DESCRIBE")
    seen = f"The login may see the topic {topic!r} but not read it."
    assert tried() == (False, "authorisation", seen, f"Grant this login the right READ on topic {topic}.")
    guarded.give("TOPIC", topic, "READ")
    assert tried()[:2] == (True, "")


def test_a_test_of_the_connection_says_what_the_login_may_do_with_a_group(guarded: Guarded) -> None:
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "READ")

    def tried(group: str) -> tuple[bool, str, str]:
        verdict = try_kafka(guarded.client, NeededRights(topic, group))
        [step] = [s for s in verdict.steps if s.name == f"Group {group}"]
        return verdict.ok, verdict.message, step.detail

    refused = "The login may not read with group 'tried'."
    assert tried("tried") == (False, refused, refused)
    guarded.give("GROUP", "tried", "DESCRIBE")
    assert tried("tried") == (False, refused, refused)
    guarded.give("GROUP", "tried", "READ")
    assert tried("tried") == (True, "", "may read; a share group also needs ALTER_CONFIGS")
    guarded.give("GROUP", "tried", "ALTER_CONFIGS")
    assert tried("tried") == (True, "", "may read, and may set the configuration of a share group")
