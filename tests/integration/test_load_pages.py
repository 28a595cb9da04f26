"""The wizard's pages lead through its steps to a supervisor or a task, and tell each mistake on its step."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.test import Client

from controlplane.loading.models import Draft
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from tests.support.django_cast import Cast, browsing_as
from tests.support.drafts import begin, change, document, flights, with_records
from tests.support.html import parsed

pytestmark = pytest.mark.usefixtures("checked_here")


@pytest.fixture
def pages(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def test_the_review_tells_what_a_change_does_in_words_and_times(owner: Client, pages: Client) -> None:
    draft = flights(owner)
    written = draft.document
    written["spec"]["dataSchema"]["timestampSpec"] = {"column": "__time", "format": "yyyy/MM/dd"}
    assert change(owner, draft, written).status_code == 200
    told = parsed(pages.get(f"/load/{draft.pk}/review/")).one("section", data_dry_run="").text
    assert "2 fail 2 rows before, 0 after." in told
    assert "__time: 2026-01-31T12:00:00Z → null" in told


def test_the_pages_lead_from_a_topic_to_a_supervisor(pages: Client) -> None:
    answer = pages.post("/load/", {"topic": "orders", "servers": "kafka-broker:9092"})
    draft = Draft.objects.get()
    assert answer["Location"] == f"/load/{draft.pk}/topic/"

    def send(step: str, **values: Any) -> str:
        told = pages.post(f"/load/{draft.pk}/{step}/", values)
        assert told.status_code == 302, told.content
        return str(told["Location"]).rstrip("/").rpartition("/")[2]

    assert send("topic", topic="orders") == "parse"
    with_records(draft)
    page = pages.get(f"/load/{draft.pk}/parse/").content.decode()
    assert "9 of 10 are JSON objects" in page
    assert send("parse", guess='{"input_format": {"type": "json"}}') == "parse"
    flatten = json.dumps({"type": "tree", "name": "from_city", "nodes": ["from", "city"]})
    assert send("parse", form="json", flatten=flatten) == "time"
    assert "placed_at" in pages.get(f"/load/{draft.pk}/time/").content.decode()
    assert send("time", guess='{"column": "placed_at", "format": "iso", "nodes": []}') == "time"
    assert send("time", column="placed_at", form="iso", segments="DAY") == "transform"
    assert send("transform", language="druid", condition="amount > 2", transforms="twice = amount * 2") == "schema"
    assert send("schema", discover="on", cut="MINUTE", rollup="on", metrics="count rows") == "reading"
    reading = {"source": "share_group", "group": "orders-group", "earliest": "1", "indexers": "2"}
    assert send("reading", **reading) == "review"
    assert b"orders-group" in pages.get(f"/load/{draft.pk}/review/").content
    assert send("review", datasource="my-orders", go="stay") == "review"
    draft.refresh_from_db()
    told = pages.post(f"/load/{draft.pk}/review/", {"document": json.dumps(draft.document), "go": "supervisor"})
    assert told["Location"] == "/supervisors/my-orders/", told.content
    made = Supervisor.objects.get(pk="my-orders").current.spec["spec"]
    assert made["dataSchema"]["timestampSpec"]["column"] == "placed_at"
    assert made["dataSchema"]["granularitySpec"] == {
        "type": "uniform",
        "segmentGranularity": "DAY",
        "queryGranularity": "MINUTE",
        "rollup": True,
    }
    assert made["ioConfig"]["inputFormat"]["flattenSpec"]["fields"][0]["nodes"] == ["from", "city"]
    assert (made["ioConfig"]["groupId"], made["ioConfig"]["taskCount"]) == ("orders-group", 2)
    assert not Draft.objects.exists()


def test_a_draft_begins_at_a_time_or_at_an_end_of_the_topic(pages: Client, owner: Client) -> None:
    draft = with_records(begin(owner))
    starts = []
    for values in ({"earliest": "p", "start": "PT30M"}, {"earliest": "0", "start": "PT30M"}):
        reading = {"source": "offset_range", "indexers": "1", **values}
        assert pages.post(f"/load/{draft.pk}/reading/", reading).status_code == 302
        draft.refresh_from_db()
        io_config = draft.document["spec"]["ioConfig"]
        starts.append((io_config.get("startPosition"), io_config.get("useEarliestOffset")))
        page = parsed(pages.get(f"/load/{draft.pk}/reading/"))
        [chosen] = [o for o in page.one("select", name="earliest").all("option") if "selected" in o.attributes]
        assert chosen.attributes["value"] == values["earliest"]
    assert starts == [("PT30M", None), (None, False)]


MISTAKES = [
    ("connection", {"servers": "", "properties": ""}),
    ("connection", {"connection": "nobody-knows-it"}),
    ("connection", {"servers": "kafka:9092", "properties": "{"}),
    ("connection", {"servers": "kafka:9092", "properties": '{"bootstrap.servers": "other:9092"}'}),
    ("topic", {"topic": ""}),
    ("parse", {"form": "csv"}),
    ("parse", {"form": "avro_stream"}),
    ("parse", {"guess": "nonsense"}),
    ("parse", {"guess": '{"input_format": {"type": "a\\u0000b"}}'}),
    ("parse", {"form": "json", "flatten": "{bad"}),
    ("parse", {"form": "json", "flatten": '{"type": "tree", "name": "a\\u0000b", "nodes": ["a"]}'}),
    ("parse", {"form": "json", "flatten": "[" * 100_000}),
    ("time", {"column": "", "form": "iso", "segments": "DAY"}),
    ("transform", {"language": "druid", "transforms": "no expression"}),
    ("schema", {"cut": "NONE"}),
    ("schema", {"discover": "on", "cut": "NONE", "metrics": "longSum"}),
    ("reading", {"source": "share_group", "group": "", "earliest": "1", "indexers": "1"}),
    ("reading", {"source": "offset_range", "earliest": "1", "indexers": "0"}),
    ("reading", {"source": "offset_range", "earliest": "p", "start": "", "indexers": "1"}),
    ("reading", {"source": "offset_range", "earliest": "p", "start": "2026-11-27T09:00:00", "indexers": "1"}),
    ("review", {"document": "{", "go": "stay"}),
    ("review", {"datasource": "", "go": "stay"}),
]


@pytest.mark.parametrize(("step", "values"), MISTAKES)
def test_a_mistake_is_told_on_its_step_and_changes_nothing(
    pages: Client, owner: Client, step: str, values: Any
) -> None:
    draft = with_records(begin(owner))
    answer = pages.post(f"/load/{draft.pk}/{step}/", values)
    assert answer.status_code == 400
    draft.refresh_from_db()
    assert draft.document == document()


def test_what_a_step_does_not_know_stays(pages: Client, owner: Client) -> None:
    """All steps, one after the other, each sent as it is shown."""
    written = document(
        inputFormat={"type": "thrift", "thriftClass": "A", "thriftIdl": "struct A {1: i32 a}"},
        lateMessageRejectionPeriod="PT1H",
        autoScalerConfig={"enableTaskAutoScaler": False},
    )
    schema = written["spec"]["dataSchema"]
    schema["transformSpec"] = {"filter": {"type": "selector", "dimension": "a", "value": "1"}}
    schema["metricsSpec"] = [{"type": "longSum", "name": "s", "fieldName": "a", "expression": None}]
    schema["dimensionsSpec"] = {"useSchemaDiscovery": True, "dimensions": [], "dimensionExclusions": ["x"]}
    written["context"] = {"mine": 1}
    draft = with_records(begin(owner, {"document": written}), [])
    pages.post(f"/load/{draft.pk}/parse/", {"form": "as_written"})
    pages.post(f"/load/{draft.pk}/transform/", {"language": "druid"})
    pages.post(f"/load/{draft.pk}/schema/", {"discover": "on", "cut": "NONE"})
    draft.refresh_from_db()
    schema["granularitySpec"] = {"rollup": False, "queryGranularity": "NONE"}
    assert draft.document == written


def test_a_cast_stays_while_the_column_is_of_type_auto(pages: Client, owner: Client) -> None:
    column = {"type": "auto", "name": "a", "castToType": "LONG"}
    written = document()
    written["spec"]["dataSchema"]["dimensionsSpec"] = {"dimensions": [column]}
    draft = with_records(begin(owner, {"document": written}), [])
    for kind, kept in (("auto", column), ("string", {"type": "string", "name": "a"})):
        pages.post(f"/load/{draft.pk}/schema/", {"column": "a", "type:a": kind, "cut": "NONE"})
        draft.refresh_from_db()
        assert draft.document["spec"]["dataSchema"]["dimensionsSpec"]["dimensions"] == [kept]


def test_with_scripts_a_step_answers_with_its_result_alone(pages: Client, owner: Client) -> None:
    draft = with_records(begin(owner, {"document": document(inputFormat={"type": "json"})}))
    values = {"column": "placed_at", "form": "iso", "segments": "DAY"}
    answer = pages.post(f"/load/{draft.pk}/time/", values, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert b"<html" not in answer.content
    assert b"2026-01-31" in answer.content
    refused = pages.post(f"/load/{draft.pk}/time/", {**values, "column": ""}, headers={"HX-Request": "true"})
    assert (refused.status_code, b"required" in refused.content) == (200, True)


def test_a_review_as_a_task_and_a_step_that_there_is_not(pages: Client, owner: Client) -> None:
    written = document(inputFormat={"type": "json"})
    written["spec"]["dataSchema"]["timestampSpec"] = {"column": "placed_at"}
    draft = with_records(begin(owner, {"document": written}))
    assert pages.get(f"/load/{draft.pk}/nonsense/").status_code == 404
    assert pages.get(f"/load/{uuid.uuid4()}/topic/").status_code == 404
    told = pages.post(f"/load/{draft.pk}/review/", {"document": json.dumps(written), "go": "task"})
    task = Task.objects.get(datasource__name="orders")
    assert told["Location"] == f"/tasks/{task.pk}/"


def test_the_list_of_drafts_and_throwing_one_away(pages: Client, cast: Cast, owner: Client) -> None:
    draft = begin(owner)
    assert str(draft.pk) in pages.get("/load/").content.decode()
    assert str(draft.pk) not in browsing_as(cast, "operator").get("/load/").content.decode()
    assert pages.post(f"/load/{draft.pk}/delete/")["Location"] == "/load/"
    assert not Draft.objects.exists()
