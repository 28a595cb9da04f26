"""One order, one answer, and the limits of the process that gives it.

It reads what anybody may have written into a topic: it has bounded memory, ends itself when it takes too
long, and has nothing that is worth taking but the properties of the one order.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TextIO

from ingestion.decode.errors import DecodeError, RegistryUnreachable
from ingestion.errors import IngestionError
from ingestion.sources.base import SourceProblem
from ingestion.sources.peek import NoSuchTopic
from ingestion.specs.messages.sampling import (
    MAX_ANSWER_BYTES,
    Place,
    RolledUpRow,
    SampleAnswer,
    SampledRecord,
    SampledRow,
    SampleFailure,
    SampleOrder,
    Wanted,
)
from ingestion.task.sampler.decoding import SampleOutcomes, Unusable, decode_records, read_fields
from ingestion.task.sampler.format_guess import format_guesses
from ingestion.task.sampler.records import Records, load_records
from ingestion.task.sampler.time_guess import time_guesses

MAX_MEMORY_BYTES = 2 * 1024 * 1024 * 1024
GRACE_S = 30
LARGE_BYTES = MAX_ANSWER_BYTES // 8


def answer_to(order: SampleOrder) -> SampleAnswer:
    """The sample, or why there is none."""
    try:
        records = load_records(order)
        return _ANSWERS[order.wanted](order, records)
    except Unusable as error:
        return _failure(error.place, error, error.within)
    except NoSuchTopic as error:
        return _failure("topic", error)
    except SourceProblem as error:
        return _failure("consumerProperties", error)
    except RegistryUnreachable as error:
        return _failure("inputFormat", error)
    except DecodeError as error:
        return _failure("decoder", error)


def _failure(place: Place, error: IngestionError, within: Sequence[str | int] = ()) -> SampleAnswer:
    failure = SampleFailure(place=place, message=str(error), within=[*within], permanent=error.permanent)
    return SampleAnswer(failure=failure)


def _kept_records(order: SampleOrder, records: Records) -> SampleAnswer:
    """A record that is larger than all may be is left out: the others tell more."""
    kept, left = [], order.most_bytes
    for record in records.to_keep():
        size = len(record.payload or b"") + len(record.key or b"")
        if size <= left:
            kept.append(record)
            left -= size
    stopped_by = records.stopped_by if len(kept) == len(records) else "bytes"
    return SampleAnswer.model_construct(kept=kept, stopped_by=stopped_by, arrived=records.arrived)


def _formats(order: SampleOrder, records: Records) -> SampleAnswer:
    return SampleAnswer.model_construct(formats=format_guesses(records.payloads))


def _times(order: SampleOrder, records: Records) -> SampleAnswer:
    some = records.fitting(order.io_config.inputFormat)
    return SampleAnswer.model_construct(times=time_guesses(*read_fields(order, some)))


def _rows(order: SampleOrder, records: Records) -> SampleAnswer:
    """The part of the sample that an answer may hold."""
    if order.formatted:
        records = records.fitting(order.io_config.inputFormat)
    outcomes = decode_records(order, records)
    budget = _Budget(MAX_ANSWER_BYTES)
    shown = list(
        budget.fitting(_trim_record(_sampled_record(records, outcomes, index)) for index in range(len(records)))
    )
    rollup = None if outcomes.rollup is None else list(budget.fitting(_shown_rollup(outcomes.rollup, len(shown))))
    return SampleAnswer.model_construct(
        records=shown,
        stopped_by="answer" if budget.is_spent else records.stopped_by,
        fields=outcomes.field_columns,
        columns=outcomes.columns,
        absent=outcomes.absent,
        rollup=rollup,
        stored_bytes=outcomes.stored_bytes,
    )


def _sampled_record(records: Records, outcomes: SampleOutcomes, index: int) -> SampledRecord:
    first, *others = outcomes.held.get(index, [index])
    return SampledRecord.model_construct(
        **records.shown(index),
        outcome=outcomes.outcomes.get(index, "raw"),
        error=outcomes.errors.get(index, ""),
        fields=outcomes.fields.get(first),
        row=outcomes.rows.get(first),
        further=[
            SampledRow.model_construct(fields=outcomes.fields.get(row), row=outcomes.rows.get(row)) for row in others
        ],
        held=1 + len(others),
    )


def _trim_record(record: SampledRecord) -> SampledRecord:
    """A record that takes much of the answer for itself is shown without what was read of it."""
    small = record.payload is None or (record.payload.size < LARGE_BYTES and not record.further)
    if small or len(record.model_dump_json()) < LARGE_BYTES:
        return record
    error = "; ".join(filter(None, [record.error, "it is too large to be shown"]))
    return record.model_copy(update={"fields": None, "row": None, "further": [], "error": error})


def _shown_rollup(rollup: list[RolledUpRow], count: int) -> Iterator[RolledUpRow]:
    return (row for row in rollup if row.records[-1] < count)


_ANSWERS: dict[Wanted, Callable[[SampleOrder, Records], SampleAnswer]] = {
    "rows": _rows,
    "records": _kept_records,
    "formats": _formats,
    "times": _times,
}


class _Budget:
    """Keeps what comes until all of it would be too much."""

    def __init__(self, size_bytes: int) -> None:
        self._remaining_bytes = size_bytes
        self.is_spent = False

    def fitting(self, parts: Iterator[Any]) -> Iterator[Any]:
        for part in parts:
            self._remaining_bytes -= len(part.model_dump_json())
            if self._remaining_bytes < 0:
                self.is_spent = True
                return
            yield part


def answer_line(orders: TextIO, answers: TextIO) -> None:
    """Take one order, a line, and give its answer, a line."""
    order = SampleOrder.model_validate_json(orders.readline())
    # Whoever asked may be gone: a record that hangs the decoder must not stay for ever.
    signal.setitimer(signal.ITIMER_REAL, order.timeout_ms / 1000 + GRACE_S)
    answers.write(answer_to(order).model_dump_json() + "\n")
    answers.flush()


def limit_memory() -> None:
    """Limits on this process's memory, which those that it forks inherit."""
    with suppress(ValueError, OSError):  # not every system has these limits
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
