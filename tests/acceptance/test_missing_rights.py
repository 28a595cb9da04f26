"""Rights on Kafka that are missing, come and are taken away: a supervisor says so, and reads on by itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.guarded_kafka import Guarded, guarded
from tests.support.house import House
from tests.support.invariants import check_adds_up
from tests.support.records import numbered, published
from tests.support.waiting import wait_for

__all__ = ["guarded"]  # a fixture


def lanes(guarded: Guarded) -> dict[str, dict[str, Any]]:
    """A spec for each, by its topic."""
    more: dict[str, Any] = {"consumerProperties": guarded.properties, "period": "PT2S"}
    group, share = (guarded.topic(name, partitions=2) for name in ("group", "share"))
    return {
        group: guarded.kafka_spec(group, assignment="consumer_group", **more),
        share: guarded.spec(share, useEarliestOffset=True, **more),
    }


@pytest.mark.timeout(900)
def test_what_is_missing_is_named_and_it_reads_on_once_it_is_there(house: House, guarded: Guarded) -> None:
    """Under Spark, as the driver must not take a refused indexer for a dead one.

    Partitions assigned by number are refused as in ``test_kafka_refuses``.
    """
    specs = lanes(guarded)
    for topic, spec in specs.items():
        guarded.give("GROUP", f"group-{topic}", "READ", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
        guarded.give("GROUP", topic, "READ")
        guarded.produce(topic, numbered(0, 200))
        house.supervise(spec)

    def told(topic: str) -> dict[str, Any]:
        shown = house.api("GET", f"/api/v1/supervisors/{topic}/")
        return {n: shown[n] for n in ("detailed_state", "healthy", "why_nothing", "health")}

    def refused(topic: str) -> bool:
        seen, what = told(topic), f"lacks the right READ on topic '{topic}'"
        first = seen["why_nothing"][0] if seen["why_nothing"] else {"code": "", "text": ""}
        return (
            (seen["detailed_state"], seen["healthy"], first["code"]) == ("KAFKA_REFUSES", False, "kafka_refuses")
            and seen["health"]["code"] == "kafka_refuses"
            and what in first["text"]
            and what in seen["health"]["text"]
        )

    def well(topic: str) -> bool:
        seen = told(topic)
        return seen["healthy"] and seen["detailed_state"] == "RUNNING" and seen["why_nothing"] == []

    for topic in specs:
        no_describe = f"lacks the right DESCRIBE on topic '{topic}'"
        wait_for(no_describe, lambda t=topic, said=no_describe: said in told(t)["health"]["text"], 60)
        assert [r["code"] for r in told(topic)["why_nothing"]] == ["kafka_refuses"]
        guarded.give("TOPIC", topic, "DESCRIBE")
    for records in (200, 400):
        for topic in specs:
            wait_for(f"{topic} is refused", lambda t=topic: refused(t), 120, lambda t=topic: (told(t), house.logs(t)))
            guarded.give("TOPIC", topic, "READ")
        for topic in specs:
            assert published(house, topic, records) == records
            wait_for(f"{topic} is well", lambda t=topic: well(t), 60, lambda t=topic: told(t))
            check_adds_up(house.totals(topic))
            if records == 200:
                guarded.take("TOPIC", topic, "READ")
                guarded.produce(topic, numbered(200, 400))
