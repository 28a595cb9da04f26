"""When a supervisor is idle: nothing has come for as long as its spec says, and all that there is is settled.

It is known by its iterations alone, which ask Kafka where the topic ends, whether tasks run or not.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from controlplane.connections.kafka import TopicOffsets
from controlplane.lag.topic_lag import unread_offsets
from controlplane.sources.models import SourceEvent
from controlplane.sources.spec_sources import sources_of
from controlplane.supervisors.health_messages import count
from controlplane.supervisors.models import Supervisor


def update_idleness(supervisor: Supervisor, topic: TopicOffsets) -> None:
    """Take up what an iteration saw of the topic; the supervisor's row is locked and saved by the caller.

    Only one whose tasks have read becomes idle. ``topic``: what a reader with its isolation level may read.
    """
    idle_after = supervisor.io_config.idle_after
    if idle_after is None:
        return
    now = timezone.now()
    ends = {"topic_id": topic.topic_id, "offsets": {str(p): end for p, end in sorted(topic.end_offsets.items())}}
    activity = _new_activity(supervisor, topic, ends)
    if activity:
        if supervisor.idle_since is not None:
            _report_woken(supervisor, topic, activity)
        supervisor.wake()
    supervisor.ends_seen = ends
    supervisor.inactive_since = supervisor.inactive_since or now
    if supervisor.idle_since is None and supervisor.steady and now - supervisor.inactive_since >= idle_after:
        supervisor.idle_since = now


def _new_activity(supervisor: Supervisor, topic: TopicOffsets, ends: dict[str, Any]) -> str:
    """What is new or unread, in a few words; empty when nothing is."""
    previous = supervisor.ends_seen
    if previous is not None and previous["topic_id"] != topic.topic_id:
        return "it was deleted and created again"
    if previous != ends:
        new_offsets = sum(topic.end_offsets.values()) - sum(previous["offsets"].values()) if previous is not None else 0
        return f"{count(new_offsets, 'offset')} arrived" if new_offsets > 0 else "its partitions or their ends changed"
    left = unread_offsets(supervisor.datasource_id, supervisor.io_config, supervisor.owner, topic)
    return f"{count(left, 'unread offset')}" if left else ""


def _report_woken(supervisor: Supervisor, topic: TopicOffsets, activity: str) -> None:
    name = supervisor.io_config.topic
    sources = sources_of(supervisor.datasource_id, supervisor.io_config, supervisor.owner)
    SourceEvent.objects.create(
        datasource_id=supervisor.datasource_id,
        source=sources.filter(topic_id=topic.topic_id).first(),
        kind=SourceEvent.Kind.WOKEN,
        detail=f"Supervisor {supervisor.pk} was idle since {supervisor.idle_since:%Y-%m-%d %H:%M:%S} UTC. "
        f"Topic {name!r}: {activity}. The supervisor starts to read.",
    )
