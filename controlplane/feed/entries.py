"""Publishes as a stream: numbered in an order that nothing comes into later, each once.

A publish is given its number when somebody asks, not when it commits: those of one datasource neither wait for each
other nor pay for it. A ``moment`` is chosen before which every publish has come to its end; what was published until
then is numbered in the order of time. Replacements are no publishes: compacted rows come once, as they first came.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet

from controlplane.common.database import cursor
from controlplane.datasources.masking import require_records
from controlplane.datasources.models import Datasource
from controlplane.feed.manifest import moment
from controlplane.feed.models import Feed, FeedEntry
from controlplane.segments.models import Segment
from controlplane.teams.models import User

_AT_ONCE = 10_000
_LAST_ID = uuid.UUID(int=(1 << 128) - 1)
_NEW = """
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


def publishes(user: User, datasource: Datasource) -> tuple[int, QuerySet[FeedEntry]]:
    """The latest number, and what has one. Raises ``NotAllowed`` where columns are masked for the user."""
    require_records(user, datasource, "listing its files (they hold all columns in plain)")
    return number_new(datasource), FeedEntry.objects.filter(datasource=datasource)


def with_files(entries: list[FeedEntry]) -> list[PublishedFiles]:
    """Each with its segments, in use or not: their files are there as long as they are."""
    wanted = [segment for entry in entries for segment in entry.segment_ids]
    found = Segment.objects.in_bulk(wanted)
    return [
        PublishedFiles(e, sorted((found[i] for i in e.segment_ids if i in found), key=lambda s: s.path))
        for e in entries
    ]


@transaction.atomic
def number_new(datasource: Datasource) -> int:
    """Give numbers to publishes that have none yet and that nothing can come before; the latest number."""
    Feed.objects.get_or_create(datasource=datasource)
    feed = Feed.objects.select_for_update().get(datasource=datasource)
    until = moment()
    if feed.numbered_until is not None and until <= feed.numbered_until:
        return feed.latest
    with cursor() as c:
        found = c.execute(
            _NEW,
            {
                "datasource": datasource.pk,
                "after": feed.numbered_until,
                "after_id": feed.numbered_id,
                "until": until,
                "most": _AT_ONCE,
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
        for n, (publish, at, segments) in enumerate(found, 1)
    )
    feed.latest += len(found)
    whole = len(found) < _AT_ONCE
    feed.numbered_until, feed.numbered_id = (until, _LAST_ID) if whole else (found[-1][1], found[-1][0])
    feed.save()
    return feed.latest
