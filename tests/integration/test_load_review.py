"""The wizard's review: each step as a form beside the JSON, which is one document; and steps that know less
of the records than usual: a column that none shows, servers that can't be asked any more, a spec that can't be tried.
"""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.loading import samples
from frontend.load.steps import STEPS
from frontend.templatetags.load_data import step_label
from ingestion.specs.messages.sampling import Arrived, KeptRecord, SampleAnswer
from tests.support.django_cast import Cast, browsing_as
from tests.support.drafts import NOON_MS, PAYLOADS, SERVERS, begin, document, flights, with_records
from tests.support.html import parsed


@pytest.fixture
def pages(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def test_a_column_that_these_records_lack_stays(pages: Client, owner: Client) -> None:
    written = document(inputFormat={"type": "json"})
    rare = {"type": "long", "name": "rare"}
    written["spec"]["dataSchema"]["dimensionsSpec"] = {"dimensions": [{"type": "string", "name": "id"}, rare]}
    draft = with_records(begin(owner, {"document": written}))
    page = parsed(pages.get(f"/load/{draft.pk}/schema/"))
    ticked = [box.attributes["value"] for box in page.all("input", name="column") if "checked" in box.attributes]
    assert sorted(ticked) == ["id", "rare"]
    chosen = [o for o in page.one("select", name="type:rare").all("option") if "selected" in o.attributes]
    assert [option.attributes["value"] for option in chosen] == ["long"]


def test_the_review_has_each_step_as_a_form_beside_the_json(pages: Client, owner: Client) -> None:
    draft = with_records(begin(owner, {"document": document(inputFormat={"type": "json"})}))
    place = f"/load/{draft.pk}/review/"
    page = parsed(pages.get(place))
    parts = {part.attributes["data-part"]: part for part in page.all("section", class_="review-part")}
    assert list(parts) == ["connection", "topic", "parse", "time", "transform", "schema", "reading"]
    assert parts["topic"].one("p").text == "orders"
    assert parts["parse"].one("p").text == "json"
    names = {e.attributes["name"] for e in parts["reading"].all("input") + parts["reading"].all("select")}
    assert names == {f"reading-{name}" for name in ("source", "group", "earliest", "start", "indexers")}
    ids = [e.attributes["id"] for e in page.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    reading = {"reading-source": "offset_range", "reading-earliest": "1", "reading-indexers": "3", "go": "stay"}
    assert pages.post(place, reading)["Location"] == place
    assert '"taskCount": 3' in parsed(pages.get(place)).one("textarea", name="document").raw_text


def test_the_newest_records_are_shown_with_key_headers_and_time(pages: Client, owner: Client) -> None:
    draft = begin(owner)
    headers = [("trace", b"4711"), ("empty", b""), ("none", None)]
    one = KeptRecord.model_construct(
        partition=3, offset=41, timestamp_ms=NOON_MS, key=b"o-1", headers=headers, payload=b"{}"
    )
    samples.store_sample(draft, SampleAnswer.model_construct(kept=[one]))
    shown = parsed(pages.get(f"/load/{draft.pk}/topic/")).one("td", class_="preview-record").text
    assert shown == (
        "partition 3, offset 41, 2026-01-31 12:00:00 UTC, key o-1 headers trace 4711, empty empty, none null {}"
    )


def test_without_records_the_review_changes_nothing_that_comes_from_them(pages: Client, owner: Client) -> None:
    page = parsed(pages.get(f"/load/{begin(owner).pk}/review/"))
    parts = {
        part.attributes["data-part"]: len(part.all("details")) for part in page.all("section", class_="review-part")
    }
    assert parts == {"connection": 1, "topic": 1, "parse": 0, "time": 1, "transform": 1, "schema": 0, "reading": 1}


@pytest.mark.parametrize(
    ("arrived", "told"),
    [
        (Arrived(records=336_776, window_s=3600), "336,776 records in the last hour, 94/s"),
        (Arrived(records=1, window_s=60), "1 record in the last minute, 0.017/s"),
        (None, "no records in the last day"),
    ],
)
def test_the_review_says_how_many_came_within_which_time(
    pages: Client, owner: Client, arrived: Arrived | None, told: str
) -> None:
    draft = begin(owner, {"document": document(inputFormat={"type": "json"})})
    one = KeptRecord.model_construct(partition=0, offset=0, timestamp_ms=NOON_MS, payload=b"{}")
    samples.store_sample(draft, SampleAnswer.model_construct(kept=[one], arrived=arrived))
    page = parsed(pages.get(f"/load/{draft.pk}/review/"))
    assert [dl.all("dd")[0].text for dl in page.all("dl") if "Input rate" in dl.text] == [told]


def test_a_fault_on_a_step_leads_to_the_editor_of_the_review(pages: Client, owner: Client) -> None:
    written = document(inputFormat={"type": "json"})
    written["spec"]["dataSchema"]["metricsSpec"] = [{"type": "longSumm", "name": "s", "fieldName": "a"}]
    draft = with_records(begin(owner, {"document": written}))
    review = f"/load/{draft.pk}/review/"
    told = parsed(pages.get(f"/load/{draft.pk}/transform/")).one(id="preview-problem")
    path = "spec.dataSchema.metricsSpec[0].type"
    assert [(a.text, a.attributes["href"]) for a in told.all("a")] == [(path, f"{review}#json-title")]
    assert f"{path} (step Columns): " in told.text
    page = parsed(pages.get(review))
    assert page.one(id="json-title").tag == "h2"
    [link] = page.one(id="look-problem").all("a")
    assert (link.text, link.attributes["href"]) == (path, "#id_document")
    assert page.one(id="id_document").attributes["name"] == "document"


@pytest.mark.parametrize(
    ("pointer", "step"),
    [
        ("/spec/ioConfig/consumerProperties/bootstrap.servers", "Connection"),
        ("/spec/ioConfig/topic", "Topic"),
        ("/spec/ioConfig/inputFormat", "Parse"),
        ("/spec/dataSchema/timestampSpec/format", "Time"),
        ("/spec/dataSchema/granularitySpec/segmentGranularity", "Time"),
        ("/spec/dataSchema/granularitySpec/queryGranularity", "Columns"),
        ("/spec/dataSchema/transformSpec/filter", "Filter, transform"),
        ("/spec/ioConfig/taskCount", "Reading"),
        ("/spec/dataSchema/dataSource", "Review"),
        ("/spec/tuningConfig", ""),
        ("", ""),
    ],
)
def test_which_step_a_fault_belongs_to(pointer: str, step: str) -> None:
    assert step_label(STEPS, pointer) == step


SUBMITS = {"supervisor", "task"}
OPERATORS = [
    ("orders", False, set(), "Admins of team alpha may submit it"),
    ("flights", False, {"task"}, "Admins of team alpha may submit a supervisor"),
    ("flights", True, set(), "Admins of team alpha may submit it"),
]


@pytest.mark.parametrize(("datasource", "deleted", "offered", "told"), OPERATORS)
def test_an_operator_is_offered_what_the_services_let_an_operator_do(
    cast: Cast, owner: Client, datasource: str, deleted: bool, offered: set[str], told: str
) -> None:
    if deleted:
        Datasource.objects.filter(name=datasource).update(deleted_at=timezone.now())
    written = document(inputFormat={"type": "json"})
    written["spec"]["dataSchema"] = {"dataSource": datasource, "timestampSpec": {"column": "placed_at"}}
    draft = with_records(begin(owner, {"document": written}))
    operator = browsing_as(cast, "operator")
    place = f"/load/{draft.pk}/review/"
    page = parsed(operator.get(place))
    assert {b.attributes["value"] for b in page.all("button", name="go")} & SUBMITS == offered
    assert told in page.one("p", data_needs="admin").text
    for go in sorted(SUBMITS):  # what is submitted as a task is a draft no more
        refused = operator.post(place, {"document": json.dumps(written), "go": go}).status_code == 403
        assert refused == (go not in offered), go


def test_an_admin_is_offered_both_and_an_operator_no_change(cast: Cast, pages: Client, owner: Client) -> None:
    page = parsed(pages.get(f"/load/{with_records(begin(owner)).pk}/review/"))
    assert {b.attributes["value"] for b in page.all("button", name="go")} >= SUBMITS
    assert not page.all("p", data_needs="admin")
    page = parsed(browsing_as(cast, "operator").get(f"/load/{flights(owner).pk}/review/"))
    assert not {b.attributes["value"] for b in page.all("button", name="go")} & SUBMITS
    assert "Admins of team alpha may submit the change" in page.one("p", data_needs="admin").text


def test_records_that_are_kept_are_shown_though_a_secret_is_gone(pages: Client, owner: Client) -> None:
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
    draft = with_records(begin(owner, {"document": document(consumerProperties={**SERVERS, **login})}))
    answer = pages.get(f"/load/{draft.pk}/topic/")
    assert answer.status_code == 200
    assert answer.content.decode().count("<tr data-outcome=") == len(PAYLOADS)
    assert "on average" not in answer.content.decode()


@pytest.mark.parametrize("step", ["connection", "topic", "parse", "time", "transform", "schema", "reading", "review"])
def test_a_step_that_can_show_nothing_of_the_records_says_why(pages: Client, owner: Client, step: str) -> None:
    written = document(inputFormat={"type": "json"})
    written["spec"]["dataSchema"] |= {
        "dimensionsSpec": {"dimensions": ["city"]},
        "metricsSpec": [{"type": "foo", "name": "y"}],
    }
    draft = with_records(begin(owner, {"document": written}))
    told = pages.get(f"/load/{draft.pk}/{step}/")
    assert told.status_code == 200
    assert ("metricsSpec[0].type" in told.content.decode()) is (step not in ("connection", "topic", "reading"))
    if step == "schema":
        [row] = [row for row in parsed(told).all("tr") if "data-absent" in row.attributes]
        assert row.text.startswith("city")
