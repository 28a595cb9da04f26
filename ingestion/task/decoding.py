"""A batch's records decoded, each with its outcome; what may have killed an earlier process in a child process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from ingestion.decode.decoded import Decoded
from ingestion.decode.envelope import Envelope
from ingestion.decode.formats.access import Access
from ingestion.decode.isolated_decoder import IsolatedDecoder
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import UNBOUNDED, MessageWindow
from ingestion.failpoints import Failpoints
from ingestion.rows import join_rows, row_indexes
from ingestion.sources.base import Ints
from ingestion.specs.messages.protocol import Assignment
from ingestion.task.breaker import Breaker
from ingestion.task.ledger import FILTERED, OUTSIDE, PENDING, STORED, TOMBSTONE, Ledger
from ingestion.task.schema_registry import ConfluentRegistry

LATE_DELIVERY = 3  # from this delivery on a record is decoded in a child process
CHILD = "ingestion.task.decoder_child"
HANG_S = 60.0  # a decoder that can't be stopped: the process ends, and late deliveries are decoded in a child


_turns: threading.BoundedSemaphore | None = None


def take_turns(children: int) -> None:
    """From now on no more than so many indexers of this process have a decoding child at once, each while it needs it.

    Without it the child of each stays for its next records.
    """
    global _turns
    _turns = threading.BoundedSemaphore(children)


class _PoliteDecoder(IsolatedDecoder):
    def decode(
        self,
        payloads: Sequence[bytes | None],
        window: MessageWindow = UNBOUNDED,
        envelope: Envelope | None = None,
    ) -> Decoded:
        if _turns is None:
            return super().decode(payloads, window, envelope)
        with _turns:
            try:
                return super().decode(payloads, window, envelope)
            finally:
                self.close()


class Decoders:
    """One in this process; one in a child for records that may be what made an earlier process die."""

    def __init__(self, assignment: Assignment) -> None:
        spec = assignment.spec
        memory = spec.tuningConfig.maxBytesInMemory * 4
        marker = Failpoints(assignment.failpoints).crash_marker
        written = spec.ioConfig.inputFormat
        access = Access(ConfluentRegistry, assignment.schema_folder, assignment.address_policy)
        self.wants_envelope = written.type == "kafka"
        self.in_process = JsonDecoder(spec.dataSchema, memory, marker, written, access, hang_s=HANG_S)
        self.isolated = _PoliteDecoder(
            spec.dataSchema, memory, marker, input_format=written, child_module=CHILD, access=access
        )

    def close(self) -> None:
        self.in_process.close()
        self.isolated.close()


def message_window(assignment: Assignment, now: datetime) -> MessageWindow:
    """Which record times are taken: by the task's creation and taskDuration, of a share group by ``now``."""
    io_config = assignment.spec.ioConfig
    if io_config.traits.ends_by_time:
        return MessageWindow.of(io_config, assignment.created_at, assignment.reads_until or now)
    return MessageWindow.of(io_config, now, now)


class Decoding:
    """Decodes for one epoch."""

    def __init__(self, assignment: Assignment, decoders: Decoders, breaker: Breaker) -> None:
        self._assignment = assignment
        self._decoders = decoders
        self._breaker = breaker

    def decode(self, ledger: Ledger, give_up: float) -> pa.Table | None:
        """Rows of all records without an outcome; the others' outcomes are in the ledger.

        Raises ``Lapsed``, and ``TooWide``, which leaves the ledger as it is.
        """
        window = message_window(self._assignment, datetime.now(UTC))
        pending, left_out = self._by_headers(ledger)
        is_late = ledger.batch.delivery_counts[pending] >= LATE_DELIVERY
        is_late |= ledger.batch.suspect
        decoded_parts = [
            (chosen, self._decode_with(decoder, ledger, chosen, window, give_up))
            for decoder, chosen in (
                (self._decoders.in_process, pending[~is_late]),
                (self._decoders.isolated, pending[is_late]),
            )
            if len(chosen)
        ]
        ledger.mark(left_out, FILTERED)
        tables = [_record_outcomes(ledger, chosen, decoded) for chosen, decoded in decoded_parts]
        return join_rows(tables) if tables else None

    def _by_headers(self, ledger: Ledger) -> tuple[Ints, Ints]:
        """Of the records without an outcome those that are to be decoded, and those that their headers leave out."""
        pending, headers = ledger.indexes(PENDING), ledger.batch.headers
        header_filter = self._assignment.spec.ioConfig.header_filter
        if header_filter is None or not len(headers):
            return pending, pending[:0]
        is_taken = np.fromiter(
            (header_filter.matches(headers[i]) for i in pending.tolist()), dtype=bool, count=len(pending)
        )
        return pending[is_taken], pending[~is_taken]

    def _decode_with(
        self,
        decoder: JsonDecoder | IsolatedDecoder,
        ledger: Ledger,
        chosen: Ints,
        window: MessageWindow,
        give_up: float,
    ) -> Decoded:
        payloads, envelope = ledger.batch.payloads, self._envelope(ledger)
        if len(chosen) < len(payloads):
            payloads = [payloads[i] for i in chosen.tolist()]
            envelope = None if envelope is None else envelope.select(chosen.tolist())
        # Insisted on, since a format may have to ask a schema registry.
        decoded = self._breaker.retry_until_answered(lambda: decoder.decode(payloads, window, envelope), give_up)
        return decoded.with_tombstones(self._assignment.spec.ioConfig.tombstones)

    def _envelope(self, ledger: Ledger) -> Envelope | None:
        """Keys, times and headers, for the one format that looks at them."""
        if not self._decoders.wants_envelope:
            return None
        batch = ledger.batch
        headers = batch.headers or [()] * len(batch)
        return Envelope(self._assignment.spec.ioConfig.topic, batch.keys, batch.timestamps_ms, headers)


def _record_outcomes(ledger: Ledger, chosen: Ints, decoded: Decoded) -> pa.Table:
    """The outcomes go into the ledger, and the rows get their indexes there."""
    ledger.mark(chosen, STORED)
    ledger.mark(chosen[np.array(decoded.filtered, dtype=np.int64)], FILTERED)
    ledger.mark(chosen[np.array(decoded.outside_window, dtype=np.int64)], OUTSIDE)
    ledger.mark(chosen[np.array(decoded.tombstones, dtype=np.int64)], TOMBSTONE)
    ledger.mark_unparseable({int(chosen[i]): e for i, e in decoded.unparseable.items()}, "unparseable")
    ledger.mark_unparseable({int(chosen[i]): e for i, e in decoded.crashed.items()}, "decoder_crash")
    ledger.faults.update({int(chosen[i]): e for i, e in decoded.processed_with_error.items()})
    if decoded.rows.num_rows > int((ledger.outcome[chosen] == STORED).sum()):
        ledger.note_rows(chosen[row_indexes(decoded.rows)])
    if len(chosen) == len(ledger.batch):
        return decoded.rows
    return decoded.rows.set_column(0, "__row", pa.array(chosen[row_indexes(decoded.rows)], pa.int32()))
