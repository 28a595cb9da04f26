"""Looks for records in a topic: ``python -m ingestion.task.lookup``.

One order on standard input, one answer on standard output; then it ends. It has nothing that is worth taking but the
properties of the one order.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from ingestion.sources.base import SourceProblem
from ingestion.sources.lookup import look_up
from ingestion.sources.peek import TopicLocation
from ingestion.sources.topic import checked_properties
from ingestion.specs.messages.lookup import MAX_FOUND, SHOWN_BYTES, FoundRecord, LookupAnswer, LookupOrder
from ingestion.specs.messages.sampling import Bytes

GRACE_S = 30


def answer_to(order: LookupOrder) -> LookupAnswer:
    """What was found, or why nothing could be looked for."""
    try:
        properties = checked_properties(order.consumer_properties, order.address_policy)
        lookup = look_up(TopicLocation(properties, order.topic, order.address_policy, order.isolation), order)
    except SourceProblem as error:
        return LookupAnswer(failure=str(error))
    messages = sorted(lookup.found[:MAX_FOUND], key=lambda m: (m.timestamp()[1], m.partition(), m.offset()))
    return LookupAnswer.model_construct(
        topic_id=lookup.topic_id,
        found=[_found_record(message) for message in messages],
        looked=lookup.looked,
        scanned=lookup.scanned,
        stopped_by=lookup.stopped_by,
    )


def _found_record(message: Any) -> FoundRecord:
    kind, at = message.timestamp()
    return FoundRecord.model_construct(
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=at if kind else None,
        key=_excerpt(message.key()),
        payload=_excerpt(message.value()),
        headers=[(name, None if value is None else value[:SHOWN_BYTES]) for name, value in message.headers() or ()],
    )


def _excerpt(data: bytes | None) -> Bytes | None:
    return None if data is None else Bytes.model_construct(start=data[:SHOWN_BYTES], size=len(data))


def main() -> int:
    order = LookupOrder.model_validate_json(sys.stdin.read())
    signal.setitimer(signal.ITIMER_REAL, order.timeout_ms / 1000 + GRACE_S)  # whoever asked may be gone
    sys.stdout.write(answer_to(order).model_dump_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
