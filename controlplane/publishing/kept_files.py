"""What a replay has made of records of files: their rows become visible, and they leave the quarantine, or neither.

Without offsets, the records' state makes it once (see ``quarantine.replays``). A replay publishes some of its
records at a time, and appends. Locks are taken in the order of a publish: the fence's row; the records'; those of the
fences of whoever had read them; then the intervals' rows.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.utils import timezone

from controlplane.common.database import cursor
from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.publishing.batch import NUMBER, check_times, fence_of_files, locked_batch_fence, registered_files
from controlplane.publishing.fence import PublishRefused
from controlplane.publishing.models import Publish
from controlplane.publishing.publish import retried
from controlplane.publishing.publish_sql import keep_schemas
from controlplane.publishing.replay_publish import Became
from ingestion.specs.messages.protocol import Refusal
from ingestion.specs.messages.publish_limits import MOST_COLUMNS
from ingestion.specs.messages.replays import KeptPublishAnswer, KeptPublishRequest

_HELD = """
    SELECT id FROM quarantine_quarantinedrecord
    WHERE id = ANY(%s) AND source_id IS NULL AND state = 'replaying' AND replay_id = %s ORDER BY id FOR UPDATE
"""


def publish_kept(*, task_id: str, datasource: Datasource, request: KeptPublishRequest) -> KeptPublishAnswer:
    """Register some records' rows. Sent again with the same id, it answers as the first time.

    Raises ``PublishRefused`` (fenced, changed) and ``InvalidInput``; nothing was changed then.
    """
    became = Became(
        request.stored, request.thrown_away, {one.number: (one.reason, one.error) for one in request.unparseable}
    )
    _check(request, became)

    def attempt() -> KeptPublishAnswer:
        keep_schemas(task_id, NUMBER, request.segments)
        return _publish(task_id, datasource, request, became)

    return retried(attempt)


def _check(request: KeptPublishRequest, became: Became) -> None:
    said = request.counters
    numbers = [*became.stored, *became.thrown_away, *(one.number for one in request.unparseable)]
    if len(set(numbers)) != len(numbers):
        raise InvalidInput("A record is named twice.")
    expected = {
        "polled": (said.polled, len(numbers)),
        "published": (said.published, sum(file.rows for file in request.segments)),
        "published + rolled_up - further_rows": (said.stored, len(became.stored)),
        "thrown_away": (said.thrown_away, len(became.thrown_away)),
        "unparseable": (said.unparseable, len(became.still_bad)),
        "quarantined": (said.quarantined, len(became.still_bad)),
    }
    wrong = [
        f"{name} is {is_} but the records make {should}" for name, (is_, should) in expected.items() if is_ != should
    ]
    if wrong:
        raise InvalidInput("The counters do not match the records: " + "; ".join(wrong) + ".")
    if sum(len(file.columns) for file in request.segments) > MOST_COLUMNS:
        raise InvalidInput(f"The segments have more than {MOST_COLUMNS:,} columns in all.")
    check_times(request.segments)


@transaction.atomic
def _publish(task_id: str, datasource: Datasource, request: KeptPublishRequest, became: Became) -> KeptPublishAnswer:
    fence = locked_batch_fence(task_id, request.epoch)
    seen = Publish.objects.filter(pk=request.publish_id, fence_id=fence).first()
    if seen is not None:
        return KeptPublishAnswer(segment_ids=seen.segment_ids)
    _lock_held(task_id, [*became.stored, *became.thrown_away, *became.still_bad])
    became.conclude(task_id, request.publish_id, timezone.now())
    place = fence_of_files(fence, datasource, datasource.append_version)
    return KeptPublishAnswer(segment_ids=registered_files(task_id, request, place))


def _lock_held(task_id: str, numbers: Collection[int]) -> None:
    """Their rows, until the transaction ends. Raises ``PublishRefused`` unless the replay holds all of them."""
    with cursor() as c:
        held = c.execute(_HELD, (list(numbers), task_id)).fetchall()
    if len(held) != len(numbers):
        raise PublishRefused(
            Refusal(code="changed", detail=f"{len(numbers) - len(held)} of these records are not held by this replay.")
        )
