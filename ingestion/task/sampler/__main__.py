"""One order on standard input, one answer on standard output.

The process reads what anybody may have written into a topic: it has bounded memory, ends itself when it takes too
long, and has nothing that is worth taking but the properties of the one order.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TextIO

from ingestion.decode import DecodeError, RegistryUnreachable
from ingestion.errors import IngestionError
from ingestion.sources import SourceProblem
from ingestion.sources.peek import NoSuchTopic
from ingestion.specs.sampling import (
    MOST_ANSWER_BYTES,
    Place,
    RolledUpRow,
    SampleAnswer,
    SampledRecord,
    SampleFailure,
    SampleOrder,
)
from ingestion.task.sampler.decoding import Outcomes, Unusable, outcomes_of
from ingestion.task.sampler.records import Records, records_of
from ingestion.without_pandas import keep_pandas_out

MOST_MEMORY_BYTES = 2 * 1024 * 1024 * 1024
GRACE_S = 30
LARGE_BYTES = MOST_ANSWER_BYTES // 8


def answer_to(order: SampleOrder) -> SampleAnswer:
    """The sample, or why there is none."""
    try:
        records = records_of(order)
        return _told(records, outcomes_of(order, records))
    except Unusable as error:
        return _failure(error.place, error)
    except NoSuchTopic as error:
        return _failure("topic", error)
    except SourceProblem as error:
        return _failure("consumerProperties", error)
    except RegistryUnreachable as error:
        return _failure("inputFormat", error)
    except DecodeError as error:
        return _failure("decoder", error)


def _failure(place: Place, error: IngestionError) -> SampleAnswer:
    return SampleAnswer(failure=SampleFailure(place=place, message=str(error), permanent=error.permanent))


def _told(records: Records, outcomes: Outcomes) -> SampleAnswer:
    """The part of the sample that an answer may hold."""
    budget = _Budget(MOST_ANSWER_BYTES)
    shown = list(budget.kept(_bearable(_sampled(records, outcomes, index)) for index in range(len(records))))
    rollup = None if outcomes.rollup is None else list(budget.kept(_still_shown(outcomes.rollup, len(shown))))
    return SampleAnswer.model_construct(
        records=shown,
        stopped_by="answer" if budget.spent else records.stopped_by,
        fields=outcomes.field_columns,
        columns=outcomes.columns,
        rollup=rollup,
    )


def _sampled(records: Records, outcomes: Outcomes, index: int) -> SampledRecord:
    return SampledRecord.model_construct(
        **records.shown(index),
        outcome=outcomes.outcomes.get(index, "raw"),
        error=outcomes.errors.get(index, ""),
        fields=outcomes.fields.get(index),
        row=outcomes.rows.get(index),
    )


def _bearable(record: SampledRecord) -> SampledRecord:
    """A record that takes much of the answer for itself is shown without what was read of it."""
    if record.payload is None or record.payload.size < LARGE_BYTES or len(record.model_dump_json()) < LARGE_BYTES:
        return record
    error = "; ".join(filter(None, [record.error, "it is too large to be shown"]))
    return record.model_copy(update={"fields": None, "row": None, "error": error})


def _still_shown(rollup: list[RolledUpRow], count: int) -> Iterator[RolledUpRow]:
    return (row for row in rollup if row.records[-1] < count)


class _Budget:
    """Keeps what comes until all of it would be too much."""

    def __init__(self, size_bytes: int) -> None:
        self._left = size_bytes
        self.spent = False

    def kept(self, parts: Iterator[Any]) -> Iterator[Any]:
        for part in parts:
            self._left -= len(part.model_dump_json())
            if self._left < 0:
                self.spent = True
                return
            yield part


def main(given: TextIO, told: TextIO) -> int:
    order = SampleOrder.model_validate_json(given.read())
    # Whoever asked may be gone: a record that hangs the decoder must not stay for ever.
    signal.setitimer(signal.ITIMER_REAL, order.timeout_ms / 1000 + GRACE_S)
    told.write(answer_to(order).model_dump_json())
    told.flush()
    return 0


def _bounded() -> None:
    with suppress(ValueError, OSError):  # not every system has these limits
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _private_output() -> TextIO:
    """Standard output for the answer alone: what a library prints goes to standard error."""
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return told


if __name__ == "__main__":
    keep_pandas_out()
    _bounded()
    sys.exit(main(sys.stdin, _private_output()))
