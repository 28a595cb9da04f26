"""Batch tasks that read segments: what they have read is replaced by name, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource, MaskedColumn
from controlplane.publishing.fence import PublishRefused
from controlplane.segments import marking
from controlplane.segments.models import Interval
from controlplane.sources.models import Source
from controlplane.tasks import batches
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from ingestion.specs.messages.protocol import SegmentFile
from tests.support.batch_tasks import (
    ONE_DAY,
    document,
    file,
    in_use,
    outcome,
    root,
    source,
    streamed,
)
from tests.support.django_cast import Cast

__all__ = ["root", "source"]  # fixtures


def reindex(**changes: Any) -> dict[str, Any]:
    source = {"type": "druid", "dataSource": "flights", "interval": "2025-06-01/P1M"}
    spec = document(
        **{
            "ioConfig__inputSource": source,
            "dataSchema__timestampSpec": {"column": "__time", "format": "millis"},
            **changes,
        }
    )
    if "ioConfig__inputFormat" not in changes:
        del spec["spec"]["ioConfig"]["inputFormat"]
    return spec


def a_reindex(root: User, **changes: Any) -> Task:
    return batches.submit_batch(user=root, document=reindex(**changes), team_name="alpha")


def sent(task: Task, *files: SegmentFile) -> int:
    given = batches.start(task)
    what = outcome(given.epoch, *files).model_copy(update={"read": [s.id for s in given.inputs]})
    return batches.publish(task, what).replaced


def test_segments_that_were_read_are_replaced_by_name_and_what_came_meanwhile_stays(source: Source, root: User) -> None:
    """Row 27 of the failure matrix, of a batch task that re-indexes."""
    streamed(source, 0, 1)
    task = a_reindex(root)
    given = batches.start(task)
    assert [(s.rows, s.size_bytes) for s in given.inputs] == [(10, 100), (10, 100)]
    streamed(source, 1, at=100)
    what = outcome(given.epoch, file(0, 20, 30 * ONE_DAY)).model_copy(update={"read": [s.id for s in given.inputs]})
    assert batches.publish(task, what).replaced == 2
    assert in_use(source) == [(0, task.pk, 20), (1, "task-1", 10)]
    sums = {(i.start, i.end): (i.segments, i.rows) for i in Interval.objects.all()}
    assert sorted(sums.values()) == [(0, 0), (1, 10), (1, 20)]
    assert marking.mark_used(source.datasource, marking.SegmentSelection()).segments == 0
    again = a_reindex(root)
    assert sent(again) == 2  # its filter has left nothing
    assert in_use(source) == []


def test_a_segment_that_was_read_and_is_gone_refuses_the_publish(source: Source, root: User) -> None:
    streamed(source, 0, 1)
    task, other = a_reindex(root), a_reindex(root)
    given = batches.start(task)
    assert sent(other, file(0, 20)) == 2
    with pytest.raises(PublishRefused) as refused:
        batches.publish(
            task, outcome(given.epoch, file(0, 20)).model_copy(update={"read": [s.id for s in given.inputs]})
        )
    assert refused.value.refusal.code == "changed"
    assert in_use(source) == [(0, other.pk, 20)]
    assert sent(task, file(0, 20)) == 1  # planned again


def test_parts_of_segments_are_not_replaced(source: Source, root: User) -> None:
    streamed(source, 0)
    half = {"type": "druid", "dataSource": "flights", "interval": "2025-06-01/PT12H"}
    with pytest.raises(InvalidInput, match="reaches beyond the interval 2025-06-01/PT12H"):
        a_reindex(root, ioConfig__inputSource=half)
    elsewhere = a_reindex(root, ioConfig__inputSource=half, dataSchema__dataSource="copies")
    assert len(batches.start(elsewhere).inputs) == 1
    for changes, why in (
        ({"ioConfig__inputFormat": {"type": "json"}}, "omit it"),
        ({"dataSchema__timestampSpec": {"column": "t"}}, "__time"),
        ({"ioConfig__dropExisting": True, "dataSchema__granularitySpec": {"intervals": ["2025/P1Y"]}}, "dropExisting"),
        ({"ioConfig__inputSource": {**half, "interval": "today"}}, "is not an interval"),
        ({"ioConfig__inputSource": {**half, "filter": {"type": "true"}}}, "transformSpec"),
    ):
        with pytest.raises(InvalidInput) as refused:
            a_reindex(root, **changes)
        assert any(why in fault.message for fault in refused.value.errors), refused.value.errors


def test_rows_are_copied_only_for_who_may_read_them(cast: Cast, clients: dict[str, Client]) -> None:
    """Another team's datasource is not there; one with a column that is masked for the user gives nothing."""
    path, mine = "/druid/indexer/v1/task", cast.datasource.name
    Datasource.objects.create(name="betas", team=cast.beta)
    before = Task.objects.count()

    def answered(name: str) -> int:
        theirs = {"type": "druid", "dataSource": name, "interval": "2025/P1Y"}
        body = reindex(ioConfig__inputSource=theirs, dataSchema__dataSource=mine)
        return clients["operator"].post(path, body, content_type="application/json").status_code

    assert [answered(name) for name in ("betas", "nobodys")] == [404, 404]
    MaskedColumn.objects.create(datasource=cast.datasource, column="item", role="admin")
    assert answered(mine) == 403
    assert Task.objects.count() == before
