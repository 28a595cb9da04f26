"""The wizard: drafts over REST and as pages, tried on records that are kept; once with a real topic."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from controlplane.connections.secrets import unseal
from controlplane.datasources.models import Datasource
from controlplane.loading import samples
from controlplane.loading.models import Draft
from controlplane.loading.services import KEPT_FOR, MOST_DRAFTS, drop_old_drafts
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from ingestion.specs.sampling import Arrived, KeptRecord, SampleAnswer
from tests.support.asked_here import check_specs_here
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.records import numbered

DRAFTS = "/api/v1/load/drafts/"
NOON_MS = 1_769_860_800_000  # 2026-01-31T12:00:00Z
CANARY = "canary-8d2e"
SERVERS = {"bootstrap.servers": "kafka-broker:9092"}
ORDERS = [
    {"placed_at": "2026-01-31T12:00:00Z", "id": f"o-{i}", "amount": i, "from": {"city": "Bonn"}} for i in range(8)
]
# A mistake, a record without a value.
PAYLOADS = [*(json.dumps(order).encode() for order in ORDERS), b'{"id": "no time"}', b"{half", None]


@pytest.fixture
def owner(clients: dict[str, Client]) -> Client:
    return clients["owner"]


@pytest.fixture(autouse=True)
def checked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    check_specs_here(monkeypatch)


def document(**io_config: Any) -> dict[str, Any]:
    return {
        "type": "kafka",
        "spec": {
            "dataSchema": {"dataSource": "orders"},
            "ioConfig": {"topic": "orders", "consumerProperties": SERVERS, **io_config},
        },
    }


def begin(client: Client, body: Any = None) -> Draft:
    answer = client.post(DRAFTS, {"document": document()} if body is None else body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    return Draft.objects.get(pk=answer.json()["id"])


def with_records(draft: Draft, payloads: list[bytes | None] = PAYLOADS) -> Draft:
    """Kept for it without a Kafka, a second apart."""
    records = [
        KeptRecord.model_construct(partition=0, offset=i, timestamp_ms=NOON_MS + 1000 * i, payload=p)
        for i, p in enumerate(payloads)
    ]
    samples.keep(draft, SampleAnswer.model_construct(kept=records, arrived=Arrived(records=60, window_s=60)))
    return draft


def address(draft: Draft, part: str = "") -> str:
    return f"{DRAFTS}{draft.pk}/{part}"


def get(client: Client, draft: Draft, part: str) -> Any:
    answer = client.get(address(draft, part))
    assert answer.status_code == 200, answer.content
    return answer.json()


def change(client: Client, draft: Draft, written: Any) -> Any:
    return client.put(address(draft), {"document": written}, content_type="application/json")


# Drafts


def test_secrets_are_sealed_and_kept_while_the_connection_is(owner: Client) -> None:
    login = {**SERVERS, "security.protocol": "SASL_SSL", "sasl.username": "u"}
    draft = begin(owner, {"document": document(consumerProperties={**login, "sasl.password": CANARY})})
    answer = owner.get(address(draft))
    assert CANARY.encode() not in answer.content
    assert answer.json()["secrets"] == ["sasl.password"]
    assert CANARY not in json.dumps(draft.document) + draft.secrets
    assert change(owner, draft, document(consumerProperties=login, topic="other")).json()["secrets"] == [
        "sasl.password"
    ]
    elsewhere = {**login, "bootstrap.servers": "elsewhere:9092"}
    assert change(owner, draft, document(consumerProperties=elsewhere)).json()["secrets"] == []


def test_another_topic_forgets_the_records_and_another_column_does_not(owner: Client) -> None:
    draft = with_records(begin(owner))
    timed = document()
    timed["spec"]["dataSchema"]["timestampSpec"] = {"column": "placed_at"}
    assert change(owner, draft, timed).status_code == 200
    assert samples.kept(draft) is not None
    assert change(owner, draft, document(topic="others")).status_code == 200
    assert samples.kept(draft) is None


def test_records_are_kept_sealed(owner: Client) -> None:
    draft = with_records(begin(owner), [CANARY.encode()])
    stored = cache.get(f"load-records:{draft.pk}")
    assert CANARY not in stored
    assert unseal(stored)
    kept = samples.kept(draft)
    assert kept is not None
    assert [r.payload for r in kept.records] == [CANARY.encode()]


def test_a_team_shares_a_draft_and_nobody_else_sees_it(cast: Cast, clients: dict[str, Client]) -> None:
    draft = begin(clients["owner"])
    assert {role: client.get(address(draft)).status_code for role, client in clients.items()} == {
        "owner": 200,
        "operator": 200,
        "viewer": 403,
        "outsider": 404,
        "anonymous": 401,
        "superuser": 200,
    }
    assert clients["operator"].delete(address(draft)).status_code == 403  # it is another's
    assert clients["operator"].get(DRAFTS).json()["results"] == []
    assert clients["owner"].delete(address(draft)).status_code == 204
    assert clients["owner"].get(address(draft)).status_code == 404


def test_there_is_an_end_to_drafts(cast: Cast, owner: Client) -> None:
    team, user = cast.alpha, cast.users["owner"]
    Draft.objects.bulk_create(Draft(owner=user, team=team) for _ in range(MOST_DRAFTS))
    assert owner.post(DRAFTS, {}, content_type="application/json").status_code == 409
    Draft.objects.update(updated_at=timezone.now() - KEPT_FOR - timedelta(hours=1))
    fresh = Draft.objects.create(owner=user, team=team)
    assert drop_old_drafts() == MOST_DRAFTS
    assert Draft.objects.get() == fresh


@pytest.mark.parametrize("written", [7, [], {"spec": 1}, {"spec": {"ioConfig": {"inputFormat": "json"}}}])
def test_what_is_no_spec_changes_nothing(owner: Client, written: Any) -> None:
    draft = begin(owner)
    assert change(owner, draft, written).status_code == 400
    draft.refresh_from_db()
    assert draft.document == document()


# What the steps tell


def test_steps_without_a_topic_say_what_is_missing(owner: Client) -> None:
    draft = begin(owner, {})
    for part in ("formats/", "times/", "rows/", "outlook/"):
        answer = owner.get(address(draft, part))
        assert (answer.status_code, answer.json()["detail"]) == (400, "Choose a topic first.")


def test_formats_times_rows_and_the_outlook(owner: Client) -> None:
    draft = with_records(begin(owner))
    [found] = get(owner, draft, "formats/")["formats"]
    assert (found["input_format"], found["share"]) == ({"type": "json"}, 0.9)
    written = document(inputFormat=found["input_format"], taskCount=2)
    change(owner, draft, written)
    [time] = get(owner, draft, "times/")["times"]
    assert (time["column"], time["format"], round(time["share"], 2)) == ("placed_at", "iso", 0.73)
    written["spec"]["dataSchema"]["timestampSpec"] = {"column": time["column"], "format": time["format"]}
    written["spec"]["dataSchema"]["granularitySpec"] = {"segmentGranularity": "HOUR", "rollup": False}
    change(owner, draft, written)
    rows = get(owner, draft, "rows/")
    assert rows["outcomes"] == {"stored": 8, "unparseable": 2, "tombstone": 1}
    assert rows["records"][0]["row"]["__time"] == "2026-01-31T12:00:00.000Z"
    assert [p["null_share"] for p in rows["profiles"] if p["name"] == "id"] == [0.0]
    assert [n["nodes"] for n in rows["nested"]] == [["from", "city"]]
    outlook = get(owner, draft, "outlook/")
    assert (outlook["arrived"], outlook["records_per_s"]) == ({"records": 60, "window_s": 60}, 1.0)
    assert (outlook["rows_per_minute"], outlook["segments"], outlook["task_count"]) == (round(60 * 8 / 11), 2, 2)
    assert outlook["bytes_per_minute"] > 0


def test_an_empty_topic(owner: Client) -> None:
    draft = begin(owner, {"document": document(inputFormat={"type": "json"})})
    samples.keep(draft, SampleAnswer())
    assert get(owner, draft, "formats/") == {"formats": []}
    assert get(owner, draft, "times/") == {"times": []}
    assert get(owner, draft, "rows/")["records"] == []
    outlook = get(owner, draft, "outlook/")
    assert (outlook["arrived"], outlook["records_per_s"], outlook["rows_per_minute"]) == (None, None, None)


def test_a_fault_of_the_spec_is_told_at_its_place(owner: Client) -> None:
    draft = with_records(begin(owner, {"document": document(inputFormat={"type": "csv"})}))
    answer = owner.get(address(draft, "rows/"))
    assert answer.status_code == 400
    assert [e["pointer"] for e in answer.json()["errors"]] == ["/spec/ioConfig/inputFormat"]


# The change of a supervisor


def flights(client: Client) -> Draft:
    record = b'{"__time": "2026-01-31T12:00:00Z", "n": 1}'
    return with_records(
        begin(client, {"supervisor": "flights"}), [record, b'{"__time": "2026-01-31T12:00:00Z", "n": 9}']
    )


def test_the_dry_run_of_a_change(owner: Client) -> None:
    draft = flights(owner)
    assert get(owner, draft, "dry-run/")["changed"] == []
    written = draft.document
    written["spec"]["dataSchema"]["transformSpec"] = {"filter": {"type": "expression", "expression": "n > 5"}}
    assert change(owner, draft, written).status_code == 200
    told = get(owner, draft, "dry-run/")
    assert (told["records"], told["rows_before"], told["rows_after"]) == (2, 2, 1)
    [changed] = told["changed"]
    assert (changed["offset"], changed["kind"], changed["outcome_after"]) == (0, "dropped", "filtered")


def test_a_change_is_submitted_unless_somebody_was_faster(owner: Client) -> None:
    mine, late = flights(owner), flights(owner)
    answer = owner.post(address(mine, "submit/"), {}, content_type="application/json")
    assert (answer.status_code, answer.json()) == (201, {"kind": "supervisor", "id": "flights"})
    assert Supervisor.objects.get(pk="flights").version == 2
    answer = owner.post(address(late, "submit/"), {}, content_type="application/json")
    assert answer.status_code == 409
    assert Supervisor.objects.get(pk="flights").version == 2
    assert list(Draft.objects.all()) == [late]


# Pages


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


# With Kafka


def test_a_topic_s_newest_records(owner: Client, broker: Broker) -> None:
    topic = broker.topic("loaded")
    broker.produce(topic, numbered(0, 700))
    spec = broker.kafka_spec(topic)
    draft = begin(owner, {"document": {"type": "kafka", "spec": {"dataSchema": {}, "ioConfig": spec["ioConfig"]}}})
    told = owner.post(address(draft, "records/"), {}, content_type="application/json")
    assert told.json()["records"] == 500
    assert get(owner, draft, "formats/")["formats"][0]["input_format"] == {"type": "json"}
    assert get(owner, draft, "times/")["times"][0]["column"]
    assert get(owner, draft, "rows/")["outcomes"] == {"stored": 500}
    outlook = get(owner, draft, "outlook/")
    assert (outlook["arrived"], outlook["records_per_s"]) == ({"records": 700, "window_s": 60}, 700 / 60)
    assert not Datasource.objects.filter(name=topic).exists()
