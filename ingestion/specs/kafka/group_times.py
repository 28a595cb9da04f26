"""How a member of a consumer group shows that it lives: Kafka's properties for that, and which values make sense."""

from __future__ import annotations

from collections.abc import Mapping

from ingestion.specs.kafka.providers import Value

SESSION, HEARTBEAT, POLL = "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms"
DEFAULTS = {SESSION: 10_000, HEARTBEAT: 2_000, POLL: 300_000}  # a member that died is missed for 10 s
# Of a session's length: those that brokers have unless told otherwise.
BOUNDS = {SESSION: (6_000, 1_800_000), HEARTBEAT: (100, 1_800_000), POLL: (6_000, 86_400_000)}


def group_times(properties: Mapping[str, Value]) -> dict[str, int]:
    """All three, in ms, under librdkafka's names. Raises ``ValueError`` for what is no number."""
    return {name: int(str(properties.get(name, default))) for name, default in DEFAULTS.items()}


def faults_of(properties: Mapping[str, Value]) -> dict[str, str]:
    """What is wrong with those that are given, by their name."""
    faults: dict[str, str] = {}
    for name, (least, most) in BOUNDS.items():
        text = str(properties.get(name, least))
        if not (text.isdecimal() and least <= int(text) <= most):
            faults[name] = f"must be a number of milliseconds, {least:,} to {most:,}"
    if faults:
        return faults
    times = group_times(properties)
    for name, holds in ((HEARTBEAT, times[HEARTBEAT] < times[SESSION]), (POLL, times[POLL] >= times[SESSION])):
        if not holds:
            name_at_fault = name if name in properties else SESSION
            relation = "less than" if name == HEARTBEAT else "at least as long as"
            faults[name_at_fault] = f"{name} ({times[name]:,}) must be {relation} {SESSION} ({times[SESSION]:,})"
    return faults
