"""What a tuningConfig says of records that can't be read, or only in part: log them, and when there are too many, fail.

Counted for the task, over its indexers and their restarts: the control plane knows the sum and says it when an indexer
starts, and with each publish that adds to it. What other indexers find is known here that late. A batch that brings too
many is not published: nothing of it is stored or acknowledged.
"""

from __future__ import annotations

from itertools import islice

from structlog.typing import FilteringBoundLogger

from ingestion.specs.counters import Counters
from ingestion.specs.limits import MAX_UNREAD
from ingestion.specs.messages.protocol import ParseExceptionTotals, UnreadRecord
from ingestion.specs.tasks.ingestion_spec import IngestionSpec, TuningConfig
from ingestion.task.errors import TooManyParseExceptions
from ingestion.task.ledger import STORED, Ledger

_LONGEST = 300  # characters of a record, and of an error


class ParseExceptions:
    """The task's count, as an indexer knows it."""

    def __init__(self, tuning: TuningConfig, log: FilteringBoundLogger) -> None:
        self._max_parse_exceptions = tuning.parse_exceptions_limit
        self._max_saved = tuning.saved_parse_exceptions_limit
        self._logs = tuning.logParseExceptions
        self._log = log
        self._reported = ParseExceptionTotals()
        self._unreported = 0  # that no publish has told yet
        self._unpublished = Counters()  # the records among which these are
        self._unread: list[UnreadRecord] = []

    def set_totals(self, totals: ParseExceptionTotals | None) -> None:
        """What the control plane says; None: nothing new."""
        self._reported = totals or self._reported

    def add(self, ledger: Ledger) -> None:
        """These are told with a later publish."""
        self._unreported += len(ledger.parse_exceptions)
        if self._max_parse_exceptions is not None:
            self._unpublished += ledger.counters(0)
            self._unread = [*self._unread, *_unread_records(ledger)][: self.room_to_save]

    def reset(self) -> None:
        """What was gathered is published, or given up."""
        self._unreported, self._unpublished, self._unread = 0, Counters(), []

    @property
    def room_to_save(self) -> int:
        """How many more records with a faulty field the report has room for."""
        return max(0, self._max_saved - self._reported.saved)

    def check(self, ledger: Ledger) -> None:
        """Log a decoded batch's, if asked to. Raises ``TooManyParseExceptions``."""
        errors = ledger.parse_exceptions if self._logs or self._max_parse_exceptions is not None else {}
        if self._logs:
            for index, error in errors.items():
                place = {"partition": int(ledger.batch.partitions[index]), "offset": int(ledger.batch.offsets[index])}
                self._log.warning("parse exception", **place, error=error)
        total = self._reported.seen + self._unreported + len(errors)
        if self._max_parse_exceptions is not None and total > self._max_parse_exceptions:
            first = next(iter(errors.items()), None)
            unread = [*self._unread, *_unread_records(ledger)][: self.room_to_save]
            message = _message(self._max_parse_exceptions, total, ledger, first)
            raise TooManyParseExceptions(message, self._unpublished + ledger.counters(0), unread)


def without_parse_limits(spec: IngestionSpec) -> IngestionSpec:
    """For what reads records that were there before: it may meet any number of bad ones, and quarantines them all.

    That they are bad was counted when they were first read, or they are few: a limit would leave them where they are,
    to be read again without end.
    """
    tuning = spec.tuningConfig.model_copy(update={"maxParseExceptions": None, "reportParseExceptions": False})
    return spec.model_copy(update={"tuningConfig": tuning})


def _unread_records(ledger: Ledger) -> list[UnreadRecord]:
    """The first of those that could not be read, or only in part."""
    batch = ledger.batch
    return [
        UnreadRecord(
            place=_place(ledger, index),
            start=(batch.payloads[index] or b"")[:_LONGEST].decode(errors="replace"),
            error=error[:_LONGEST],
            stored=ledger.outcome[index] == STORED,
        )
        for index, error in islice(sorted(ledger.parse_exceptions.items()), MAX_UNREAD)
    ]


def _place(ledger: Ledger, index: int) -> str:
    return f"partition {ledger.batch.partitions[index]}, offset {ledger.batch.offsets[index]}"


def _message(most: int, total: int, ledger: Ledger, first: tuple[int, str] | None) -> str:
    message = f"There are {total} parse exceptions, more than tuningConfig.maxParseExceptions ({most}) allows."
    if first is None:
        return message
    index, error = first
    return f"{message} The first of the last batch, at {_place(ledger, index)}: {error[:300]}"
