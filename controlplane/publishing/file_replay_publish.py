"""What a replay has made of records of files: their rows become visible, and they leave the quarantine, or neither.

Without offsets, the records' state makes it once (see ``quarantine.replays``). A replay publishes some of its
records at a time, and appends. Locks are taken in the order of a publish: the fence's row; the records'; those of the
fences of whoever had read them; then the intervals' rows.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from controlplane.common.database import cursor
from controlplane.common.errors import InvalidInput
from controlplane.publishing.fence import PublishRefused, lock_fence
from controlplane.publishing.models import Publish
from controlplane.publishing.publication import Publication, check_counters, check_times, store_schemas
from controlplane.publishing.publish import with_retries
from controlplane.publishing.replay_publish import ReplayOutcome
from ingestion.specs.messages.protocol import Refusal
from ingestion.specs.messages.publish_limits import MAX_COLUMNS
from ingestion.specs.messages.replays import KeptPublishAnswer, KeptPublishRequest

_LOCK_HELD = """
    SELECT id FROM quarantine_quarantinedrecord
    WHERE id = ANY(%s) AND source_id IS NULL AND state = 'replaying' AND replay_id = %s ORDER BY id FOR UPDATE
"""


def publish_file_replay(*, task_id: str, request: KeptPublishRequest) -> KeptPublishAnswer:
    """Register some records' rows. Sent again with the same id, it answers as the first time.

    Raises ``PublishRefused`` (fenced, changed) and ``InvalidInput``; nothing was changed then.
    """
    outcome = ReplayOutcome(
        request.stored,
        request.thrown_away,
        {record.number: (record.reason, record.error) for record in request.unparseable},
    )
    _check(request, outcome)

    def attempt() -> KeptPublishAnswer:
        store_schemas(task_id, 0, request.segments)
        return _publish(task_id, request, outcome)

    return with_retries(attempt)


def _check(request: KeptPublishRequest, outcome: ReplayOutcome) -> None:
    counters = request.counters
    numbers = [*outcome.stored, *outcome.thrown_away, *(record.number for record in request.unparseable)]
    if len(set(numbers)) != len(numbers):
        raise InvalidInput("A record is named twice.")
    expected: dict[str, tuple[int, int]] = {
        "polled": (counters.polled, len(numbers)),
        "published": (counters.published, sum(file.rows for file in request.segments)),
        "published + rolled_up - further_rows": (counters.stored, len(outcome.stored)),
        "thrown_away": (counters.thrown_away, len(outcome.thrown_away)),
        "unparseable": (counters.unparseable, len(outcome.still_bad)),
        "quarantined": (counters.quarantined, len(outcome.still_bad)),
    }
    check_counters(expected, "records")
    if sum(len(file.columns) for file in request.segments) > MAX_COLUMNS:
        raise InvalidInput(f"The segments have more than {MAX_COLUMNS:,} columns in all.")
    check_times(request.segments)


@transaction.atomic
def _publish(task_id: str, request: KeptPublishRequest, outcome: ReplayOutcome) -> KeptPublishAnswer:
    fence = lock_fence(task_id, 0, request.epoch)
    existing = Publish.objects.filter(pk=request.publish_id, fence_id=fence.id).first()
    if existing is not None:
        return KeptPublishAnswer(segment_ids=existing.segment_ids)
    _lock_records(task_id, [*outcome.stored, *outcome.thrown_away, *outcome.still_bad])
    outcome.conclude(task_id, request.publish_id, fence.at)
    publication = Publication(request.publish_id, fence, request.segments, request.counters)
    return KeptPublishAnswer(segment_ids=publication.register())


def _lock_records(task_id: str, numbers: Collection[int]) -> None:
    """Their rows, until the transaction ends. Raises ``PublishRefused`` unless the replay holds all of them."""
    with cursor() as c:
        rows = c.execute(_LOCK_HELD, (list(numbers), task_id)).fetchall()
    if len(rows) != len(numbers):
        raise PublishRefused(
            Refusal(code="changed", detail=f"{len(numbers) - len(rows)} of these records are not held by this replay.")
        )
