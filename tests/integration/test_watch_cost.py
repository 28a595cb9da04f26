"""What the watch asks the metadata store for: much of it once for all tasks whose topics were seen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from controlplane.connections.kafka import TopicOffsets
from controlplane.publishing.models import OFFSET_BITS, ProgressKey, SettledRange
from controlplane.sources.models import Source
from controlplane.tasks.models import Indexer, Status, Task
from controlplane.tasks.watching import SAME_AGAIN_AFTER, ObservedTopic, watch_group
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.django_cast import Cast, spec_for

FOR_ALL = 6  # indexers, sources, keys, what is settled, what is quarantined, the observations
EACH = 4  # how much is unsettled, and where; where the log begins and ends, of the source and of its keys
SAMPLES = "lag_lagsample"  # in the first look of every five seconds there are some more of these


def readers(cast: Cast, count: int, end: int = 1_000) -> list[ObservedTopic]:
    """Tasks of supervisors, of two indexers each. Of each of two partitions 100 offsets are settled, in two ranges."""
    seen = []
    for number in range(count):
        name = f"watched-{number}"
        document = spec_for("flights", topic=name, groupId=name)
        task, _ = Task.objects.get_or_create(
            pk=name,
            defaults={
                "kind": cast.task.kind,
                "datasource": cast.datasource,
                "supervisor_id": name,
                "spec": parse_task_spec(document).canonical(),
                "status": Status.RUNNING,
                "created_at": timezone.now(),
            },
        )
        if not task.indexers.exists():
            for indexer in (0, 1):
                Indexer.objects.create(task=task, number=indexer, state="reading", in_flight=1)
            source = Source.objects.create(
                datasource=cast.datasource, cluster_id="c", group=name, topic=name, topic_id=f"id-{number}"
            )
            for partition in (0, 1):
                base = ProgressKey.objects.create(source=source, partition=partition).pk << OFFSET_BITS
                for low, high in ((0, 60), (80, 120)):
                    SettledRange.objects.create(span=(base + low, base + high), settled_at=timezone.now())
        ends = {0: end, 1: end}
        topic = TopicOffsets(f"id-{number}", {0: 0, 1: 0}, ends, ends, observed_at=timezone.now())
        seen.append(
            ObservedTopic(Task.objects.select_related("datasource").get(pk=name), parse_task_spec(document), topic)
        )
    return seen


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[ObservedTopic]], list[str]]:
    """What the look at some topics asks the store for; the cursors beside Django's count as well."""
    execute = psycopg.Cursor.execute

    def of(group: list[ObservedTopic]) -> list[str]:
        asked: list[str] = []

        def noting(self: Any, query: Any, *values: Any, **more: Any) -> Any:
            asked.append(str(query))
            return execute(self, query, *values, **more)

        with monkeypatch.context() as patched:
            patched.setattr(psycopg.Cursor, "execute", noting)
            watch_group(group)
        return [query for query in asked if SAMPLES not in query]

    return of


def test_one_more_task_costs_what_is_its_own(cast: Cast, statements: Callable[..., list[str]]) -> None:
    one, ten = statements(readers(cast, 1)), statements(readers(cast, 10, end=2_000))
    assert len(one) <= FOR_ALL + EACH, one
    assert len(ten) <= FOR_ALL + 10 * EACH, ten


def test_each_keeps_what_was_seen_of_its_own_topic(cast: Cast) -> None:
    group = readers(cast, 3)
    group[1] = ObservedTopic(group[1].task, group[1].spec, None, "Kafka does not answer")
    watch_group(group)
    first, second, third = (Task.objects.get(pk=f"watched-{n}").observation for n in range(3))
    for observation in (first, third):
        assert (observation["settled"], observation["lag"]) == (200, 1_800)
        assert observation["unsettled"] == {p: [[60, 80], [120, 1_000]] for p in "01"}
    assert first["topic_id"] == "id-0" and third["topic_id"] == "id-2"
    assert second["error"] == "Kafka does not answer" and "lag" not in second
    ends = ProgressKey.objects.filter(source__topic__startswith="watched").order_by("source__topic", "partition")
    assert list(ends.values_list("end_offset", flat=True)) == [1_000, 1_000, None, None, 1_000, 1_000]


def test_what_has_not_changed_is_written_now_and_then(cast: Cast, statements: Callable[..., list[str]]) -> None:
    def seen_at() -> datetime:
        return datetime.fromisoformat(Task.objects.get(pk="watched-0").observation["observed_at"])

    watch_group(readers(cast, 1))
    at, key = seen_at(), ProgressKey.objects.filter(source__topic="watched-0").first()
    assert key is not None
    asked = statements(readers(cast, 1))
    assert not [query for query in asked if "UPDATE tasks_task" in query]
    key_at = key.observed_at
    key.refresh_from_db()
    assert (seen_at(), key.observed_at) == (at, key_at)
    task = Task.objects.get(pk="watched-0")
    task.observation["observed_at"] = (at - SAME_AGAIN_AFTER).isoformat()
    task.save(update_fields=["observation"])
    ProgressKey.objects.filter(pk=key.pk).update(observed_at=at - timedelta(seconds=11))
    watch_group(readers(cast, 1))
    key.refresh_from_db()
    assert seen_at() >= at
    assert key.observed_at is not None and key.observed_at > at - timedelta(seconds=11)
    watch_group(readers(cast, 1, end=1_001))
    assert Task.objects.get(pk="watched-0").observation["lag"] == 1_802
