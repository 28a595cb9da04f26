"""What Kafka says of the records beside their payloads; only the input format ``kafka`` looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Envelope:
    """Columnar: index ``i`` of every column is the payload ``i``. Columns may be read lazily, once each."""

    topic: str
    keys: Sequence[bytes | None]
    timestamps_ms: Sequence[int | None]
    headers: Sequence[Headers]

    def select(self, indexes: Sequence[int]) -> Envelope:
        """Of these records alone, in this order."""
        return Envelope(
            self.topic,
            [self.keys[i] for i in indexes],
            [self.timestamps_ms[i] for i in indexes],
            [self.headers[i] for i in indexes],
        )


def take_records(envelope: Envelope | None, indexes: Sequence[int]) -> Envelope | None:
    """``envelope.take_records``, for one that may be absent."""
    return None if envelope is None else envelope.select(indexes)
