"""How a supervisor with a pattern of topics stands, as far as these go."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from controlplane.common.health import Code, Health
from controlplane.supervisors.health_messages import count
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.states import Detail


@dataclass(frozen=True)
class PatternFacts:
    """What is known of a pattern's topics."""

    pattern: str
    detailed_state: Detail
    max_topics: int  # topics of one pattern
    matched: int | None = None  # when Kafka was last asked; None: it has not been
    read: int = 0  # topics that have a supervisor
    unhealthy: int = 0  # of these, that are unhealthy
    lag: int | None = None  # offsets of all of them that are not settled; None: not known


def pattern_facts(supervisor: Supervisor, read: int = 0, unwell: int = 0, behind: int | None = None) -> PatternFacts:
    """What a supervisor with a pattern says of it, and what there is of those that read its topics."""
    return PatternFacts(
        pattern=supervisor.io_config.topicPattern or "",
        detailed_state=supervisor.detail,
        max_topics=settings.TOPICS_PER_SUPERVISOR,
        matched=supervisor.topics_matched,
        read=read,
        unhealthy=unwell,
        lag=behind,
    )


def health_of_pattern(seen: PatternFacts) -> Health:
    """What is wrong with one of its topics is said by that one, and calls for somebody there alone."""
    topics = count(seen.read, "topic")
    if seen.detailed_state == Detail.TOO_MANY_TOPICS:
        reads = f" It continues with the {topics} that it reads." if seen.read else ""
        cause = (
            f"{seen.matched or 0:,} topics match {seen.pattern!r}, but one supervisor reads at most "
            f"{seen.max_topics:,}. It starts none.{reads}"
        )
        action = "Narrow the pattern, or raise HEADGATE_TOPICS_PER_SUPERVISOR."
        return Health.of(Code.TOO_MANY_TOPICS, cause, action, behind=seen.lag)
    if not seen.read and seen.detailed_state == Detail.WAITING_FOR_TOPICS:
        cause = f"No topic matches {seen.pattern!r}, or this login has no permission to see it."
        return Health.of(Code.WAITING_FOR_TOPIC, f"{cause} Reading starts when one exists.", label="waiting for topics")
    if not seen.read:
        cause = f"Headgate asks Kafka for topics that match {seen.pattern!r}. Each topic gets its own supervisor."
        return Health.of(Code.STARTING, cause)
    if seen.unhealthy:
        cause = f"{seen.unhealthy:,} of {topics} are unhealthy. Their supervisors say why."
        return Health.of(Code.TOPICS_UNWELL, cause, behind=seen.lag)
    cause = f"It reads {topics} that match {seen.pattern!r}, with one supervisor for each."
    return Health.of(Code.UP_TO_DATE, cause, label=f"reading {topics}", behind=seen.lag)
