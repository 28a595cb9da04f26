"""``compact`` tasks that write rows anew, on a real PostgreSQL: what becomes of their specs, without their driver."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from controlplane.common.errors import InvalidInput
from controlplane.compaction import compact_tasks, reindexing
from controlplane.compaction.schemas import write_specs_of
from controlplane.datasources.models import MaskedColumn
from controlplane.sources.models import Source
from controlplane.tasks import batches, services
from controlplane.tasks.models import Task
from controlplane.teams.models import User
from ingestion.specs.messages.protocol import Column
from tests.support.batch_tasks import file, in_use, outcome, root, source
from tests.support.django_cast import Cast
from tests.support.publishes import DAY, TASK, request, segment, send, start
from tests.support.segment_tasks import a_writer, compact, statuses

__all__ = ["root", "source"]  # fixtures
BY_HOUR = {"granularitySpec": {"queryGranularity": "HOUR"}}
COLUMNS = {"item": "string", "tags": "strings", "n": "long", "price": "double", "ok": "boolean", "more": "json"}
METRICS = [
    {"type": "count", "name": "rows"},
    {"type": "doubleSum", "name": "sum", "fieldName": "price"},
    {"type": "longMax", "name": "most", "fieldName": "n"},
    {"type": "HLLSketchBuild", "name": "users", "fieldName": "user", "lgK": 14},
    {"type": "filtered", "filter": {"type": "true"}, "aggregator": {"type": "count", "name": "some"}},
]
NAMED = {"rows": "long", "sum": "double", "most": "long", "users": "COMPLEX<HLLSketch>", "some": "long"}


def published(
    source: Source, columns: dict[str, str], at: int = 0, day: int = 0, task: str = TASK, extents: bool = False
) -> None:
    """A segment of ten rows of a day."""
    epoch = start(source, task=task)
    made = segment({0: [(at, at + 10)]}, DAY + day * timedelta(days=1))
    held = [Column.model_validate({"name": n, "type": t}) for n, t in {"__time": "timestamp", **columns}.items()]
    send(request(epoch, segments=[made.model_copy(update={"columns": held, "extents": extents})]), task=task)


def submitted(root: User, **changes: Any) -> Task:
    return services.submit_task(user=root, document=compact(**changes))


def told(task: Task) -> dict[str, Any]:
    """The dataSchema with which it starts."""
    return reindexing.start(task).spec.dataSchema.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def test_what_is_left_out_is_what_the_segments_have(source: Source, root: User) -> None:
    a_writer(source, TASK)
    published(source, {"item": "string"})
    published(source, COLUMNS, at=100, day=1)
    task = submitted(root, id="anew", tuningConfig={"type": "index_parallel", "maxNumConcurrentSubTasks": 2}, **BY_HOUR)
    assert (task.pk, task.kind, task.status, task.slots) == ("anew", "reindex", "PENDING", 2)
    compact_tasks.run()  # is not about it
    assert Task.objects.get(pk="anew").status == "PENDING"
    schema = told(task)
    assert schema["dimensionsSpec"]["dimensions"] == [
        {"name": "item", "type": "string"},
        {"name": "tags", "type": "string", "multiValueHandling": "ARRAY"},
        {"name": "n", "type": "long"},
        {"name": "price", "type": "double"},
        {"name": "ok", "type": "auto"},
        {"name": "more", "type": "json"},
    ]
    given = {"segmentGranularity": "DAY", "queryGranularity": "HOUR", "rollup": False}
    assert (schema["metricsSpec"], schema["granularitySpec"]) == ([], given)
    less = told(submitted(root, dimensionsSpec={"dimensionExclusions": ["more", "ok", "price"]}))["dimensionsSpec"]
    assert [(d["name"], d["type"]) for d in less["dimensions"]] == [
        ("item", "string"),
        ("tags", "string"),
        ("n", "long"),
    ]
    assert less["dimensionExclusions"] == ["more", "ok", "price"]


def test_metrics_are_combined_as_long_as_no_others_are_given(source: Source, root: User) -> None:
    a_writer(source, TASK, metricsSpec=METRICS, granularitySpec={"rollup": True, "segmentGranularity": "DAY"})
    published(source, {"item": "string", **NAMED})
    schema = told(submitted(root, **BY_HOUR))
    assert schema["metricsSpec"] == [
        {"name": "rows", "fieldName": "rows", "type": "longSum"},
        {"name": "sum", "fieldName": "sum", "type": "doubleSum"},
        {"name": "most", "fieldName": "most", "type": "longMax"},
        {"name": "users", "fieldName": "users", "type": "HLLSketchMerge", "lgK": 14, "tgtHllType": "HLL_4"},
        {"name": "some", "fieldName": "some", "type": "longSum"},
    ]
    assert schema["granularitySpec"]["rollup"] is True
    assert schema["dimensionsSpec"]["dimensions"] == [{"name": "item", "type": "string"}]
    other = {"type": "count", "name": "lines"}
    schema = told(submitted(root, metricsSpec=[other]))
    assert (schema["metricsSpec"], schema["dimensionsSpec"]["dimensionExclusions"]) == ([other], sorted(NAMED))


def test_partitions_alone_have_rows_written_anew(source: Source, root: User) -> None:
    a_writer(source, TASK, metricsSpec=METRICS[:1], granularitySpec={"rollup": True, "segmentGranularity": "DAY"})
    published(source, {"item": "string", "rows": "long"})
    by = {"type": "range", "partitionDimensions": ["item"], "maxRowsPerSegment": 5}
    tuning = {"type": "index_parallel", "forceGuaranteedRollup": True, "partitionsSpec": by}
    task = submitted(root, tuningConfig=tuning)
    assert task.kind == "reindex"
    spec = reindexing.start(task).spec
    assert spec.tuningConfig.dividing is not None and spec.tuningConfig.dividing.dimensions == ["item"]
    schema = spec.dataSchema
    assert ([d.name for d in schema.dimensionsSpec.dimensions], schema.granularitySpec.rollup) == (["item"], True)
    other = submitted(root, tuningConfig={**tuning, "partitionsSpec": {**by, "partitionDimensions": ["rows"]}})
    with pytest.raises(InvalidInput, match="partitionsSpec names 'rows', which is not a dimension"):
        reindexing.start(other)


def test_what_it_has_read_is_replaced_and_its_schema_is_known(source: Source, root: User) -> None:
    """Row 27 of the failure matrix, of rows that are written anew."""
    a_writer(source, TASK)
    published(source, {"item": "string"})
    published(source, {"item": "string"}, at=100, day=1)
    sums = {"granularitySpec": {"segmentGranularity": "MONTH", "rollup": True}, "metricsSpec": METRICS[:1]}
    task = submitted(root, **sums)
    given = reindexing.start(task)
    published(source, {"item": "string"}, at=200, day=2)  # comes too late for it
    what = outcome(given.epoch, file(0, 20, timedelta(days=30)))
    task.refresh_from_db()
    assert batches.publish(task, what.model_copy(update={"read": [s.id for s in given.inputs]})).replaced == 2
    task.refresh_from_db()
    assert (task.status, task.message) == ("SUCCESS", "Published 1 segments; 2 were overwritten.")
    assert in_use(source) == [(0, task.pk, 20), (2, TASK, 10)]
    written = write_specs_of([task.pk])[task.pk]
    assert written.rolls_up(False) and written.data_schema["metricsSpec"] == METRICS[:1]


def test_what_the_segments_do_not_allow_fails_it_with_what_to_give(source: Source, root: User) -> None:
    sums = [{"type": "longLast", "name": "last", "fieldName": "n"}]
    a_writer(source, TASK)
    a_writer(source, "sums", metricsSpec=sums, granularitySpec={"rollup": True})

    def refused(**changes: Any) -> str:
        task = submitted(root, **changes)
        with pytest.raises(InvalidInput) as why:
            reindexing.start(task)
        task.refresh_from_db()
        assert (task.status, task.error) == ("FAILED", why.value.detail)
        return task.error

    assert "there are no segments in 2025-06-01/2025-07-01" in refused(**BY_HOUR)
    published(source, {"item": "string", "last": "long"}, task="sums")
    last = refused(**BY_HOUR)
    assert last.startswith("granularitySpec.rollup: ") and "'last' (longLast)" in last
    published(source, {"item": "long"}, at=100)
    assert "different metrics: give metricsSpec" in refused(**BY_HOUR)
    other = refused(metricsSpec=[])
    assert other.startswith("dimensionsSpec: ") and "'item' has the type" in other
    clash = refused(metricsSpec=[{"type": "count", "name": "item"}])
    assert clash.startswith("dimensionsSpec: list the dimensions: 'item' is a dimension of the segments")
    published(source, {"item": "string"}, at=200, task="nobody knows")
    assert "no longer knows" in refused(metricsSpec=[])


def test_first_and_last_values_are_combined_where_all_segments_keep_their_times(source: Source, root: User) -> None:
    last = {"type": "longLast", "name": "last", "fieldName": "n"}
    a_writer(source, "sums", metricsSpec=[last], granularitySpec={"rollup": True})
    published(source, {"item": "string", "last": "long"}, task="sums", extents=True)
    combined = {"type": "longLast", "name": "last", "fieldName": "last"}
    assert told(submitted(root, **BY_HOUR))["metricsSpec"] == [combined]
    assert told(submitted(root, metricsSpec=[combined], **BY_HOUR))["metricsSpec"] == [combined]

    def refused(task: Task) -> str:
        with pytest.raises(InvalidInput) as why:
            reindexing.start(task)
        task.refresh_from_db()
        assert (task.status, task.error) == ("FAILED", why.value.detail)
        return task.error

    other = refused(submitted(root, metricsSpec=[{**combined, "type": "longFirst"}], **BY_HOUR))
    assert other.startswith("metricsSpec: 'last' (longFirst) reads 'last' (longLast)")
    published(source, {"item": "string", "last": "long"}, at=100, task="sums")
    older = refused(submitted(root, metricsSpec=[combined], **BY_HOUR))
    assert older.startswith("granularitySpec.rollup: ") and "by an earlier version" in older
    kept = {**BY_HOUR["granularitySpec"], "rollup": False}
    assert told(submitted(root, granularitySpec=kept))["metricsSpec"] == [combined]
    asked = {"type": "druid", "dataSource": "flights", "interval": "2025-06-01/2025-07-01"}
    schema = {
        "dataSource": "flights",
        "timestampSpec": {"column": "__time", "format": "millis"},
        "dimensionsSpec": {"dimensions": ["item"]},
        "metricsSpec": [combined],
    }
    reading = {"type": "index_parallel", "inputSource": asked}
    document = {"type": "index_parallel", "spec": {"dataSchema": schema, "ioConfig": reading}}
    assert refused(services.submit_task(user=root, document=document)) == older
    rows = {**schema, "metricsSpec": [{"type": "longSum", "name": "n", "fieldName": "last"}]}
    document = {"type": "index_parallel", "spec": {"dataSchema": rows, "ioConfig": reading}}
    assert len(reindexing.start(services.submit_task(user=root, document=document)).inputs) == 2


def test_what_can_not_mean_what_it_means_in_druid_is_refused(source: Source, root: User) -> None:
    published(source, {"item": "string"})
    only = {"filter": {"type": "selector", "dimension": "item", "value": "a"}}
    odd = {"filter": {"type": "expression", "expression": "item == "}}
    drops = {"ioConfig": {**compact()["ioConfig"], "dropExisting": True}}
    for changes, where, why in (
        ({"granularitySpec": {"segmentGranularity": "YEAR"}}, "", "Choose whole intervals"),
        ({"segmentGranularity": "WEEK"}, "", "Choose whole intervals"),
        ({"granularitySpec": {"segmentGranularity": "ALL"}}, "granularitySpec.segmentGranularity", "ALL"),
        ({"granularitySpec": {"intervals": ["2025/P1Y"]}}, "granularitySpec.intervals", "unknown field"),
        ({"segmentGranularity": "DAY", "granularitySpec": {"segmentGranularity": "MONTH"}}, "", "differ"),
        ({"dimensions": {}, "dimensionsSpec": {}}, "", "older form"),
        ({"transformSpec": only}, "", "dropExisting true"),
        ({"transformSpec": {"transforms": []}}, "transformSpec.transforms", "unknown field"),
        ({"transformSpec": odd, **drops}, "transformSpec.filter.expression", ""),
        ({"metricsSpec": [{"type": "sum", "name": "n"}]}, "metricsSpec[0].type", "must be one of"),
        ({"metricsSpec": METRICS[:1], "dimensionsSpec": {"dimensions": ["rows"]}}, "", "named twice"),
        ({"ioConfig": None, "interval": "2025-06-01/PT5H", **BY_HOUR}, None, ""),
    ):
        with pytest.raises(InvalidInput) as refused:
            submitted(root, **changes)
        faults = [(e.path, e.message) for e in refused.value.errors]
        if where is None:
            assert "reaches beyond the interval 2025-06-01/PT5H" in refused.value.detail
        else:
            assert any(path == where and why in message for path, message in faults), faults
    assert not Task.objects.exists()
    submitted(root, transformSpec=only, **drops)


def test_druids_addresses_call_it_compact(cast: Cast, clients: dict[str, Client]) -> None:
    document = compact(dataSource=cast.datasource.name, id="of-druid", context={"priority": 5}, **BY_HOUR)
    assert statuses(clients, document) == {"owner": 200, "operator": 409, "viewer": 403, "outsider": 404}
    client, path = clients["viewer"], "/druid/indexer/v1/task/of-druid"
    [row] = [t for t in client.get("/druid/indexer/v1/tasks?type=compact").json() if t["id"] == "of-druid"]
    assert (row["type"], row["statusCode"]) == ("compact", "RUNNING")
    assert client.get(path).json()["payload"] == {**document, "groupId": "of-druid"}
    report = client.get(f"{path}/reports").json()
    assert report["headgate"]["payload"]["optionsWithoutEffect"] == ["context: Headgate does not read it"]
    assert client.get("/api/v1/tasks/?kind=reindex").json()["results"][0]["id"] == "of-druid"
    assert clients["viewer"].post(f"{path}/shutdown").status_code == 403
    assert clients["operator"].post(f"{path}/shutdown").json() == {"task": "of-druid"}
    assert client.get(f"{path}/status").json()["status"]["status"] == "FAILED"
    MaskedColumn.objects.create(datasource=cast.datasource, column="item", role="admin")
    assert statuses(clients, {**document, "id": "copies"})["operator"] == 403
