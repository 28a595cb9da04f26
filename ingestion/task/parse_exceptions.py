"""What a tuningConfig says of records that can't be read, or only in part: log them, and when there are too many, fail.

Counted for the task, over its indexers and their restarts: the control plane knows the sum and says it when an indexer
starts, and with each publish that adds to it. What other indexers find is known here that late. A batch that brings too
many is not published: nothing of it is stored or acknowledged.
"""

from __future__ import annotations

from structlog.typing import FilteringBoundLogger

from ingestion.specs import IngestionSpec, TuningConfig
from ingestion.specs.protocol import ParseExceptionTotals
from ingestion.task.batches import Ledger
from ingestion.task.errors import TooManyParseExceptions


class ParseExceptions:
    """The task's count, as an indexer knows it."""

    def __init__(self, tuning: TuningConfig, log: FilteringBoundLogger) -> None:
        self._most = tuning.most_parse_exceptions
        self._most_saved = tuning.most_saved_parse_exceptions
        self._logs = tuning.logParseExceptions
        self._log = log
        self._known = ParseExceptionTotals()
        self._gathered = 0  # that no publish has told yet

    def know(self, totals: ParseExceptionTotals | None) -> None:
        """What the control plane says; None: nothing new."""
        self._known = totals or self._known

    def gather(self, ledger: Ledger) -> None:
        """These are told with a later publish."""
        self._gathered += len(ledger.parse_exceptions)

    def begin_anew(self) -> None:
        """What was gathered is published, or given up."""
        self._gathered = 0

    @property
    def to_save(self) -> int:
        """How many more records with a faulty field the report has room for."""
        return max(0, self._most_saved - self._known.saved)

    def look_at(self, ledger: Ledger) -> None:
        """Log a decoded batch's, if asked to. Raises ``TooManyParseExceptions``."""
        errors = ledger.parse_exceptions if self._logs or self._most is not None else {}
        if self._logs:
            for index, error in errors.items():
                place = {"partition": int(ledger.batch.partitions[index]), "offset": int(ledger.batch.offsets[index])}
                self._log.warning("parse exception", **place, error=error)
        seen = self._known.seen + self._gathered + len(errors)
        if self._most is not None and seen > self._most:
            first = next(iter(errors.items()), None)
            raise TooManyParseExceptions(_message(self._most, seen, ledger, first))


def without_parse_limits(spec: IngestionSpec) -> IngestionSpec:
    """For what reads records that were there before: it may meet any number of bad ones, and quarantines them all.

    That they are bad was counted when they were first read, or they are few: a limit would leave them where they are,
    to be read again without end.
    """
    tuning = spec.tuningConfig.model_copy(update={"maxParseExceptions": None, "reportParseExceptions": False})
    return spec.model_copy(update={"tuningConfig": tuning})


def _message(most: int, seen: int, ledger: Ledger, first: tuple[int, str] | None) -> str:
    message = f"There are {seen} parse exceptions, more than tuningConfig.maxParseExceptions ({most}) allows."
    if first is None:
        return message
    index, error = first
    place = f"partition {ledger.batch.partitions[index]}, offset {ledger.batch.offsets[index]}"
    return f"{message} The first of the last batch, at {place}: {error[:300]}"
