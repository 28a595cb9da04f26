"""What is kept of poison records that one publish could not carry whole."""

from __future__ import annotations

from ingestion.specs.messages.protocol import QuarantinedRecord

ERROR_LENGTH = 2000  # the protocol's limit
# Keys and payloads of one batch. The control plane takes messages of 64 MiB, and bytes travel as base64; what gathers
# until a handoff has this much beside what gathered before.
MAX_BYTES = 16 * 1024 * 1024


def fit_records(records: list[QuarantinedRecord], most_bytes: int = MAX_BYTES) -> list[QuarantinedRecord]:
    """All of them; when they are larger than this together, the longest are cut to the same length, and say so."""
    sizes = [_record_size(r) for r in records]
    if sum(sizes) <= most_bytes:
        return records
    share = _length_limit(sizes, most_bytes)
    return [_cut_record(r, share) if size > share else r for r, size in zip(records, sizes, strict=True)]


def _record_size(record: QuarantinedRecord) -> int:
    return len(record.key or b"") + len(record.payload or b"")


def _length_limit(sizes: list[int], most_bytes: int) -> int:
    """The length to which the longest have to be cut."""
    left = most_bytes
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return left


def _cut_record(record: QuarantinedRecord, share: int) -> QuarantinedRecord:
    key = None if record.key is None else record.key[: share // 2]
    payload = None if record.payload is None else record.payload[: share - len(key or b"")]
    what_is_cut = f" (Only the first {share:,} of its {_record_size(record):,} bytes are stored.)"
    error = record.error[: ERROR_LENGTH - len(what_is_cut)] + what_is_cut
    return record.model_copy(update={"key": key, "payload": payload, "error": error})
