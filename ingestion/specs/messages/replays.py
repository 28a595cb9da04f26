"""The messages between a replay and the control plane, beside those of ``protocol``."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Base64Bytes, Field

from ingestion.specs.base import Message
from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import Header, SegmentFile
from ingestion.specs.messages.storable_text import StorableText

MAX_RECORDS = 500  # that are handed to a replay, or published by one of records of files, at once


class KeptRecord(Message):
    """A quarantined record that a replay holds."""

    number: int  # its id in the quarantine
    partition: int
    offset: int
    timestamp_ms: int | None
    key: Base64Bytes | None
    payload: Base64Bytes | None
    headers: list[Header]
    file_header: Base64Bytes = b""  # of a record of a file: the line of that which names the columns, if one does


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


class StillBad(Message):
    """A record of a file that could not be stored this time either."""

    number: int
    reason: Literal["unparseable", "decoder_crash", "refused"]
    error: StorableText = Field(max_length=2_000)


class KeptPublishRequest(Message):
    """What some records of files have become, each of which the replay holds. Sent again, it is answered as before."""

    publish_id: UUID
    epoch: int
    segments: list[SegmentFile] = Field(max_length=MAX_RECORDS)
    counters: Counters
    # By their numbers; each is in one of the three.
    stored: list[int] = Field(max_length=MAX_RECORDS)
    thrown_away: list[int] = Field(max_length=MAX_RECORDS)
    unparseable: list[StillBad] = Field(max_length=MAX_RECORDS)


class KeptPublishAnswer(Message):
    """It has committed."""

    segment_ids: list[str]
