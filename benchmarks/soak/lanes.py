"""What runs under the faults: a supervisor of each kind, each on a topic of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.support.house import House

KINDS = ("share_group", "offset_range", "consumer_group")
PARTITIONS = 6
LOCK_MS = 5_000
LATE_AFTER = "P1D"  # ioConfig.lateMessageRejectionPeriod
_PUBLISHED = """
    SELECT coalesce((SELECT sum(f.published) FROM publishing_indexerfence f WHERE f.datasource_id = d.id), 0)
        - coalesce((
            SELECT sum((p.retired->>'published')::bigint) FROM publishing_rewindpart p
            JOIN publishing_rewind r ON r.id = p.rewind_id WHERE r.datasource_id = d.id
        ), 0)
    FROM datasources_datasource d WHERE d.name = %s
"""
_TIMES = (
    "SELECT p.created_at FROM publishing_publish p JOIN publishing_indexerfence f ON f.id = p.fence_id"
    " JOIN datasources_datasource d ON d.id = f.datasource_id WHERE d.name = %s AND NOT p.abandoned ORDER BY 1"
)


@dataclass
class Lane:
    """One supervisor and its spec as it is to be."""

    kind: str
    topic: str
    task_count: int = 2
    columns: int = 0  # how many a spec has added to those of the first
    suspended: bool = False
    foreign_members: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def datasource(self) -> str:
        return self.topic

    def spec(self, house: House) -> dict[str, Any]:
        """The whole document, secrets and state included."""
        io_config: dict[str, Any] = {"taskCount": self.task_count, "lateMessageRejectionPeriod": LATE_AFTER}
        io_config["tombstones"] = "quarantine"  # one outcome for all that is no record
        if self.kind == "share_group":
            spec = house.spec(self.topic, lock_ms=LOCK_MS, **io_config)
        else:
            spec = house.kafka_spec(self.topic, assignment=self.kind, startDelay="PT0S", **io_config)
        numbers = [{"type": "long", "name": name} for name in ("n", "value")]
        spec["dataSchema"]["dimensionsSpec"] = {"dimensions": [*numbers, "category", *self.added()]}
        spec["dataSchema"]["granularitySpec"]["segmentGranularity"] = "HOUR"
        return {**spec, "suspended": self.suspended}

    def added(self) -> list[str]:
        """The columns that later specs have."""
        return [f"column_{n}" for n in range(self.columns)]

    def submit(self, house: House) -> None:
        """Have the supervisor follow the spec as it is now."""
        house.supervise(self.spec(house))


def open_lanes(house: House) -> list[Lane]:
    """A topic for each kind, and its supervisor."""
    lanes = [Lane(kind, house.topic(kind.replace("_", "-"), PARTITIONS)) for kind in KINDS]
    for lane in lanes:
        lane.submit(house)
    return lanes


def published(house: House, lane: Lane) -> int:
    """Rows so far, by the metadata store; those that a rewind has read twice count once."""
    [(rows,)] = house.sql(_PUBLISHED, lane.datasource)
    return int(rows)


def publish_times(house: House, lane: Lane) -> list[datetime]:
    """When something was published, in order."""
    return [at for (at,) in house.sql(_TIMES, lane.datasource)]
