"""The three ways to read a topic, for tests that have them do it side by side."""

from __future__ import annotations

from typing import Any

from tests.support.house import House

WITH_STORED_OFFSETS = ("offset_range", "consumer_group")
LANES = (*WITH_STORED_OFFSETS, "share_group")


def lane_spec(
    house: House, lane: str, topic: str, datasource: str | None = None, tuning: dict[str, Any] | None = None, **io: Any
) -> dict[str, Any]:
    """A spec for records of ``numbered``. ``io``: more of its ioConfig, ``House.spec``'s own arguments among it."""
    if lane == "share_group":
        return {**house.spec(topic, datasource, **io), "tuningConfig": tuning or {}}
    return house.kafka_spec(topic, datasource, tuning, assignment=lane, **io)
