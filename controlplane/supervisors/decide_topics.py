"""What a supervisor does whose spec has a ``topicPattern``: a pure function of what was observed.

It reads nothing itself. Each topic that matches has a supervisor of its own, which reads it as any other does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import re2

from controlplane.supervisors.decide import Runs, Thresholds, unhealthy_state
from controlplane.supervisors.states import Detail, State
from ingestion.specs.schema.java_classes import BadPattern
from ingestion.specs.schema.java_patterns import translated

_AT_REST = (Detail.TERMINATED, Detail.SUSPENDED)  # of supervisors whose tasks have ended
_WORST_FIRST = ("UNHEALTHY_SUPERVISOR", "UNHEALTHY_TASKS", "RUNNING", "PENDING", "STOPPING", "IDLE", "SUSPENDED")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """Java's, as ``check_spec`` has tried it out; of a stored spec perhaps one that only RE2 reads."""
    options = re2.Options()
    options.log_errors = False
    try:
        pattern, _ = translated(pattern)  # the odd texts that it names can't be a topic's name
    except BadPattern:
        pass
    return re2.compile(pattern, options)


def matching(pattern: str, topics: Iterable[str]) -> list[str]:
    """The topics whose whole name the pattern, which was checked when it was submitted, matches; by name."""
    compiled = _compiled(pattern)
    return sorted(topic for topic in topics if compiled.fullmatch(topic))


@dataclass(frozen=True)
class ChildSnapshot:
    """The supervisor of one topic."""

    topic: str
    detailed_state: Detail
    pattern_version: int  # the version of the pattern's spec that its own is of
    suspended: bool
    terminated: bool
    matches: bool  # its topic, today's pattern


@dataclass(frozen=True)
class TopicsObservation:
    """What a round has seen."""

    version: int
    suspended: bool
    terminated: bool
    children: list[ChildSnapshot]
    matched: list[str] | None = None  # the topics there are, by Kafka's answer; None: it was not asked now
    own_tasks: int = 0  # that have not ended, of a spec that named a topic
    max_topics: int = 50  # topics of one pattern
    last_match_count: int | None = None  # how many did when Kafka was last asked
    runs: Runs = field(default_factory=Runs)
    thresholds: Thresholds = field(default_factory=Thresholds)
    previous: Detail = Detail.PENDING


@dataclass(frozen=True)
class TopicsDecision:
    """What to do; topics name the supervisors that read them."""

    detailed_state: Detail
    begin: list[str] = field(default_factory=list)  # get a supervisor, or have theirs brought back
    to_update: list[str] = field(default_factory=list)  # take up the spec, or whether it is suspended
    end: list[str] = field(default_factory=list)


def decide_topics(observed: TopicsObservation) -> TopicsDecision:
    """The next step: each topic that matches is read, by the present spec and no longer than this says."""
    living = [c for c in observed.children if not c.terminated]
    if observed.terminated:
        return replace(_decide_stopped(observed, Detail.TERMINATED), end=[c.topic for c in living])
    end = [c.topic for c in living if not c.matches]
    remaining = [c for c in living if c.matches]
    follow = [c.topic for c in remaining if (c.pattern_version, c.suspended) != (observed.version, observed.suspended)]
    if observed.suspended:
        return replace(_decide_stopped(observed, Detail.SUSPENDED), to_update=follow, end=end)
    begin = _new_topics(observed, {c.topic for c in remaining}) if may_begin(observed) else []
    return TopicsDecision(_detail(observed, remaining, bool(begin)), begin=begin, to_update=follow, end=end)


def may_begin(observed: TopicsObservation) -> bool:
    """Whether topics that are not read yet get a supervisor now."""
    return not (observed.terminated or observed.suspended or observed.own_tasks or _too_many(observed))


def _new_topics(observed: TopicsObservation, read: set[str]) -> list[str]:
    return [topic for topic in observed.matched or () if topic not in read]


def _too_many(observed: TopicsObservation) -> bool:
    """Then none is begun: a pattern that matches a whole cluster by mistake is to start nothing."""
    match_count = observed.last_match_count if observed.matched is None else len(observed.matched)
    return match_count is not None and match_count > observed.max_topics


def _decide_stopped(observed: TopicsObservation, at_rest: Detail) -> TopicsDecision:
    ended = not observed.own_tasks and all(c.detailed_state in _AT_REST for c in observed.children)
    return TopicsDecision(at_rest if ended else Detail.STOPPING)


def _detail(observed: TopicsObservation, children: list[ChildSnapshot], begins: bool) -> Detail:
    """The worst of its own and its topics' states."""
    unhealthy_detail = unhealthy_state(observed.runs, observed.thresholds)
    if unhealthy_detail is not None:
        return unhealthy_detail
    previous = observed.previous
    was_bad = previous.state == State.UNHEALTHY_SUPERVISOR and previous != Detail.TOO_MANY_TOPICS
    if was_bad and observed.runs.good < observed.thresholds.healthiness:
        return previous
    if _too_many(observed):
        return Detail.TOO_MANY_TOPICS
    if not observed.runs.connected:
        return Detail.CONNECTING_TO_STREAM
    if not children:
        return Detail.CREATING_TASKS if begins or observed.own_tasks else Detail.WAITING_FOR_TOPICS
    details = [c.detailed_state for c in children]
    # Of those in the worst state, RUNNING says least.
    return min(details, key=lambda detail: (_WORST_FIRST.index(detail.state), detail == Detail.RUNNING))
