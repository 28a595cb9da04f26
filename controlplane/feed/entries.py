"""Publishes as a stream: numbered in an order that nothing comes into later, each once.

A publish is given its number when somebody asks, not when it commits: those of one datasource neither wait for each
other nor pay for it. A ``publish_watermark`` is chosen before which every publish has come to its end; what was
published until then is numbered in the order of time. Replacements are no publishes: compacted rows
come once, as they first came.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet

from controlplane.common.database import cursor
from controlplane.datasources.masking import require_record_access
from controlplane.datasources.models import Datasource
from controlplane.feed.manifest import publish_watermark
from controlplane.feed.models import Feed, FeedEntry
from controlplane.segments.models import Segment
from controlplane.teams.models import User

_BATCH_SIZE = 10_000
_MAX_ID = uuid.UUID(int=(1 << 128) - 1)
_NEW_PUBLISHES = """
    SELECT p.id, p.created_at, p.segment_ids FROM publishing_indexerfence f
    JOIN publishing_publish p ON p.fence_id = f.id
    WHERE f.datasource_id = %(datasource)s AND NOT p.abandoned AND jsonb_array_length(p.segment_ids) > 0
      AND (%(after)s::timestamptz IS NULL
           OR (f.last_publish_at >= %(after)s AND (p.created_at, p.id) > (%(after)s::timestamptz, %(after_id)s::uuid)))
      AND p.created_at <= %(until)s ORDER BY p.created_at, p.id LIMIT %(most)s
"""


@dataclass(frozen=True)
class PublishedFiles:
    """One publish: its number, and its segments, in the order of their paths; those that were deleted are missing."""

    entry: FeedEntry
    segments: list[Segment]

    @property
    def complete(self) -> bool:
        """Whether all its files are still kept."""
        return len(self.segments) == len(self.entry.segment_ids)


def list_publishes(user: User, datasource: Datasource) -> tuple[int, QuerySet[FeedEntry]]:
    """The latest number, and what has one. Raises ``NotAllowed`` where columns are masked for the user."""
    require_record_access(user, datasource, "listing its files (they hold all columns in plain)")
    return number_new_publishes(datasource), FeedEntry.objects.filter(datasource=datasource)


def published_files(entries: list[FeedEntry]) -> list[PublishedFiles]:
    """Each with its segments, in use or not: their files are there as long as they are."""
    segment_ids = [segment for entry in entries for segment in entry.segment_ids]
    segments = Segment.objects.in_bulk(segment_ids)
    return [
        PublishedFiles(e, sorted((segments[i] for i in e.segment_ids if i in segments), key=lambda s: s.path))
        for e in entries
    ]


@transaction.atomic
def number_new_publishes(datasource: Datasource) -> int:
    """Give numbers to publishes that have none yet and that nothing can come before; the latest number."""
    Feed.objects.get_or_create(datasource=datasource)
    feed = Feed.objects.select_for_update().get(datasource=datasource)
    until = publish_watermark()
    if feed.numbered_until is not None and until <= feed.numbered_until:
        return feed.latest
    with cursor() as c:
        rows = c.execute(
            _NEW_PUBLISHES,
            {
                "datasource": datasource.pk,
                "after": feed.numbered_until,
                "after_id": feed.numbered_id,
                "until": until,
                "most": _BATCH_SIZE,
            },
        ).fetchall()
    FeedEntry.objects.bulk_create(
        FeedEntry(
            datasource=datasource,
            number=feed.latest + n,
            publish_id=publish,
            segment_ids=[uuid.UUID(s) for s in json.loads(segments)],
            published_at=at,
        )
        for n, (publish, at, segments) in enumerate(rows, 1)
    )
    feed.latest += len(rows)
    has_all = len(rows) < _BATCH_SIZE
    feed.numbered_until, feed.numbered_id = (until, _MAX_ID) if has_all else (rows[-1][1], rows[-1][0])
    feed.save()
    return feed.latest
