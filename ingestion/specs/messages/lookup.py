"""The messages between who looks for a record in Kafka and the process that looks: one each way, in JSON."""

from __future__ import annotations

from typing import Literal

from pydantic import Base64Bytes, Field

from ingestion.specs.base import Message
from ingestion.specs.inputs.group_config import Isolation
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.messages.protocol import Header
from ingestion.specs.messages.sampling import Bytes

MAX_FOUND = 50
MAX_SCANNED = 500_000  # records
MAX_BYTES = 128 * 1024 * 1024
SHOWN_BYTES = 16 * 1024  # of a key or a payload


class LookupOrder(Message):
    """Where to look, and for what: the record at a place, or those with a key that were written in a time."""

    topic: str
    consumer_properties: dict[str, str]
    address_policy: AddressPolicy = Field(default_factory=AddressPolicy)
    isolation: Isolation = "read_committed"
    partition: int | None = None  # of a key: this one alone
    offset: int | None = None  # with partition: the record at this place
    key: Base64Bytes | None = None
    # When it was written, as Kafka has it; half-open.
    from_ms: int = 0
    to_ms: int = 0
    most_scanned: int = MAX_SCANNED
    most_bytes: int = MAX_BYTES
    timeout_ms: int = 10_000


class FoundRecord(Message):
    """A record as Kafka holds it, the beginnings of its key and payload."""

    partition: int
    offset: int
    timestamp_ms: int | None
    key: Bytes | None
    payload: Bytes | None
    headers: list[Header]


class LookedAt(Message):
    """The searched part of a partition: offsets from ``start`` to ``upto``, of the wanted ones up to ``end``."""

    partition: int
    start: int
    upto: int
    end: int
    log_start: int  # what is below has been removed

    @property
    def unseen(self) -> int:
        """The number of offsets that were not searched."""
        return max(0, self.end - self.upto)


class LookupAnswer(Message):
    """What was found, or why nothing could be looked for."""

    failure: str = ""
    topic_id: str = ""
    found: list[FoundRecord] = Field(default_factory=list)
    looked: list[LookedAt] = Field(default_factory=list)
    scanned: int = 0  # records
    # What ended the search early; empty when all that was meant was looked at.
    stopped_by: Literal["", "time", "bytes", "records", "found"] = ""
