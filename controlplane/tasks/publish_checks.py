"""What an indexer says of the world outside the metadata store, compared with that world: before the transaction,
never in it.

It is refused for good where it can't be true. What can't be looked at from here is let pass: files in an object
storage, which would make every publish wait for it, and topics of a Kafka that does not answer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from django.conf import settings

from controlplane.common.database import cursor
from controlplane.common.errors import Conflict
from controlplane.connections import kafka
from controlplane.connections.secrets import SecretsLost
from controlplane.publishing.rewinds import is_dry_run
from controlplane.sources.models import Source
from controlplane.tasks.models import Task
from controlplane.tasks.sources import properties_of
from ingestion.specs.messages.deep_storage import local_folder
from ingestion.specs.messages.protocol import PublishRequest, SegmentFile, StartRequest

# A topic grows between two looks at it; only what lies further beyond its end makes Kafka be asked once more.
ALLOWED_GROWTH = 1_000_000
_SEEN_ENDS_SQL = """
    SELECT w.partition, w.last, (s.bounds -> w.partition::text ->> 2)::int8, s.topic, s.topic_id
    FROM publishing_indexerfence i JOIN sources_source s ON s.id = i.source_id,
        unnest(%s::int8[], %s::int8[]) AS w(partition, last)
    WHERE i.task_id = %s AND i.number = %s AND NOT i.replay AND s.looked_at IS NOT NULL
"""


def check_publish(task_id: str, number: int, request: PublishRequest) -> None:
    """Raise ``Conflict`` when it names files that are not there, or offsets that the topic can't have."""
    if not _is_dry_run_without_files(task_id, request.segments):
        check_files(request.segments)
    _check_offsets(task_id, number, _end_offsets(request))


def _is_dry_run_without_files(task_id: str, files: Sequence[SegmentFile]) -> bool:
    """Asked of the metadata store only where a file is missing."""
    return any(is_missing(f.path, f.size_bytes) for f in files) and is_dry_run(task_id)


def check_files(files: Iterable[SegmentFile]) -> None:
    """Refuse files that are not there, where deep storage is a folder that this machine has, too."""
    for file in files:
        if is_missing(file.path, file.size_bytes):
            raise Conflict(f"There is no file {file.path!r} of {file.size_bytes} bytes in deep storage.")


def is_missing(path: str, size_bytes: int) -> bool:
    """Whether deep storage has no such file; False also where it is no folder that this machine has, too."""
    root = local_folder(settings.DEEP_STORAGE)
    return root is not None and root.is_dir() and _is_plain(path) and not _is_there(root / path, size_bytes)


def _is_plain(path: str) -> bool:
    """Any other is refused by its name, when it is registered."""
    return "\0" not in path and not {"", ".", ".."} & set(path.split("/"))


def _is_there(path: Path, size_bytes: int) -> bool:
    return _has_size(path, size_bytes) or (_relist(path.parent) and _has_size(path, size_bytes))


def _has_size(path: Path, size_bytes: int) -> bool:
    try:
        file = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # who knows
    return stat.S_ISREG(file.st_mode) and file.st_size == size_bytes


def _relist(folder: Path) -> bool:
    """A network's file system may remember for a while that a file was not there: until its folder is listed."""
    try:
        with os.scandir(folder) as entries:
            next(entries, None)
    except OSError:
        return False
    return True


def _end_offsets(request: PublishRequest) -> dict[int, int]:
    """Partition → the end of the highest range that the publish names there."""
    ends = [(p, end) for s in request.segments for p, ranges in s.offsets.items() for _, end in ranges]
    ends += [(p, end) for p, o in request.outcomes.items() for _, ranges in o for _, end in ranges]
    highest: dict[int, int] = {}
    for partition, end in ends:
        highest[partition] = max(end, highest.get(partition, 0))
    return highest


def _check_offsets(task_id: str, number: int, lasts: Mapping[int, int]) -> None:
    with cursor() as c:
        rows = c.execute(_SEEN_ENDS_SQL, (list(lasts), list(lasts.values()), task_id, number)).fetchall()
    beyond = {partition: last for partition, last, end, *_ in rows if end is None or last > end + ALLOWED_GROWTH}
    if beyond:
        *_, topic, topic_id = rows[0]
        _ask_kafka(task_id, topic, topic_id, beyond)


def _ask_kafka(task_id: str, topic: str, topic_id: str, lasts: Mapping[int, int]) -> None:
    offsets = _topic_offsets(Task.objects.get(pk=task_id), topic)
    if offsets is None or offsets.topic_id != topic_id:
        return  # another topic by now: an indexer finds that out by itself
    for partition, last in lasts.items():
        if partition not in offsets.log_ends:
            raise Conflict(f"Topic {topic!r} has no partition {partition}: it has {len(offsets.log_ends)}.")
        if last > offsets.log_ends[partition]:
            raise Conflict(
                f"Topic {topic!r} has no offset {last - 1} in partition {partition}: it ends at "
                f"{offsets.log_ends[partition]}."
            )


def check_topic(task: Task, request: StartRequest, topic: str, group: str) -> None:
    """Raise ``Conflict`` when an indexer would retire a topic for one that Kafka has not."""
    sources = Source.objects.filter(
        datasource=task.datasource_id, cluster_id=request.cluster_id, group=group, topic=topic
    )
    if not sources.exists() or sources.filter(topic_id=request.topic_id).exists():
        return
    offsets = _topic_offsets(task, topic)
    if offsets is not None and offsets.topic_id != request.topic_id:
        raise Conflict(f"The id of topic {topic!r} is {offsets.topic_id}, not {request.topic_id}.")


def _topic_offsets(task: Task, topic: str) -> kafka.TopicOffsets | None:
    """None also when Kafka does not say."""
    try:
        return kafka.topic_offsets(properties_of(task), topic)
    except (kafka.KafkaProblem, SecretsLost):
        return None
