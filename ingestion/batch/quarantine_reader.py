"""Records of files that are in quarantine, read again: to rows, and to what became of each."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from ingestion.batch.errors import InputRefused
from ingestion.batch.inputs import Inputs
from ingestion.batch.lines import Lines, single_line_format
from ingestion.batch.reading import Chunk, Reader, SplitReport
from ingestion.batch.split_quarantine import QuarantineLimits
from ingestion.batch.writing import BinOutput
from ingestion.rows import row_indexes
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.specs.counters import Counters
from ingestion.specs.formats.file_format import LineFormat
from ingestion.specs.messages.batch_protocol import BatchAssignment
from ingestion.specs.messages.replays import MAX_RECORDS, KeptPublishRequest, KeptRecord, StillBad
from ingestion.specs.tasks.batch import BatchIOConfig

_LIMITS = QuarantineLimits(MAX_RECORDS, sys.maxsize)
_LONGEST_ERROR = 2_000
_FILE = "its file"
_NO_HEADER = "The header line of its file is not stored. Name the columns in inputFormat.columns."


class QuarantineReader:
    """All are suspect: they are decoded in a child process, since some are here because a decoder died of them."""

    def __init__(self, assignment: BatchAssignment) -> None:
        self._epoch = assignment.epoch
        self._written = assignment.spec.ioConfig
        inputs, storage = Inputs(assignment.reachable), open_deep_storage(assignment.deep_storage)
        self._reader = Reader(assignment.spec, inputs, storage, _LIMITS, careful=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()

    def read(self, records: Sequence[KeptRecord]) -> RereadRecords:
        """Some that are published together."""
        return RereadRecords(self._reader, self._written, records, self._epoch)


class RereadRecords:
    """What becomes of some records; ``outcome`` knows it when all ``chunks`` were taken."""

    def __init__(self, reader: Reader, written: BatchIOConfig, records: Sequence[KeptRecord], epoch: int) -> None:
        self._reader = reader
        self._written = written
        self._records = records
        self._epoch = epoch
        self._report = SplitReport(0)
        self._stored: list[int] = []
        self._still_bad: list[StillBad] = []

    def chunks(self) -> Iterator[Chunk]:
        """Their rows. Records of files with different headers are read apart."""
        by_header: dict[bytes, list[KeptRecord]] = {}
        for record in self._records:
            by_header.setdefault(record.file_header, []).append(record)
        for header, some in by_header.items():
            try:
                written = self._format(header)
            except InputRefused as refused:
                self._still_bad += [_still_bad(record.number, "unparseable", str(refused)) for record in some]
                continue
            lines = Lines("record", [r.number for r in some], [r.payload or b"" for r in some])
            for part, rows in self._reader.rows(lines, written, self._report):
                self._stored += [part.positions[index] for index in row_indexes(rows).tolist()]
                yield from self._reader.split_by_interval(rows)

    def _format(self, header: bytes) -> LineFormat:
        if self._written.has_header and not header:
            raise InputRefused(_NO_HEADER)
        return single_line_format(self._written.line_format, _FILE, header)

    def refused(self, reason: str) -> KeptPublishRequest:
        """None of them is stored: a publish with one was refused for what it says."""
        polled = len(self._records)
        return KeptPublishRequest(
            publish_id=uuid.uuid4(),
            epoch=self._epoch,
            segments=[],
            counters=Counters(polled=polled, unparseable=polled, quarantined=polled),
            stored=[],
            thrown_away=[],
            unparseable=[_still_bad(r.number, "refused", f"its publish was refused: {reason}") for r in self._records],
        )

    def outcome(self, done: BinOutput) -> KeptPublishRequest:
        """``output``: what the chunks were written to."""
        bad = [*self._still_bad, *(_still_bad(r.position, r.reason, r.error) for r in self._report.quarantine.records)]
        ended = {*self._stored, *(record.number for record in bad)}
        rows = sum(file.rows for file in done.files)
        return KeptPublishRequest(
            publish_id=uuid.uuid4(),
            epoch=self._epoch,
            segments=done.files,
            counters=Counters(
                polled=len(self._records),
                published=rows,
                rolled_up=len(self._stored) - rows,
                thrown_away=len(self._records) - len(ended),
                filtered=self._report.filtered,
                outside_window=self._report.outside,
                unparseable=len(bad),
                quarantined=len(bad),
                processed_with_error=self._report.with_error,
                input_bytes=sum(len(record.payload or b"") for record in self._records),
            ),
            stored=self._stored,
            thrown_away=[r.number for r in self._records if r.number not in ended],
            unparseable=bad,
        )


def _still_bad(number: int, reason: str, error: str) -> StillBad:
    return StillBad.model_validate({"number": number, "reason": reason, "error": error[:_LONGEST_ERROR]})
