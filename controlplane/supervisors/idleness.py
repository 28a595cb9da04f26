"""When a supervisor is idle: nothing has come for as long as its spec says, and all that there is is settled.

It is known by its iterations alone, which ask Kafka where the topic ends, whether tasks run or not.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from controlplane.connections.kafka import TopicOffsets
from controlplane.lag.topic_lag import left_to_read
from controlplane.sources.lookup import sources_of
from controlplane.sources.models import SourceEvent
from controlplane.supervisors.health_messages import count
from controlplane.supervisors.models import Supervisor


def look(supervisor: Supervisor, topic: TopicOffsets) -> None:
    """Take up what an iteration saw of the topic; the supervisor's row is locked and saved by the caller.

    Only one whose tasks have read becomes idle. ``topic``: what a reader with its isolation level may read.
    """
    after = supervisor.io_config.idle_after
    if after is None:
        return
    now = timezone.now()
    ends = {"topic_id": topic.topic_id, "offsets": {str(p): end for p, end in sorted(topic.ends.items())}}
    news = _news(supervisor, topic, ends)
    if news:
        if supervisor.idle_since is not None:
            _report(supervisor, topic, news)
        supervisor.wake()
    supervisor.ends_seen = ends
    supervisor.inactive_since = supervisor.inactive_since or now
    if supervisor.idle_since is None and supervisor.steady and now - supervisor.inactive_since >= after:
        supervisor.idle_since = now


def _news(supervisor: Supervisor, topic: TopicOffsets, ends: dict[str, Any]) -> str:
    """What is new or unread, in a few words; empty when nothing is."""
    before = supervisor.ends_seen
    if before is not None and before["topic_id"] != topic.topic_id:
        return "it was deleted and created again"
    if before != ends:
        came = sum(topic.ends.values()) - sum(before["offsets"].values()) if before is not None else 0
        return f"{count(came, 'offset')} arrived" if came > 0 else "its partitions or their ends changed"
    left = left_to_read(supervisor.datasource_id, supervisor.io_config, supervisor.owner, topic)
    return f"{count(left, 'unread offset')}" if left else ""


def _report(supervisor: Supervisor, topic: TopicOffsets, news: str) -> None:
    name = supervisor.io_config.topic
    mine = sources_of(supervisor.datasource_id, supervisor.io_config, supervisor.owner)
    SourceEvent.objects.create(
        datasource_id=supervisor.datasource_id,
        source=mine.filter(topic_id=topic.topic_id).first(),
        kind=SourceEvent.Kind.WOKEN,
        detail=f"Supervisor {supervisor.pk} was idle since {supervisor.idle_since:%Y-%m-%d %H:%M:%S} UTC. "
        f"Topic {name!r}: {news}. The supervisor starts to read.",
    )
