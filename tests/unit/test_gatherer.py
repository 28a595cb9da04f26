"""Batches that gather until handoff: what is void is read again, what others have published is not stored twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestion.client.errors import Unreachable
from ingestion.client.memory import MemoryControlPlane
from ingestion.sources.base import TopicChanged
from ingestion.sources.memory_log import MemoryLog
from ingestion.specs.messages.protocol import Advance, PublishAnswer, PublishRequest, StartRequest
from ingestion.task import buffering_publisher
from ingestion.task.errors import Fenced
from tests.support.gathering import Gathering, Plane
from tests.support.indexer import TOPIC, assignment, record, stored, total

Make = Callable[..., Gathering]
GROUP = {"assignment": "consumer_group", "groupId": "g"}


@pytest.fixture
def log() -> MemoryLog:
    """Records 0 to 9 in partition 0, 10 to 19 in partition 1."""
    log = MemoryLog(partitions=2)
    for partition in range(2):
        log.append([record(10 * partition + n) for n in range(10)], partition)
    return log


@pytest.fixture
def make(tmp_path: Path, log: MemoryLog) -> Iterator[Make]:
    """Makes the indexers of one task, or of replicas; ``io_config`` is the first one's."""
    (tmp_path / "segments").mkdir()
    made: list[Gathering] = []
    planes: list[Plane] = []

    def make_one(io_config: dict[str, Any] | None = None, **more: Any) -> Gathering:
        if not planes:
            given = assignment(tmp_path, kafka=True, io_config=io_config)
            kind = given.spec.ioConfig.traits.kind
            planes.append(Plane(given.model_copy(update={"kind": kind})))
        one = Gathering(planes[0], log, tmp_path, number=len(made), **more)
        made.append(one)
        return one

    yield make_one
    for one in made:
        one.close()


def moves(plane: MemoryControlPlane) -> list[dict[int, tuple[int, int]]]:
    return [{p: (a.start, a.end) for p, a in request.progress.items()} for request in plane.published]


def test_what_has_gathered_is_one_publish(make: Make, tmp_path: Path) -> None:
    one = make(batch_records=3)
    one.read()
    assert one.plane.published == []
    assert one.control.status.in_flight == 20
    one.gatherer.hand_off()
    assert moves(one.plane) == [{0: (0, 10), 1: (0, 10)}]
    assert stored(one.plane, tmp_path) == list(range(20))
    assert one.control.status.in_flight == 0
    one.gatherer.hand_off()
    assert len(one.plane.published) == 1, "nothing was read since"


def test_a_partition_that_goes_to_another_member_is_void_by_itself(make: Make, tmp_path: Path) -> None:
    one = make(GROUP)
    one.read()
    one.source.assign([1])
    one.gatherer.catch_up()
    one.gatherer.hand_off()
    assert moves(one.plane) == [{1: (0, 10)}]
    assert stored(one.plane, tmp_path) == list(range(10, 20))
    assert (one.unpublished.released, one.unpublished.redundant) == (10, 0)
    assert one.source.rewound == []


