"""Whatever is typed on the wizard's review counts, whichever button sends it; *Back* never holds anybody."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from controlplane.loading.models import Draft
from controlplane.supervisors.models import Supervisor
from tests.support.django_cast import Cast, browsing_as
from tests.support.drafts import begin, change, document, with_records
from tests.support.html import Element, parsed

pytestmark = pytest.mark.usefixtures("checked_here")


@pytest.fixture
def pages(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


@pytest.fixture
def draft(owner: Client) -> Draft:
    written = document(inputFormat={"type": "json"})
    written["spec"]["dataSchema"] |= {
        "timestampSpec": {"column": "placed_at"},
        "transformSpec": {
            "transforms": [
                {"type": "expression", "name": name, "expression": "amount + 1", "language": "druid"}
                for name in ("one", "two")
            ]
        },
    }
    return with_records(begin(owner, {"document": written}))


def as_shown(page: Element) -> dict[str, Any]:
    """What a browser sends of the review's form: lines end in its own way, fields of one line have none."""
    sent: dict[str, Any] = {}
    for box in page.all("input"):
        kind, name = box.attributes.get("type"), box.attributes.get("name", "")
        if kind in ("checkbox", "radio") and "checked" not in box.attributes:
            continue
        value = box.attributes.get("value", "on" if kind == "checkbox" else "")
        sent.setdefault(name, []).append("".join(value.splitlines()) if kind == "text" else value)
    for text in page.all("textarea"):
        sent[text.attributes["name"]] = text.raw_text.lstrip("\n").replace("\n", "\r\n")
    for choice in page.all("select"):
        options = choice.all("option")
        chosen = [o for o in options if "selected" in o.attributes] or options[:1]
        sent[choice.attributes["name"]] = [option.attributes["value"] for option in chosen]
    return sent


def shown(pages: Client, draft: Draft) -> dict[str, Any]:
    return as_shown(parsed(pages.get(f"/load/{draft.pk}/review/")).one("form", class_="row"))


def send(pages: Client, draft: Draft, values: dict[str, Any]) -> Any:
    return pages.post(f"/load/{draft.pk}/review/", values)


def expression(text: str) -> dict[str, Any]:
    return {"type": "expression", "expression": text, "language": "druid"}


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("dataSchema", {}),
        ("dataSchema", {"dimensionsSpec": {"dimensions": [{"name": "id"}, "amount"]}}),
        ("dataSchema", {"transformSpec": {"filter": expression(" amount > 0\n  && amount < 9\r\n")}}),
        ("dataSchema", {"transformSpec": {"transforms": [{**expression("amount\r\n + 1 "), "name": "one"}]}}),
        ("dataSchema", {"timestampSpec": {"column": " placed_at ", "missingValue": 0}}),
        ("dataSchema", {"timestampSpec": {"column": "placed_at", "missingValue": 1_700_000_000_000}}),
        ("ioConfig", {"consumerProperties": {"bootstrap.servers": " kafka-broker:9092,\nkafka-broker:9093 "}}),
        ("ioConfig", {"groupId": " orders "}),
    ],
)
def test_a_review_that_is_sent_as_it_is_shown_changes_nothing(
    pages: Client, owner: Client, draft: Draft, part: str, values: dict[str, Any]
) -> None:
    written = draft.document
    written["spec"][part] |= values
    assert change(owner, draft, written).status_code == 200
    draft.refresh_from_db()
    before = draft.document
    answer = send(pages, draft, {**shown(pages, draft), "go": "stay"})
    assert answer.status_code == 302, answer.content
    draft.refresh_from_db()
    assert draft.document == before


def test_a_part_that_is_changed_keeps_what_its_form_shows_otherwise(pages: Client, owner: Client, draft: Draft) -> None:
    written = draft.document
    written["spec"]["dataSchema"] |= {
        "timestampSpec": {"column": " placed_at ", "format": "auto", "missingValue": 0},
        "transformSpec": {"filter": expression("amount > 0\n && amount < 9")},
    }
    assert change(owner, draft, written).status_code == 200
    typed = {"time-segments": "MONTH", "transform-transforms": "one = amount + 1", "go": "stay"}
    assert send(pages, draft, {**shown(pages, draft), **typed}).status_code == 302
    draft.refresh_from_db()
    schema = draft.document["spec"]["dataSchema"]
    assert schema["timestampSpec"] == written["spec"]["dataSchema"]["timestampSpec"]
    assert schema["granularitySpec"]["segmentGranularity"] == "MONTH"
    assert schema["transformSpec"] == {
        "filter": expression("amount > 0\n && amount < 9"),
        "transforms": [{**expression("amount + 1"), "name": "one"}],
    }


def test_a_column_that_the_json_adds_beside_one_without_a_type_is_kept(
    pages: Client, owner: Client, draft: Draft
) -> None:
    written = draft.document
    written["spec"]["dataSchema"]["dimensionsSpec"] = {"dimensions": [{"name": "id"}]}
    assert change(owner, draft, written).status_code == 200
    sent = shown(pages, draft)
    typed = json.loads(sent["document"])
    typed["spec"]["dataSchema"]["dimensionsSpec"]["dimensions"].append({"name": "amount", "type": "long"})
    answer = send(pages, draft, {**sent, "document": json.dumps(typed), "go": "stay"})
    assert answer.status_code == 302, answer.content
    draft.refresh_from_db()
    dimensions = draft.document["spec"]["dataSchema"]["dimensionsSpec"]["dimensions"]
    assert dimensions == [{"name": "id"}, {"name": "amount", "type": "long"}]


