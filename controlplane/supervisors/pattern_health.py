"""How a supervisor with a pattern of topics stands, as far as these go."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from controlplane.supervisors.decide_topics import NONE_YET, TOO_MANY
from controlplane.supervisors.health import Code, Health, Kind
from controlplane.supervisors.health_messages import count
from controlplane.supervisors.models import Supervisor


@dataclass(frozen=True)
class PatternFacts:
    """What is known of a pattern's topics."""

    pattern: str
    detailed_state: str
    max_topics: int  # topics of one pattern
    matched: int | None = None  # when Kafka was last asked; None: it has not been
    read: int = 0  # topics that have a supervisor
    unhealthy: int = 0  # of these, that are unhealthy
    lag: int | None = None  # offsets of all of them that are not settled; None: not known


def pattern_facts(supervisor: Supervisor, read: int = 0, unwell: int = 0, behind: int | None = None) -> PatternFacts:
    """What a supervisor with a pattern says of it, and what there is of those that read its topics."""
    return PatternFacts(
        pattern=supervisor.io_config.topicPattern or "",
        detailed_state=supervisor.detailed_state,
        max_topics=settings.TOPICS_PER_SUPERVISOR,
        matched=supervisor.topics_matched,
        read=read,
        unhealthy=unwell,
        lag=behind,
    )


def health_of_pattern(seen: PatternFacts) -> Health:
    """What is wrong with one of its topics is said by that one, and calls for somebody there alone."""
    topics = count(seen.read, "topic")
    if seen.detailed_state == TOO_MANY:
        reads = f" It continues with the {topics} that it reads." if seen.read else ""
        text = (
            f"{seen.matched or 0:,} topics match {seen.pattern!r}, but one supervisor reads at most "
            f"{seen.max_topics:,}. It starts none. Narrow the pattern, or raise HEADGATE_TOPICS_PER_SUPERVISOR.{reads}"
        )
        return Health(Kind.NEEDS_ATTENTION, Code.TOO_MANY_TOPICS, "too many topics", text, behind=seen.lag)
    if not seen.read and seen.detailed_state == NONE_YET:
        nothing = f"No topic matches {seen.pattern!r}, or this login has no permission to see it."
        text = f"{nothing} Reading starts when one exists."
        return Health(Kind.WAITING, Code.WAITING_FOR_TOPIC, "waiting for topics", text)
    if not seen.read:
        text = f"Headgate asks Kafka for topics that match {seen.pattern!r}. Each topic gets its own supervisor."
        return Health(Kind.WORKING, Code.STARTING, "starting", text)
    if seen.unhealthy:
        text = f"{seen.unhealthy:,} of {topics} are unhealthy. Their supervisors say why."
        return Health(Kind.WORKING, Code.TOPICS_UNWELL, "topics unhealthy", text, behind=seen.lag)
    text = f"It reads {topics} that match {seen.pattern!r}, with one supervisor for each."
    return Health(Kind.OK, Code.UP_TO_DATE, f"reading {topics}", text, behind=seen.lag)
