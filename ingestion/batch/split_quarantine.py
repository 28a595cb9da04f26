"""Unreadable records of files, for the quarantine, with a limit for each split and each task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ingestion.batch.lines import Line
from ingestion.specs.messages.batch_protocol import FileRecord

MAX_BYTES = 16 * 1024 * 1024  # of payloads of a task: they are published in one message
_READ_BYTES = 64 * 1024 * 1024  # that the driver holds of all splits together, about
_MIN_BYTES = 16 * 1024  # of a split
_LONGEST_ERROR, _LONGEST_PLACE = 2_000, 2_000


@dataclass(frozen=True)
class QuarantineLimits:
    """How much of it is kept."""

    records: int
    size_bytes: int

    @classmethod
    def of_split(cls, records: int, splits: int) -> QuarantineLimits:
        return cls(records, min(MAX_BYTES, max(_MIN_BYTES, _READ_BYTES // max(1, splits))))


@dataclass
class SplitQuarantine:
    """The first of a split that have room. A payload that has not enough of it is cut, and its error says so."""

    records: list[FileRecord] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, line: Line, error: str, room: QuarantineLimits, *, crashed: bool, header: bytes = b"") -> None:
        left = room.size_bytes - self.size_bytes
        if len(self.records) >= room.records or left <= 0:
            return
        payload = line.payload[:left]
        header = header if len(payload) + len(header) <= left else b""
        cut = len(payload) < len(line.payload)
        if cut:
            what_is_cut = f" (Only the first {left:,} of its {len(line.payload):,} bytes are stored.)"
            error = error[: _LONGEST_ERROR - len(what_is_cut)] + what_is_cut
        self.size_bytes += len(payload) + len(header)
        self.records.append(
            FileRecord.model_construct(
                place=line.place[-_LONGEST_PLACE:],
                position=line.position,
                reason="decoder_crash" if crashed else "unparseable",
                error=error[:_LONGEST_ERROR],
                payload=payload,
                cut=cut,
                header=header,
            )
        )


def merge_quarantines(splits: Iterable[SplitQuarantine], most: int) -> list[FileRecord]:
    """The first of these, in their order, as many as one message may carry."""
    merged: list[FileRecord] = []
    size = 0
    for record in (r for split in splits for r in split.records):
        size += len(record.payload) + len(record.header)
        if len(merged) >= most or size > MAX_BYTES:
            break
        merged.append(record)
    return merged
