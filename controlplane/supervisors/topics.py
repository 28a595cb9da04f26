"""What a supervisor does whose spec has a ``topicPattern``: a pure function of what was observed.

It reads nothing itself. Each topic that matches has a supervisor of its own, which reads it as any other does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import re2

from controlplane.supervisors.decide import Runs, Thresholds, unhealthy
from ingestion.specs.schema.java_classes import BadPattern
from ingestion.specs.schema.java_patterns import translated

TOO_MANY = "TOO_MANY_TOPICS"
NONE_YET = "WAITING_FOR_TOPICS"
_AT_REST = ("TERMINATED", "SUSPENDED")  # details, of supervisors whose tasks have ended
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
class SeenChild:
    """The supervisor of one topic."""

    topic: str
    state: str
    detailed_state: str
    follows: int  # the version of the pattern's spec that its own is of
    suspended: bool
    terminated: bool
    matches: bool  # its topic, today's pattern


@dataclass(frozen=True)
class SeenTopics:
    """What a round has seen."""

    version: int
    suspended: bool
    terminated: bool
    children: list[SeenChild]
    matched: list[str] | None = None  # the topics there are, by Kafka's answer; None: it was not asked now
    own_tasks: int = 0  # that have not ended, of a spec that named a topic
    most: int = 50  # topics of one pattern
    known_to_match: int | None = None  # how many did when Kafka was last asked
    runs: Runs = field(default_factory=Runs)
    thresholds: Thresholds = field(default_factory=Thresholds)
    before: tuple[str, str] = ("PENDING", "PENDING")


@dataclass(frozen=True)
class TopicsDecision:
    """What to do; topics name the supervisors that read them."""

    state: str
    detailed_state: str
    begin: list[str] = field(default_factory=list)  # get a supervisor, or have theirs brought back
    follow: list[str] = field(default_factory=list)  # take up the spec, or whether it is suspended
    end: list[str] = field(default_factory=list)


def decide_topics(seen: SeenTopics) -> TopicsDecision:
    """The next step: each topic that matches is read, by the present spec and no longer than this says."""
    living = [c for c in seen.children if not c.terminated]
    if seen.terminated:
        return replace(_stopped(seen, "TERMINATED"), end=[c.topic for c in living])
    end = [c.topic for c in living if not c.matches]
    stays = [c for c in living if c.matches]
    follow = [c.topic for c in stays if (c.follows, c.suspended) != (seen.version, seen.suspended)]
    if seen.suspended:
        return replace(_stopped(seen, "SUSPENDED"), follow=follow, end=end)
    begin = _new(seen, {c.topic for c in stays}) if may_begin(seen) else []
    state, detail = _health(seen, stays, bool(begin))
    return TopicsDecision(state, detail, begin=begin, follow=follow, end=end)


def may_begin(seen: SeenTopics) -> bool:
    """Whether topics that are not read yet get a supervisor now."""
    return not (seen.terminated or seen.suspended or seen.own_tasks or _too_many(seen))


def _new(seen: SeenTopics, read: set[str]) -> list[str]:
    return [topic for topic in seen.matched or () if topic not in read]


def _too_many(seen: SeenTopics) -> bool:
    """Then none is begun: a pattern that matches a whole cluster by mistake is to start nothing."""
    found = seen.known_to_match if seen.matched is None else len(seen.matched)
    return found is not None and found > seen.most


def _stopped(seen: SeenTopics, at_rest: str) -> TopicsDecision:
    ended = not seen.own_tasks and all(c.detailed_state in _AT_REST for c in seen.children)
    if not ended:
        return TopicsDecision("STOPPING", "STOPPING")
    return TopicsDecision("STOPPING" if at_rest == "TERMINATED" else at_rest, at_rest)


def _health(seen: SeenTopics, children: list[SeenChild], begins: bool) -> tuple[str, str]:
    """The worst of its own and its topics' states."""
    bad = unhealthy(seen.runs, seen.thresholds)
    if bad:
        return "UNHEALTHY_SUPERVISOR", bad
    was_bad = seen.before[0] == "UNHEALTHY_SUPERVISOR" and seen.before[1] != TOO_MANY
    if was_bad and seen.runs.good < seen.thresholds.healthiness:
        return seen.before
    if _too_many(seen):
        return "UNHEALTHY_SUPERVISOR", TOO_MANY
    if not seen.runs.connected:
        return "RUNNING", "CONNECTING_TO_STREAM"
    if not children:
        return "RUNNING", "CREATING_TASKS" if begins or seen.own_tasks else NONE_YET
    state = min((c.state for c in children), key=_WORST_FIRST.index)
    details = [c.detailed_state for c in children if c.state == state]
    return state, next((d for d in details if d != "RUNNING"), details[0])
