"""The messages between who is shown a topic's newest records and the process that reads them: one each way, in JSON."""

from __future__ import annotations

from pydantic import Field

from ingestion.specs.base import Message
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.messages.sampling import Bytes

MAX_ROWS = 50
MAX_HEADERS = 50  # of a record
SHOWN_BYTES = 4 * 1024  # of a key, a payload or a header
MAX_INPUT_BYTES = 8 * 1024 * 1024


class NewestOrder(Message):
    """What to read."""

    topic: str
    rows: int = Field(ge=1, le=MAX_ROWS)
    timeout_ms: int
    earliest: bool = False
    consumer_properties: dict[str, str]  # under librdkafka's names, secrets included
    address_policy: AddressPolicy


class NewestRecord(Message):
    """One record as it is in Kafka."""

    partition: int
    offset: int
    timestamp_ms: int | None
    key: Bytes | None
    payload: Bytes | None
    headers: list[tuple[str, Bytes | None]]

    @property
    def size(self) -> int:
        """Of key, payload and headers, whole."""
        values = [self.key, self.payload, *(value for _, value in self.headers)]
        return sum(data.size for data in values if data is not None) + sum(len(name) for name, _ in self.headers)


class NewestAnswer(Message):
    """The records by time, newest first; or why there are none."""

    records: list[NewestRecord] = Field(default_factory=list)
    stopped_by: str = ""  # ``time`` or ``bytes`` if there would be more
    failure: str = ""
    missing: bool = False  # the failure is that there is no such topic