def test_rows_that_can_not_be_told_apart_go_together_and_are_read_again(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another replica has stored a part of partition 0: partition 1 is void here with it, but not lost."""
    monkeypatch.setattr(buffering_publisher, "HEAD_START_S", 0.0)
    one = make({"replicas": 2})
    one.read()
    one.plane.stored[TOPIC.topic_id, 0] = 6
    one.source.notice_replicas()
    one.gatherer.catch_up()
    assert one.control.status.in_flight == 0
    assert (one.unpublished.redundant, one.unpublished.released) == (6, 14)
    assert one.source.rewound == [{0}, {1}], "the source went back on what it lost by itself"
    one.read()
    one.gatherer.hand_off()
    assert moves(one.plane) == [{0: (6, 10), 1: (0, 10)}]
    assert stored(one.plane, tmp_path) == list(range(6, 20))


def test_what_is_given_up_is_read_again_from_the_stored_offsets(make: Make, tmp_path: Path) -> None:
    one = make()
    one.read()
    one.gatherer.give_up()
    assert (one.unpublished.released, one.control.status.in_flight) == (20, 0)
    one.source.rewind([0, 1])
    one.read()
    one.gatherer.hand_off()
    assert moves(one.plane) == [{0: (0, 10), 1: (0, 10)}]
    assert stored(one.plane, tmp_path) == list(range(20))


@pytest.fixture
def replicas(make: Make, monkeypatch: pytest.MonkeyPatch) -> tuple[Gathering, Gathering]:
    """Both have read the same. Who is behind looks often, and until the test is over."""
    monkeypatch.setattr(buffering_publisher, "TURN_CHECK_S", 0.01)
    both = make({"replicas": 2}), make()
    for one in both:
        one.read()
    return both


def test_a_replica_drops_what_the_other_has_published(
    replicas: tuple[Gathering, Gathering], log: MemoryLog, tmp_path: Path
) -> None:
    first, second = replicas
    first.gatherer.hand_off()
    second.gatherer.hand_off()
    assert moves(first.plane) == [{0: (0, 10), 1: (0, 10)}]
    assert (second.unpublished.redundant, second.unpublished.released) == (20, 0)
    log.append([record(20)])
    second.read()
    assert second.control.status.in_flight == 1, "it is ready to publish the next part"


def test_a_replica_publishes_when_the_one_that_has_the_turn_does_not(
    replicas: tuple[Gathering, Gathering], log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffering_publisher, "HEAD_START_S", 0.05)
    first, second = replicas
    first.gatherer.hand_off()
    second.gatherer.hand_off()
    log.append([record(20)])
    second.read()
    second.gatherer.hand_off()
    assert moves(first.plane)[1:] == [{0: (10, 11)}]
    assert stored(first.plane, tmp_path) == list(range(21))


def files(folder: Path) -> int:
    return len(list((folder / "segments").rglob("*.parquet")))


@pytest.mark.parametrize("lost", ["by looking", "by a refusal"])
def test_a_replica_that_lost_lets_the_other_one_publish_first(
    replicas: tuple[Gathering, Gathering], log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """However it lost: it uploads nothing in vain the next time."""
    monkeypatch.setattr(buffering_publisher, "HEAD_START_S", 600.0)
    first, second = replicas
    if lost == "by looking":
        first.gatherer.hand_off()
    else:
        second.plane.before = first.gatherer.hand_off
    second.gatherer.hand_off()
    assert moves(first.plane) == [{0: (0, 10), 1: (0, 10)}]
    assert second.unpublished.redundant == 20
    log.append([record(20)])
    for one in replicas:
        one.read()
    uploaded = files(tmp_path)
    second.source.at_looks = [lambda: None, first.gatherer.hand_off]
    second.gatherer.hand_off()
    assert [one.control.status.publishes for one in replicas] == [2, 0]
    assert files(tmp_path) == uploaded + 1
    assert stored(first.plane, tmp_path) == list(range(21))


def test_a_partition_that_is_stored_elsewhere_by_now_is_left_out(make: Make, tmp_path: Path) -> None:
    """Another member took its generation and published: the rest is published at once, without it."""
    one, other = make(GROUP), make(partitions=[])
    one.read()
    other.source.assign([0])
    other.read()
    other.gatherer.hand_off()
    one.gatherer.hand_off()
    assert moves(one.plane) == [{0: (0, 10)}, {1: (0, 10)}]
    assert stored(one.plane, tmp_path) == list(range(20))
    assert (one.unpublished.released, one.unpublished.redundant) == (10, 0)
    assert one.source.rewound == [{0}]
    one.read()
    assert one.control.status.in_flight == 0, "it is another's"


def test_offsets_that_moved_meanwhile_are_read_from_where_they_are(make: Make, tmp_path: Path) -> None:
    one = make()
    one.read()
    one.plane.stored[TOPIC.topic_id, 0] = 4
    one.gatherer.hand_off()
    assert one.plane.published == []
    assert (one.unpublished.redundant, one.unpublished.released) == (4, 16)
    one.read()
    one.gatherer.hand_off()
    assert one.plane.published[0].progress == {0: Advance(start=4, end=10), 1: Advance(start=0, end=10)}
    assert stored(one.plane, tmp_path) == list(range(4, 20))
    assert total(one.plane).polled == 16


def test_a_newer_epoch_ends_it(make: Make) -> None:
    one = make()
    one.read()
    one.plane.start(0, StartRequest(cluster_id="cluster", topic_id=TOPIC.topic_id, host="there", pid=2))
    with pytest.raises(Fenced):
        one.gatherer.hand_off()
    assert one.plane.published == []


def test_nothing_is_published_of_a_topic_that_was_made_again(make: Make) -> None:
    one = make()
    one.read()
    one.topic.change_after = 0
    with pytest.raises(TopicChanged):
        one.gatherer.hand_off()
    assert one.plane.published == []
    assert one.unpublished.released == 20


def test_who_is_stopped_while_the_control_plane_is_away_leaves_it_to_the_next(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make()
    one.read()

    def away(number: int, request: PublishRequest) -> PublishAnswer:
        one.control.update("stop")
        raise Unreachable("connection refused")

    monkeypatch.setattr(one.plane, "publish", away)
    one.gatherer.hand_off()
    one.gatherer.end()
    assert one.unpublished.released == 20
    assert one.source.rewound == [], "nobody reads on"


@pytest.mark.parametrize(("directive", "published"), [("finish", 1), ("stop", 0)])
def test_at_the_end_it_publishes_or_leaves_it(make: Make, directive: Any, published: int) -> None:
    one = make()
    one.read()
    one.control.update(directive)
    one.gatherer.end()
    assert len(one.plane.published) == published
    assert one.unpublished.released == (0 if published else 20)
