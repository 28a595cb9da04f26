"""What the wizard warns of before anything runs, each beside the field that mends it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from tests.support.django_cast import Cast, browsing_as
from tests.support.drafts import begin, document, with_records
from tests.support.html import Element, parsed

S = 1_769_860_800  # 2026-01-31T12:00:00Z


@pytest.fixture
def pages(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def step(pages: Client, owner: Client, name: str, schema: dict[str, Any], records: list[Any]) -> Element:
    written = document(inputFormat={"type": "json"})
    written["spec"]["dataSchema"] |= schema
    draft = with_records(begin(owner, {"document": written}), [json.dumps(record).encode() for record in records])
    return parsed(pages.get(f"/load/{draft.pk}/{name}/"))


@pytest.mark.parametrize("name", ["time", "review"])
def test_seconds_that_are_read_as_milliseconds_are_warned_of(pages: Client, owner: Client, name: str) -> None:
    records = [{"at": S + i} for i in range(3)]
    page = step(pages, owner, name, {"timestampSpec": {"column": "at", "format": "millis"}}, records)
    [told] = page.all("div", data_odd_times="")
    assert "3 of 3 rows would have a time in 1970 or before" in told.text
    assert "Write posix into Format: the same value is then 2026-01-31 12:00:01 UTC" in told.text
    right = step(pages, owner, name, {"timestampSpec": {"column": "at", "format": "posix"}}, records)
    assert not right.all("div", data_odd_times="")


def test_a_time_far_ahead_is_warned_of_also_where_no_format_helps(pages: Client, owner: Client) -> None:
    """Milliseconds that are read as seconds are beyond the year 9999: such a record has a fault of its own."""
    records = [{"at": "2199-01-01T00:00:00Z"}, {"at": "2026-01-31T12:00:00Z"}]
    page = step(pages, owner, "time", {"timestampSpec": {"column": "at", "format": "iso"}}, records)
    [told] = page.all("div", data_odd_times="")
    assert "1 of 2 rows" in told.text
    assert "Check field and format of step Time." in told.text


def test_records_far_apart_make_small_segments(pages: Client, owner: Client) -> None:
    times: dict[str, Any] = {"timestampSpec": {"column": "at", "format": "posix"}}
    records = [{"at": S - 86_400 * i} for i in range(40)]
    page = step(pages, owner, "review", times | {"granularitySpec": {"segmentGranularity": "HOUR"}}, records)
    assert "Choose a larger Segment granularity in step Time." in page.one("div", data_small_segments="").text
    page = step(pages, owner, "review", times | {"granularitySpec": {"segmentGranularity": "YEAR"}}, records)
    assert not page.all("div", data_small_segments="")


def test_a_nested_field_that_the_spec_reads_is_offered_once(pages: Client, owner: Client) -> None:
    """PostgreSQL keeps the names of a JSON object in an order of its own; a field may have another name, too."""
    for name in ("from_city", "town"):
        written = document(
            inputFormat={
                "type": "json",
                "flattenSpec": {"fields": [{"type": "tree", "name": name, "nodes": ["from", "city"]}]},
            }
        )
        draft = with_records(begin(owner, {"document": written}))
        boxes = parsed(pages.get(f"/load/{draft.pk}/parse/")).all("input", name="flatten")
        assert [(json.loads(b.attributes["value"])["name"], "checked" in b.attributes) for b in boxes] == [(name, True)]
        pages.post(f"/load/{draft.pk}/parse/", {"form": "json", "flatten": [b.attributes["value"] for b in boxes]})
        draft.refresh_from_db()
        assert draft.document == written


def test_a_path_is_kept_once_when_its_box_stays_ticked(pages: Client, owner: Client) -> None:
    path = {"type": "path", "name": "town", "expr": "$.from.city"}
    written = document(inputFormat={"type": "json", "flattenSpec": {"fields": [path]}})
    draft = with_records(begin(owner, {"document": written}))
    boxes = parsed(pages.get(f"/load/{draft.pk}/parse/")).all("input", name="flatten")
    ticked = [b.attributes["value"] for b in boxes if "checked" in b.attributes]
    pages.post(f"/load/{draft.pk}/parse/", {"form": "json", "flatten": ticked})
    draft.refresh_from_db()
    assert draft.document == written


def test_what_json_does_not_need_is_shown_with_the_formats_that_need_it(pages: Client, owner: Client) -> None:
    """A script hides what does not fit: here stands which format each field belongs to."""
    page = step(pages, owner, "parse", {}, [{"a": 1}])
    fitting = {
        block.one("input").attributes["name"]: block.attributes["data-shown-with"]
        for block in page.all("div", class_="mb-3")
        if "data-shown-with" in block.attributes
    }
    assert fitting == {
        "columns": "form csv tsv",
        "header": "form csv tsv",
        "delimiter": "form tsv",
        "registry": "form avro_stream protobuf",
    }


def test_a_boolean_is_offered_as_a_column_that_keeps_it(pages: Client, owner: Client) -> None:
    page = step(pages, owner, "schema", {"timestampSpec": {"column": "at", "format": "posix"}}, [{"at": S, "ok": True}])
    options = page.one("select", name="type:ok").all("option")
    assert [o.attributes["value"] for o in options if "selected" in o.attributes] == ["auto"]
    named = {"dimensionsSpec": {"dimensions": [{"name": "ok", "type": "auto"}]}}
    page = step(
        pages, owner, "schema", {"timestampSpec": {"column": "at", "format": "posix"}} | named, [{"at": S, "ok": True}]
    )
    assert {cell.text for cell in page.all("td", data_label="ok")} == {"true"}


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        ({"transforms": [{"type": "expression", "name": "b", "expression": "a +"}]}, "Transforms"),
        ({"filter": {"type": "expression", "expression": "a >"}}, "Keep records"),
    ],
)
def test_what_is_wrong_with_an_expression_stands_at_its_field(
    pages: Client, owner: Client, spec: dict[str, Any], label: str
) -> None:
    times: dict[str, Any] = {"timestampSpec": {"column": "at", "format": "posix"}}
    page = step(pages, owner, "transform", times | {"transformSpec": spec}, [{"at": S, "a": 1}])
    blocks = [
        block for block in page.one("form", class_="panel").all("div", class_="mb-3") if block.all("div", role="alert")
    ]
    assert [block.one("label").text.startswith(label) for block in blocks] == [True]
