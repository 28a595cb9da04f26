"""What a supervisor with a pattern of topics does next, and how it stands, by table; and which topics match."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controlplane.common.health import Code, Health, Kind
from controlplane.sources.spec_sources import offsets_owner
from controlplane.supervisors.decide import Runs
from controlplane.supervisors.decide_topics import (
    ChildSnapshot,
    TopicsDecision,
    TopicsObservation,
    decide_topics,
    matching,
)
from controlplane.supervisors.pattern_health import PatternFacts, health_of_pattern
from controlplane.supervisors.problems import problems_of
from controlplane.supervisors.states import Detail
from controlplane.supervisors.topic_supervisors import LONGEST_ID, LONGEST_PARENT_ID, child_id

READS = ChildSnapshot("a", Detail.RUNNING, pattern_version=1, suspended=False, terminated=False, matches=True)
ANSWERED = Runs(good=3, connected=True)


def seen(*children: ChildSnapshot, **more: Any) -> TopicsObservation:
    given: dict[str, Any] = {"version": 1, "suspended": False, "terminated": False, "runs": ANSWERED}
    return TopicsObservation(children=list(children), **{**given, **more})


def child(topic: str, detail: Detail = Detail.RUNNING, **more: Any) -> ChildSnapshot:
    return replace(READS, topic=topic, detailed_state=detail, **more)


@pytest.mark.parametrize(
    ("observed", "decided"),
    [
        (seen(runs=Runs()), TopicsDecision(Detail.CONNECTING_TO_STREAM)),
        (seen(matched=[]), TopicsDecision(Detail.WAITING_FOR_TOPICS)),
        (seen(matched=["a", "b"]), TopicsDecision(Detail.CREATING_TASKS, begin=["a", "b"])),
        (seen(READS, matched=["a", "b"]), TopicsDecision(Detail.RUNNING, begin=["b"])),
        (seen(READS, matched=[]), TopicsDecision(Detail.RUNNING)),  # a topic that is gone is its own matter
        (seen(matched=["a"], own_tasks=1), TopicsDecision(Detail.CREATING_TASKS)),
        (seen(child("a", terminated=True), matched=["a"]), TopicsDecision(Detail.CREATING_TASKS, begin=["a"])),
        (seen(child("a", terminated=True)), TopicsDecision(Detail.WAITING_FOR_TOPICS)),
        (seen(READS, version=2), TopicsDecision(Detail.RUNNING, to_update=["a"])),
        (seen(child("a", matches=False)), TopicsDecision(Detail.WAITING_FOR_TOPICS, end=["a"])),
        (seen(READS, suspended=True), TopicsDecision(Detail.STOPPING, to_update=["a"])),
        (seen(child("a", Detail.SUSPENDED, suspended=True), suspended=True), TopicsDecision(Detail.SUSPENDED)),
        (seen(suspended=True, own_tasks=1), TopicsDecision(Detail.STOPPING)),
        (seen(child("a", Detail.SUSPENDED, suspended=True)), TopicsDecision(Detail.SUSPENDED, to_update=["a"])),
        (seen(READS, terminated=True), TopicsDecision(Detail.STOPPING, end=["a"])),
        (
            seen(child("a", Detail.TERMINATED, terminated=True), terminated=True),
            TopicsDecision(Detail.TERMINATED),
        ),
        (
            seen(READS, matched=["a", "b", "c"], max_topics=2),
            TopicsDecision(Detail.TOO_MANY_TOPICS),
        ),
        (seen(READS, last_match_count=3, max_topics=2), TopicsDecision(Detail.TOO_MANY_TOPICS)),
        (
            seen(READS, matched=["a"], max_topics=2, previous=Detail.TOO_MANY_TOPICS),
            TopicsDecision(Detail.RUNNING),
        ),
        (
            seen(READS, runs=Runs(failed=3, stream_failed=True, connected=True)),
            TopicsDecision(Detail.LOST_CONTACT_WITH_STREAM),
        ),
        (
            seen(
                READS,
                runs=Runs(good=1, connected=True),
                previous=Detail.LOST_CONTACT_WITH_STREAM,
            ),
            TopicsDecision(Detail.LOST_CONTACT_WITH_STREAM),
        ),
        (
            seen(READS, child("b", Detail.UNHEALTHY_TASKS), child("c", Detail.IDLE)),
            TopicsDecision(Detail.UNHEALTHY_TASKS),
        ),
        (seen(READS, child("b", Detail.CREATING_TASKS)), TopicsDecision(Detail.CREATING_TASKS)),
        (seen(child("a", Detail.IDLE), child("b", Detail.IDLE)), TopicsDecision(Detail.IDLE)),
        (seen(READS, child("b", Detail.IDLE)), TopicsDecision(Detail.RUNNING)),
    ],
)
def test_the_next_step(observed: TopicsObservation, decided: TopicsDecision) -> None:
    assert decide_topics(observed) == decided


def test_the_whole_of_a_name_is_to_match() -> None:
    topics = ["orders", "orders-eu", "orders-us", "old-orders", "Orders-eu"]
    assert matching("orders", topics) == ["orders"]
    assert matching("orders-(eu|us)", topics) == ["orders-eu", "orders-us"]
    assert matching("(?i)orders-.*", topics) == ["Orders-eu", "orders-eu", "orders-us"]
    assert matching("orders-|old.*", topics) == ["old-orders"]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("[a-c&&[^b]]", ["a", "c"]),  # RE2 alone: one of a, b, c, & and a bracket
        (r"\p{Lower}", ["a", "b", "c"]),  # RE2 alone: no such class
        (r"\Qa.b\E", ["a.b"]),
        ("(?P<x>a)", ["a"]),  # of a stored spec: Java refuses it
    ],
)
def test_patterns_mean_what_java_means(pattern: str, matched: list[str]) -> None:
    assert matching(pattern, ["a", "b", "c", "B", "a.b", "a-b"]) == matched


def test_what_is_true_of_all_topics_is_a_problem_once() -> None:
    silent = Health.of(Code.KAFKA_UNREACHABLE, "", kind=Kind.FAILED)
    failing = Health.of(Code.FAILING, "")
    stands = {"orders": silent, "orders:a": silent, "orders:b": failing, "others:a": silent}
    assert sorted(p.name for p in problems_of(stands)) == ["orders", "orders:b", "others:a"]


def test_ids_name_the_owner_and_stay_apart() -> None:
    """However long the names are."""
    assert child_id("orders", "orders-eu") == "orders:orders-eu"
    long = "t" * 248
    ids = {child_id("p" * LONGEST_PARENT_ID, long + last) for last in "ab"}
    assert len(ids) == 2
    assert {len(i) for i in ids} == {LONGEST_ID}
    assert {offsets_owner(i) for i in ids} == {"p" * LONGEST_PARENT_ID}
    assert offsets_owner("orders") == "orders"


@pytest.mark.parametrize(
    ("pattern", "kind", "code", "said"),
    [
        (PatternFacts("a.*", Detail.CONNECTING_TO_STREAM, 50), Kind.WORKING, Code.STARTING, "asks Kafka"),
        (PatternFacts("a.*", Detail.WAITING_FOR_TOPICS, 50, 0), Kind.WAITING, Code.WAITING_FOR_TOPIC, "'a.*'"),
        (
            PatternFacts("a.*", Detail.TOO_MANY_TOPICS, 50, 51),
            Kind.NEEDS_ATTENTION,
            Code.TOO_MANY_TOPICS,
            "51 topics match",
        ),
        (PatternFacts("a.*", Detail.UNHEALTHY_TASKS, 50, 3, 3, 1), Kind.WORKING, Code.TOPICS_UNWELL, "1 of 3 topics"),
        (PatternFacts("a.*", Detail.RUNNING, 50, 1, 1), Kind.OK, Code.UP_TO_DATE, "It reads 1 topic that"),
    ],
)
def test_how_it_stands(pattern: PatternFacts, kind: Kind, code: Code, said: str) -> None:
    stands = health_of_pattern(pattern)
    assert (stands.kind, stands.code) == (kind, code)
    assert said in stands.text
