"""Preview on the forms that take a spec: a record beside its row, as text, and nothing submitted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from controlplane.datasources.models import Datasource
from controlplane.tasks.models import Task
from tests.support.broker import Broker
from tests.support.django_cast import SEED, Cast, browsing_as, spec_for
from tests.support.html import Element, parsed

FORMS = ("/tasks/-/new/", "/supervisors/-/new/")
ATTACK = "<script>alert(1)</script>"


@pytest.fixture
def owner(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def preview(client: Client, spec: Any, *lines: str, form: str = FORMS[0], htmx: bool = False, **more: Any) -> Any:
    text = spec if isinstance(spec, str) else json.dumps(spec)
    asked = {"document": text, "preview": "1", "records": "pasted", "rows": "20", "pasted": "\n".join(lines), **more}
    return client.post(form, asked, headers={"HX-Request": "true"} if htmx else {})


def table(page: Element) -> list[list[str]]:
    rows = page.one(id="preview").all("table")[0].one("tbody").all("tr")
    return [[cell.text for cell in row.children if isinstance(cell, Element)] for row in rows]


def headers(page: Element) -> list[str]:
    return [th.text for th in page.one(id="preview").all("table")[0].one("thead").all("th")]


@pytest.mark.parametrize("form", FORMS)
def test_each_record_stands_beside_its_row_and_nothing_is_made(owner: Client, form: str) -> None:
    before = Task.objects.count(), Datasource.objects.count()
    lines = ('{"__time": "2025-06-01T12:00:00Z", "a": 1, "b": [1]}', "no", '{"__time": 0, "a": null}')
    answer = preview(owner, SEED, *lines, form=form)
    assert answer.status_code == 200
    page = parsed(answer)
    assert headers(page) == ["Number", "Record", "Outcome", "__time timestamp", "a long", "b json"]
    assert table(page) == [
        ["1", lines[0], "stored", "2025-06-01T12:00:00Z", "1", "[1]"],
        ["2", "no", "unparseable not JSON: invalid literal at byte 0", "no row"],
        ["3", lines[2], "stored", "1970-01-01T00:00:00Z", "", ""],
    ]
    assert "stored 2" in page.one(id="preview").text
    assert json.loads(page.one("textarea", id="id_document").raw_text) == SEED
    assert page.one("textarea", id="id_pasted").raw_text.strip() == "\n".join(lines)
    assert (Task.objects.count(), Datasource.objects.count()) == before


def test_with_htmx_only_the_part_comes(owner: Client) -> None:
    answer = preview(owner, SEED, '{"__time": 0}', htmx=True)
    page = parsed(answer)
    assert page.all("html") == page.all("form") == []
    assert page.one("h2", id="preview-title").text == "Preview: 1 record"


def test_fields_that_go_nowhere_are_named_and_rollup_is_shown(owner: Client) -> None:
    spec = spec_for("flights")
    spec["dataSchema"] |= {
        "dimensionsSpec": {"dimensions": ["d"]},
        "metricsSpec": [{"type": "longSum", "name": "n", "fieldName": "v"}],
        "granularitySpec": {"rollup": True},
    }
    page = parsed(preview(owner, spec, *['{"__time": 0, "d": "x", "v": 2, "extra": 1}'] * 3)).one(id="preview")
    assert "Fields that would not be stored: extra (long)" in page.text
    assert page.one("h3").text == "After rollup: 1 row"
    assert [c.text for c in page.all("table")[1].one("tbody").all("td")] == ["1970-01-01T00:00:00Z", "x", "6", "3"]


def test_of_records_that_are_all_left_out_nothing_says_what_would_be_stored(owner: Client) -> None:
    spec = spec_for("flights")
    spec["dataSchema"]["transformSpec"] = {"filter": {"type": "selector", "dimension": "kind", "value": "x"}}
    page = parsed(preview(owner, spec, '{"__time": 0, "d": "x"}')).one(id="preview")
    assert "filtered" in page.text
    assert "would not be stored" not in page.text
    assert "The spec names a field that no record here has: kind (filter)" in page.text


def test_a_sketch_is_shown_as_what_it_estimates(owner: Client) -> None:
    spec = spec_for("flights")
    spec["dataSchema"] |= {
        "dimensionsSpec": {"dimensions": ["d"]},
        "metricsSpec": [
            {"type": "HLLSketchBuild", "name": "users", "fieldName": "u"},
            {"type": "quantilesDoublesSketch", "name": "times", "fieldName": "ms"},
        ],
        "granularitySpec": {"rollup": True},
    }
    lines = [json.dumps({"__time": 0, "d": "x", "u": f"u{n % 3}", "ms": 1000 * n}) for n in range(1, 6)]
    page = parsed(preview(owner, spec, *lines)).one(id="preview")
    assert [c.text for c in page.all("table")[1].one("tbody").all("td")] == [
        "1970-01-01T00:00:00Z",
        "x",
        "≈ 3 distinct",
        "n 5, min 1,000, median 3,000, max 5,000",
        "5",
    ]


def test_next_to_no_spec_shows_the_records(owner: Client) -> None:
    page = parsed(preview(owner, {"type": "index_kafka_share_group"}, "anything"))
    assert headers(page) == ["Number", "Record", "Outcome"]
    assert table(page) == [["1", "anything", "raw"]]
    nested = {"type": "kafka", "spec": {"ioConfig": {"inputFormat": {"type": "json"}}}}
    assert table(parsed(preview(owner, nested, '{"a": 1}'))) == [["1", '{"a": 1}', "stored", "1"]]


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        ("{", {}, "line 1, column 2"),
        ("[]", {}, "must be a JSON object"),
        ('{"type": "index_kafka_share_group", "spec": []}', {}, "spec"),
        ('{"type": "index_kafka_share_group", "ioConfig": []}', {}, "ioConfig"),
        ('{"type": "index_kafka_share_group", "surprise": 1}', {}, "surprise: unknown field"),
        (json.dumps(SEED), {"rows": "0"}, "At most"),
        (json.dumps(SEED), {"rows": "201"}, "At most"),
        (json.dumps(SEED), {"records": "odd"}, "Records"),
        ('{"type": "kafka"}', {"records": "first"}, "ioConfig.topic: required field is missing"),
    ],
)
@pytest.mark.parametrize("htmx", [False, True])
def test_what_is_wrong_is_said_in_place(owner: Client, text: str, more: Any, says: str, htmx: bool) -> None:
    answer = preview(owner, text, htmx=htmx, **more)
    assert answer.status_code == (200 if htmx else 400)  # htmx takes in no other
    section = parsed(answer).one("section", aria_labelledby="preview-title")
    assert section.one("h2").text == "No preview"
    assert says in section.text


def test_a_fault_leads_to_its_place_in_the_text(owner: Client) -> None:
    spec = spec_for("flights", taskCount=0)
    link = parsed(preview(owner, spec)).one(id="preview-problem").one("a")
    assert (link.text, link.attributes["data-error-pointer"]) == ("ioConfig.taskCount", "/ioConfig/taskCount")


def test_records_and_fields_are_text(owner: Client) -> None:
    line = json.dumps({"__time": 0, f"name {ATTACK}": f"value {ATTACK}"})
    for htmx in (False, True):
        answer = preview(owner, SEED, line, f"poison {ATTACK}", htmx=htmx)
        assert "<script>alert" not in answer.content.decode()
        assert f"value {ATTACK}" in parsed(answer).text


def test_a_viewer_may_not_and_nobody_learns_of_another_teams_names(cast: Cast) -> None:
    answer = preview(browsing_as(cast, "viewer"), spec_for("flights"), "{}")
    assert answer.status_code == 403
    assert "role operator" in parsed(answer).one(id="preview-problem").text
    taken, free = (preview(browsing_as(cast, "outsider"), spec_for(name), "{}") for name in ("flights", "nobodys"))
    assert taken.status_code == free.status_code == 200
    assert parsed(taken).one(id="preview").text == parsed(free).one(id="preview").text


def test_the_first_or_the_last_records_of_a_topic(owner: Client, broker: Broker) -> None:
    topic = broker.topic("previewed", partitions=1)
    broker.produce(topic, (str(n).encode() for n in range(50)))
    io_config = {"topic": topic, "consumerProperties": {"bootstrap.servers": broker.bootstrap}}
    spec = {"type": "index_kafka_share_group", "ioConfig": io_config}
    for chosen, numbers in (("first", range(3)), ("last", range(47, 50))):
        page = parsed(preview(owner, spec, records=chosen, rows="3"))
        assert [pre.text for pre in page.one(id="preview").all("pre")] == [str(n) for n in numbers]
        assert f"partition 0, offset {numbers[0]}" in page.one(id="preview").text
