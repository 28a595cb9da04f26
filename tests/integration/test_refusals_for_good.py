"""Publishes that can't be true, or too large, are refused for good, and nothing is changed: never "send it again"."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from controlplane.publishing.models import SettledRange
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import Segment
from controlplane.sources.models import Source
from controlplane.tasks.models import Task
from ingestion.client.errors import Invalid, Unacceptable
from ingestion.client.http import HttpControlPlane
from ingestion.specs.messages import publish_limits as limits
from ingestion.specs.messages.protocol import Outcomes, PublishRequest, StartRequest
from ingestion.specs.messages.protocol import QuarantinedRecord as Poison
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.contracts.test_control_plane import SPEC, begin, make_task
from tests.support.broker import Broker
from tests.support.in_process import client_of
from tests.support.publishes import request, segment


@pytest.fixture
def deep(tmp_path: Path, settings: Any) -> Path:
    """Deep storage, a folder that the control plane sees."""
    settings.DEEP_STORAGE = str(tmp_path / "deep")
    (tmp_path / "deep" / "contract").mkdir(parents=True)
    return tmp_path / "deep"


@pytest.fixture
def plane(db: None, deep: Path) -> HttpControlPlane:
    return client_of(make_task())


def stored(deep: Path, first: int = 0, name: str = "one.parquet", size: int | None = None) -> Any:
    """Ten offsets of partition 0, in a file that is there."""
    file = segment({0: [(first, first + 10)]}).model_copy(update={"path": f"contract/{name}"})
    (deep / file.path).write_bytes(b"x" * (file.size_bytes if size is None else size))
    return file


def published(epoch: int, **what: Any) -> PublishRequest:
    return request(epoch, topic_id="topic-id", **what)


def test_a_path_that_is_used_twice(plane: HttpControlPlane, deep: Path) -> None:
    epoch = begin(plane)
    plane.publish(0, published(epoch, segments=[stored(deep)]))
    with pytest.raises(Invalid, match=r"status 409.*contract/one\.parquet.* already exists") as refused:
        plane.publish(0, published(epoch, segments=[stored(deep, 10)]))
    assert not isinstance(refused.value, Unacceptable), "cutting it up is no help"
    assert Segment.objects.count() == SettledRange.objects.count() == 1


@pytest.mark.parametrize("there", ["nothing", "another size", "a folder", "a link"])
def test_a_file_that_is_not_there(plane: HttpControlPlane, deep: Path, there: str) -> None:
    file = stored(deep, size=5 if there == "another size" else None)
    path = deep / file.path
    if there not in ("another size",):
        path.unlink()
    if there == "a folder":
        path.mkdir()
    if there == "a link":
        (deep / "other").write_bytes(b"x" * file.size_bytes)
        path.symlink_to(deep / "other")
    epoch = begin(plane)
    with pytest.raises(Invalid, match=r"status 409.*There is no file 'contract/one.parquet' of 100 bytes"):
        plane.publish(0, published(epoch, segments=[file]))
    assert not Segment.objects.exists() and not SettledRange.objects.exists()


@pytest.mark.parametrize("location", ["s3://bucket/deep", "/nowhere/on/this/machine"])
def test_files_that_can_not_be_seen_from_here_are_let_pass(
    plane: HttpControlPlane, settings: Any, location: str
) -> None:
    settings.DEEP_STORAGE = location
    file = segment({0: [(0, 10)]}).model_copy(update={"path": "contract/one.parquet"})
    plane.publish(0, published(begin(plane), segments=[file]))
    assert Segment.objects.count() == 1


@pytest.mark.parametrize("path", ["contract/../x", "contract//x", "other/x", "contract/a\0b", "contract/" + "x" * 2000])
def test_a_path_that_is_none(plane: HttpControlPlane, path: str) -> None:
    file = segment({0: [(0, 10)]}).model_copy(update={"path": path})
    with pytest.raises(Invalid):
        plane.publish(0, published(begin(plane), segments=[file]))
    assert not Segment.objects.exists()


@pytest.mark.parametrize("partition", [-1, 2**31, 2**80])
def test_a_partition_that_no_topic_has(plane: HttpControlPlane, partition: int) -> None:
    what = published(begin(plane)).model_copy(update={"outcomes": {partition: Outcomes(empty=[(0, 1)])}})
    with pytest.raises(Unacceptable, match=f"/outcomes/{partition}"):
        plane.publish(0, what)
    assert not SettledRange.objects.exists()


def test_what_a_publish_may_cost(plane: HttpControlPlane, deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    epoch = begin(plane)
    poison = [Poison.model_construct(**_poison(n)) for n in range(3)]
    ranges = {0: Outcomes(unparseable=[(n, n + 1) for n in range(0, 6, 2)])}
    for limit, most, what in (
        ("MAX_SEGMENTS", 1, {"segments": [stored(deep), stored(deep, 10, "two.parquet")]}),
        ("MAX_COLUMNS", 0, {"segments": [stored(deep)]}),
        ("MAX_RANGES", 2, {"outcomes": ranges, "quarantined": poison}),
        ("MAX_QUARANTINED", 2, {"outcomes": ranges, "quarantined": poison}),
        ("MAX_KEPT_BYTES", 30, {"outcomes": ranges, "quarantined": poison}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(limits, limit, most)
            with pytest.raises(Unacceptable, match=f"one publish may have {most}"):
                plane.publish(0, published(epoch, **what))
    assert not SettledRange.objects.exists()


def _poison(n: int) -> dict[str, Any]:
    place = {"partition": 0, "offset": 2 * n, "timestamp_ms": None, "delivery_count": 1}
    return {
        **place,
        "reason": "unparseable",
        "error": "bad",
        "key": b"k",
        "payload": b"p" * 10,
        "headers": [("h", b"1")],
    }


def test_a_message_that_is_too_large(plane: HttpControlPlane, settings: Any) -> None:
    epoch = begin(plane)
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    poison = Poison.model_construct(**{**_poison(0), "payload": b"x" * 2000})
    with pytest.raises(Unacceptable, match="may have at most 1000 bytes"):
        plane.publish(0, published(epoch, outcomes={0: Outcomes(unparseable=[(0, 1)])}, quarantined=[poison]))


def test_a_record_that_is_in_quarantine_already_is_read_again(plane: HttpControlPlane) -> None:
    """It happens after a reset of stored offsets: what is kept is what was read last."""
    epoch = begin(plane)
    poison = Poison.model_construct(**_poison(0))
    bad = {0: Outcomes(unparseable=[(0, 1)])}
    plane.publish(0, published(epoch, outcomes=bad, quarantined=[poison]))
    SettledRange.objects.all().delete()
    QuarantinedRecord.objects.update(state=QuarantinedRecord.State.STORED, ended_at=timezone.now(), replays=1)
    plane.publish(0, published(epoch, outcomes=bad, quarantined=[poison.model_copy(update={"error": "worse"})]))
    [kept] = QuarantinedRecord.objects.all()
    assert (kept.state, kept.error, kept.ended_at, kept.replays) == ("kept", "worse", None, 1)


@pytest.fixture
def topic(broker: Broker) -> str:
    """Two partitions with ten records each."""
    name = broker.topic("plausible", partitions=2)
    for partition in (0, 1):
        broker.produce(name, [b"{}"] * 10, partition=partition)
    return name


def reader(broker: Broker, topic: str) -> tuple[Task, HttpControlPlane]:
    io_config = {**SPEC["ioConfig"], "topic": topic, "consumerProperties": {"bootstrap.servers": broker.bootstrap}}
    task = make_task(document={**SPEC, "ioConfig": io_config})
    assert parse_task_spec(task.spec).spec.ioConfig.topic == topic
    return task, client_of(task)


def topic_id(broker: Broker, topic: str) -> str:
    from controlplane.connections import kafka

    seen = kafka.topic_offsets({"bootstrap.servers": broker.bootstrap}, topic)
    assert seen is not None
    return seen.topic_id


def start(plane: HttpControlPlane, topic_id: str) -> int:
    return plane.start(0, StartRequest(cluster_id="cluster", topic_id=topic_id, host="here", pid=1)).epoch


def test_offsets_and_partitions_that_the_topic_does_not_have(db: None, deep: Path, broker: Broker, topic: str) -> None:
    """Kafka is asked when the last look at the topic does not explain them."""
    _, plane = reader(broker, topic)
    identity = topic_id(broker, topic)
    epoch = start(plane, identity)
    Source.objects.update(looked_at=timezone.now(), bounds={"0": [0, 0, 5]})

    def settle(partition: int, first: int, last: int) -> None:
        plane.publish(0, request(epoch, outcomes={partition: Outcomes(empty=[(first, last)])}, topic_id=identity))

    with pytest.raises(Invalid, match=r"status 409.*has no partition 2: it has 2"):
        settle(2, 0, 1)
    with pytest.raises(Invalid, match=r"status 409.*has no offset 10 in partition 1: it ends at 10"):
        settle(1, 0, 11)
    with pytest.raises(Invalid, match=r"status 409.*has no offset 17592186044414 in partition 0"):
        settle(0, 0, 2**44 - 1)
    assert not SettledRange.objects.exists()
    settle(1, 0, 10)  # a new partition, and a topic that has grown
    settle(0, 0, 10)


def test_a_topic_id_that_is_not_the_topics_retires_nothing(db: None, broker: Broker, topic: str) -> None:
    _, plane = reader(broker, topic)
    start(plane, identity := topic_id(broker, topic))
    with pytest.raises(Invalid, match=re.escape(f"is {identity}, not made-up")):
        start(plane, "made-up")
    assert list(Source.objects.values_list("topic_id", "current")) == [(identity, True)]
    Source.objects.update(topic_id="older")
    start(plane, identity)
    assert sorted(Source.objects.values_list("topic_id", "current")) == sorted([("older", False), (identity, True)])
