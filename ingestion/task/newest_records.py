"""A topic's newest records: one order on standard input, one answer on standard output.

No group is joined and nothing is committed. The process ends itself when it takes too long.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any, TextIO

from ingestion.sources.base import SourceProblem
from ingestion.sources.peek import Limits, NoSuchTopic, Peek, TopicLocation, peek
from ingestion.sources.topic import checked_properties
from ingestion.specs.messages.newest_records import (
    MAX_HEADERS,
    MAX_INPUT_BYTES,
    SHOWN_BYTES,
    NewestAnswer,
    NewestOrder,
    NewestRecord,
)
from ingestion.specs.messages.sampling import Bytes

GRACE_S = 10


def answer_to(order: NewestOrder) -> NewestAnswer:
    """The records, or why there are none."""
    try:
        return _to_answer(_peek_topic(order))
    except NoSuchTopic as error:
        return NewestAnswer(failure=str(error), missing=True)
    except SourceProblem as error:
        return NewestAnswer(failure=str(error))


def _peek_topic(order: NewestOrder) -> Peek:
    limits = Limits(order.rows, MAX_INPUT_BYTES, time.monotonic() + order.timeout_ms / 1000)
    properties = checked_properties(order.consumer_properties, order.address_policy)
    place = TopicLocation(properties, order.topic, order.address_policy, "read_committed")
    return peek(place, earliest=order.earliest, limits=limits)


def _to_answer(peeked: Peek) -> NewestAnswer:
    records = [_record(message) for message in reversed(peeked.messages)]
    return NewestAnswer.model_construct(records=records, stopped_by=peeked.stopped_by)


def _record(message: Any) -> NewestRecord:
    kind, timestamp = message.timestamp()
    headers = (message.headers() or [])[:MAX_HEADERS]
    return NewestRecord.model_construct(
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=timestamp if kind else None,
        key=_excerpt(message.key()),
        payload=_excerpt(message.value()),
        headers=[(name, _excerpt(value)) for name, value in headers],
    )


def _excerpt(data: bytes | None) -> Bytes | None:
    return None if data is None else Bytes.model_construct(start=data[:SHOWN_BYTES], size=len(data))


def main(orders: TextIO, answers: TextIO) -> int:
    order = NewestOrder.model_validate_json(orders.read())
    signal.setitimer(signal.ITIMER_REAL, order.timeout_ms / 1000 + GRACE_S)
    answers.write(answer_to(order).model_dump_json())
    answers.flush()
    return 0


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")  # for the answer alone: what a library prints goes elsewhere
    os.dup2(2, 1)
    sys.exit(main(sys.stdin, answers))