def test_a_typed_name_and_a_typed_part_are_submitted(pages: Client, draft: Draft) -> None:
    typed = {"datasource": "renamed", "reading-indexers": "3", "time-segments": "MONTH", "go": "supervisor"}
    answer = send(pages, draft, {**shown(pages, draft), **typed})
    assert answer["Location"] == "/supervisors/renamed/", answer.content
    spec = Supervisor.objects.get(pk="renamed").current.spec["spec"]
    assert spec["ioConfig"]["taskCount"] == 3
    assert spec["dataSchema"]["granularitySpec"]["segmentGranularity"] == "MONTH"


def test_what_is_typed_into_two_parts_and_the_json_is_kept_together(pages: Client, draft: Draft) -> None:
    sent = shown(pages, draft)
    written = json.loads(sent["document"])
    written["context"] = {"mine": 1}
    typed = {"document": json.dumps(written), "time-form": "iso", "reading-indexers": "2", "go": "stay"}
    assert send(pages, draft, {**sent, **typed}).status_code == 302
    draft.refresh_from_db()
    assert draft.document["context"] == {"mine": 1}
    assert draft.document["spec"]["dataSchema"]["timestampSpec"]["format"] == "iso"
    assert draft.document["spec"]["ioConfig"]["taskCount"] == 2


def test_a_name_that_the_json_and_the_field_change_differently_is_refused(pages: Client, draft: Draft) -> None:
    sent, before = shown(pages, draft), draft.document
    written = json.loads(sent["document"])
    written["spec"]["dataSchema"]["dataSource"] = "by-json"
    answer = send(pages, draft, {**sent, "document": json.dumps(written), "datasource": "by-field", "go": "stay"})
    assert answer.status_code == 400
    page = parsed(answer)
    assert "The JSON and the form of step Review change the same thing." in page.one(id="problem").text
    assert page.one("input", name="datasource").attributes["value"] == "by-field"
    assert "by-json" in page.one("textarea", name="document").raw_text
    draft.refresh_from_db()
    assert draft.document == before


@pytest.mark.parametrize(
    ("named", "io_config", "typed"),
    [
        ("kafka_share_group", {}, {"reading-indexers": "2"}),
        ("kafka", {"replicas": 2}, {"reading-source": "share_group", "reading-group": "mine"}),
    ],
    ids=["the type", "what one source alone has"],
)
def test_a_source_that_the_json_changes_is_not_changed_back(
    pages: Client, draft: Draft, named: str, io_config: dict[str, Any], typed: dict[str, str]
) -> None:
    sent, before = shown(pages, draft), draft.document
    written = json.loads(sent["document"])
    written["type"] = named
    written["spec"]["ioConfig"] |= io_config
    answer = send(pages, draft, {**sent, **typed, "document": json.dumps(written), "go": "stay"})
    assert answer.status_code == 400
    page = parsed(answer)
    assert "The JSON and the form of step Reading change the same thing." in page.one(id="problem").text
    assert named in page.one("textarea", name="document").raw_text
    draft.refresh_from_db()
    assert draft.document == before


def test_what_the_json_changes_of_the_reading_is_kept_beside_the_form(pages: Client, draft: Draft) -> None:
    sent = shown(pages, draft)
    written = json.loads(sent["document"])
    written["spec"]["ioConfig"]["replicas"] = 2
    answer = send(pages, draft, {**sent, "document": json.dumps(written), "reading-indexers": "3", "go": "stay"})
    assert answer.status_code == 302, answer.content
    draft.refresh_from_db()
    io_config = draft.document["spec"]["ioConfig"]
    assert (io_config["replicas"], io_config["taskCount"]) == (2, 3)


def test_a_mistake_in_a_part_is_told_there_and_nothing_typed_is_lost(pages: Client, draft: Draft) -> None:
    typed = {"reading-indexers": "0", "time-column": "id", "datasource": "renamed", "go": "supervisor"}
    answer = send(pages, draft, {**shown(pages, draft), **typed})
    assert answer.status_code == 400
    page = parsed(answer)
    parts = {part.attributes["data-part"]: part for part in page.all("section", class_="review-part")}
    assert "greater than or equal to 1" in parts["reading"].text
    opened = {name for name, part in parts.items() for d in part.all("details") if "open" in d.attributes}
    assert opened == {"reading", "time"}
    assert page.one("input", name="time-column").attributes["value"] == "id"
    assert page.one("input", name="datasource").attributes["value"] == "renamed"
    assert not Supervisor.objects.filter(pk="renamed").exists()


@pytest.mark.parametrize(
    ("step", "values", "to"),
    [
        ("topic", {"topic": ""}, "connection"),
        ("time", {"column": "", "form": "iso", "segments": "DAY"}, "parse"),
        ("reading", {"indexers": "0"}, "schema"),
        ("review", {"document": "{"}, "reading"),
        ("review", {"datasource": ""}, "reading"),
    ],
)
def test_back_holds_nobody_and_keeps_no_mistake(
    pages: Client, draft: Draft, step: str, values: dict[str, str], to: str
) -> None:
    before = draft.document
    answer = pages.post(f"/load/{draft.pk}/{step}/", {**values, "go": "back"})
    assert answer["Location"] == f"/load/{draft.pk}/{to}/"
    draft.refresh_from_db()
    assert draft.document == before


def test_back_keeps_what_is_valid(pages: Client, draft: Draft) -> None:
    values = {"column": "placed_at", "form": "iso", "segments": "DAY", "go": "back"}
    pages.post(f"/load/{draft.pk}/time/", values)
    draft.refresh_from_db()
    assert draft.document["spec"]["dataSchema"]["timestampSpec"]["format"] == "iso"
