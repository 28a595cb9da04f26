"""A share group's settings on the broker, as a spec has them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ingestion.specs.base import SpecModel

Isolation = Literal["read_committed", "read_uncommitted"]
DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
DELIVERY_LIMIT = "share.delivery.count.limit"  # a group's setting since Kafka 4.3
START_SETTING, BY_DURATION = "share.auto.offset.reset", "by_duration:"
START_MARGIN_S = 60  # between the setting and the first poll


class GroupConfig(SpecModel):
    """Headgate's own: the share group's settings on the broker, within the broker's limits.

    ``partitionMaxRecordLocks`` needs Kafka 4.3. If it is left out, the broker's value applies. Kafka 4.2 has one limit
    of deliveries for all groups: it takes only the default of ``deliveryCountLimit``. From Kafka 4.4 on, the broker
    writes records that it rejects or gives up to ``deadLetterTopic``. If it is left out, the broker's value applies;
    "" removes it.
    """

    recordLockDurationMs: int = Field(default=30_000, ge=1_000, le=3_600_000)
    deliveryCountLimit: int = Field(default=10, ge=2, le=100)
    partitionMaxRecordLocks: int | None = Field(default=None, ge=100, le=100_000)
    isolationLevel: Isolation = "read_committed"
    deadLetterTopic: str | None = Field(default=None, max_length=249, pattern=r"^(_?[a-zA-Z0-9.-][a-zA-Z0-9._-]*)?$")
    deadLetterCopiesRecord: bool | None = None
