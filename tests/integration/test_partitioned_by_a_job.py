"""A job of the compaction application writes an interval anew: real files, on a real PostgreSQL, without Spark."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from django.conf import LazySettings

from controlplane.compaction import planning
from controlplane.compaction.models import Job, State
from controlplane.publishing.publish import publish
from controlplane.segments.models import Interval, Segment
from controlplane.segments.selectors.lists import list_segments
from controlplane.sources.models import Source
from controlplane.teams.models import User
from ingestion.client.compaction import CompactionControlPlane
from ingestion.failpoints import Failpoints
from ingestion.segments.batch import write_segments
from ingestion.segments.local import LocalStorage
from ingestion.segments.reader import read_segment
from ingestion.spark import compactor
from ingestion.specs.messages.compaction import CompactionJob, WorkRequest
from ingestion.specs.schema.data_schema import DataSchema
from tests.integration.test_partitioning_compaction import config, post, quiet
from tests.support.batch_tasks import root, source
from tests.support.column_ids import some_ids
from tests.support.desk import batch_of
from tests.support.in_process import client_of_compaction
from tests.support.publishes import TASK, request, start
from tests.support.segment_tasks import a_writer

__all__ = ["root", "source"]  # fixtures
ROWS, LATE, FILES = 600, 100, 3
APPLICATION = "compaction_1"
SCHEMA = {
    "dimensionsSpec": {"dimensions": [{"name": "n", "type": "long"}]},
    "granularitySpec": {"segmentGranularity": "DAY", "rollup": False},
}
RANGES = {"type": "range", "partitionDimensions": ["n"], "targetRowsPerSegment": 100}


class Killed(BaseException):
    """Its process is no more."""


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch, settings: LazySettings, tmp_path: Path) -> CompactionControlPlane:
    """What the driver says, and what its Spark tasks do."""
    settings.AUTO_COMPACTION, settings.DEEP_STORAGE = True, str(tmp_path / "deep")
    monkeypatch.setenv("HEADGATE_SCRATCH", str(tmp_path / "scratch"))
    client = client_of_compaction(APPLICATION)
    monkeypatch.setattr(compactor, "CompactionControlPlane", lambda *_: client)
    return client


def appended(source: Source, place: Path, first: int, rows: int) -> None:
    """Files of a day, whose numbers lie between each other; nothing else is expected."""
    epoch, storage = start(source), LocalStorage(place / "deep", fsync=False)
    schema = DataSchema.model_validate({"dataSource": "flights", "timestampSpec": {"column": "t"}, **SCHEMA})
    for number in range(FILES):
        held = np.arange(first + number, first + rows, FILES)
        table = batch_of((held * 1000).tolist(), n=pa.array(held))
        written = write_segments(
            table, np.zeros(len(held), np.int32), held, schema=schema, version="v", storage=storage,
            scratch=place / "scratch", ids=some_ids(),
        )  # fmt: skip
        publish(task_id=TASK, number=0, request=request(epoch, segments=written))
    quiet()


def handed_out(client: CompactionControlPlane) -> CompactionJob:
    planning.plan_rewrites()
    [job] = client.work(WorkRequest(free=1)).jobs
    return job


def done(job: CompactionJob) -> compactor.JobOutcome:
    """What its Spark task does."""
    [outcome] = compactor.job_runner(compactor.JobOrder(job.model_dump_json(), "", APPLICATION, ""))([0])
    return outcome


def check_ranges(place: Path, source: Source, rows: int) -> None:
    """Files hold numbers apart from each other's, and all of them together each once."""
    storage = LocalStorage(place / "deep", fsync=False)
    held = [sorted(read_segment(storage, s.path).column("n").to_pylist()) for s in list_segments(source.datasource)]
    held.sort()
    assert len(held) > 3 and all(one[-1] < other[0] for one, other in pairwise(held))
    assert [n for some in held for n in some] == list(range(rows))


def test_an_interval_is_partitioned_once_whatever_is_killed_and_again_after_a_late_append(
    source: Source, root: User, application: CompactionControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 32 of the failure matrix, of an interval that is written anew: a process dies with its files written."""
    a_writer(source, TASK, **SCHEMA)
    appended(source, tmp_path, 0, ROWS)
    post(root, source, config(RANGES))
    job = handed_out(application)

    def die(_: Failpoints, place: str) -> None:
        if place == "written":
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Failpoints, "reach", die)
        with pytest.raises(Killed):
            done(job)
    assert Segment.objects.filter(used=True).count() == FILES, "what it has written is nobody's"
    assert done(job) == compactor.JobOutcome()
    check_ranges(tmp_path, source, ROWS)
    assert Interval.objects.get().partitioned_by != ""
    quiet()
    planning.plan_rewrites()
    assert not Job.objects.exclude(state=State.DONE).exists()
    appended(source, tmp_path, ROWS, LATE)
    assert done(handed_out(application)) == compactor.JobOutcome()
    check_ranges(tmp_path, source, ROWS + LATE)
    assert Job.objects.filter(state=State.DONE).count() == 2
