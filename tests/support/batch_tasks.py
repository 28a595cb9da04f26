"""Batch tasks without an application: submitted, and published as their driver would."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.segments.models import QuarantinedRecord, Source
from controlplane.segments.selectors import list_segments
from controlplane.tasks import batches
from controlplane.tasks.models import Status, Task
from controlplane.teams.models import User
from ingestion.specs.batch import parse_batch_spec
from ingestion.specs.batch_protocol import BatchPublishRequest
from ingestion.specs.causes import cause_of
from ingestion.specs.counters import Counters
from ingestion.specs.protocol import SegmentFile
from tests.support.django_cast import Cast
from tests.support.publishes import DAY, make_source, segment, send, start
from tests.support.publishes import request as of_stream

ROOT = User(username="root", is_superuser=True)
ONE_DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def document(datasource: str = "flights", **changes: Any) -> dict[str, Any]:
    """A spec; ``changes`` by path, with ``__`` for the dots below ``spec``."""
    spec: dict[str, Any] = {
        "dataSchema": {"dataSource": datasource, "timestampSpec": {"column": "t"}},
        "ioConfig": {
            "type": "index_parallel",
            "inputSource": {"type": "inline", "data": '{"t": 1}'},
            "inputFormat": {"type": "json"},
        },
        "tuningConfig": {"type": "index_parallel", "maxNumConcurrentSubTasks": 3},
    }
    for path, value in changes.items():
        *way, last = path.split("__")
        place = spec
        for name in way:
            place = place.setdefault(name, {})
        place[last] = value
    return {"type": "index_parallel", "spec": spec}


@pytest.fixture
def source(db: None) -> Source:
    return make_source("flights")


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create(username="root", is_superuser=True)


def a_task(root: User, **changes: Any) -> Task:
    return batches.submit_batch(user=root, document=document(**changes), team_name="alpha")


def file(day: int = 0, rows: int = 10, length: timedelta = ONE_DAY, hour: int = 0) -> SegmentFile:
    begins = DAY + day * ONE_DAY + hour * HOUR
    made = segment({0: [(0, rows)]}, begins)
    bounds = {"interval_end": begins + length, "max_time": begins + length - timedelta(milliseconds=1)}
    return made.model_copy(update={"offsets": {}, **bounds})


def outcome(epoch: int, *files: SegmentFile, **counters: int) -> BatchPublishRequest:
    rows = sum(f.rows for f in files)
    told = Counters(polled=rows + sum(counters.values()), published=rows, **counters)
    return BatchPublishRequest(publish_id=uuid.uuid4(), epoch=epoch, segments=list(files), counters=told)


def published(task: Task, *files: SegmentFile, **counters: int) -> int:
    """How many segments were replaced."""
    return batches.publish(task, outcome(batches.start(task).epoch, *files, **counters)).replaced


def streamed(source: Source, *days: int, at: int = 0) -> None:
    epoch = start(source)
    for place, day in enumerate(days):
        begins = at + 10 * place
        send(of_stream(epoch, segments=[segment({0: [(begins, begins + 10)]}, DAY + day * ONE_DAY)]))


def in_use(source: Source) -> list[tuple[int, str, int]]:
    """Day, whose, rows."""
    found = [((s.interval_start - DAY).days, s.task_id, s.rows) for s in list_segments(source.datasource)]
    return sorted(found)


def a_record_of_a_file(cast: Cast) -> QuarantinedRecord:
    """One of the cast's datasource, in quarantine, whose time stands under another name than its task's spec says."""
    now = timezone.now()
    task = Task.objects.create(
        id=f"index_parallel_{uuid.uuid4().hex[:8]}", kind=Task.Kind.INDEX_PARALLEL, datasource=cast.datasource,
        spec=parse_batch_spec(document(cast.datasource.name)).canonical(), status=Status.SUCCESS, created_at=now,
        ended_at=now, submitted_by=cast.users["operator"],
    )  # fmt: skip
    error = "field 't' of a file holds no time: it is missing or null"
    return QuarantinedRecord.objects.create(
        datasource=cast.datasource, task_id=task.pk, place="/data/a.json, byte 17", partition=0, offset=17,
        delivery_count=0, reason="unparseable", error=error, cause=cause_of("unparseable", error).fingerprint,
        payload=b'{"at": "2025-01-01T00:00:00Z"}', publish_id=uuid.uuid4(), created_at=now,
    )  # fmt: skip
