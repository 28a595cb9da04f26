"""Batch tasks without an application: submitted, and published as their driver would."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from controlplane.segments.selectors.lists import list_segments
from controlplane.sources.models import Source
from controlplane.tasks import batches
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from ingestion.specs.counters import Counters
from ingestion.specs.messages.batch_protocol import BatchPublishRequest
from ingestion.specs.messages.protocol import SegmentFile
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
