"""The messages between a replay and the control plane, beside those of ``protocol``."""

from __future__ import annotations

from pydantic import Base64Bytes, Field

from ingestion.specs.base import Message
from ingestion.specs.protocol import Header


class KeptRecord(Message):
    """A quarantined record that a replay holds."""

    number: int  # its id in the quarantine
    partition: int
    offset: int
    timestamp_ms: int | None
    key: Base64Bytes | None
    payload: Base64Bytes | None
    headers: list[Header]


class KeptRecords(Message):
    """Some of what a replay still holds, in the order of their numbers; none: there are no more."""

    records: list[KeptRecord]


class ProducedRecord(Message):
    """Where the broker says that a record now is, once more."""

    number: int
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)


class ProducedRequest(Message):
    """These were delivered. Sent again, it changes nothing."""

    records: list[ProducedRecord]


class ProducedAnswer(Message):
    """How many of them the replay held until then."""

    noted: int
