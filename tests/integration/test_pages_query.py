"""The query page's parts that the server makes: the editor, words for completion, saved queries, history, links."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from controlplane.datasources.masking import set_masks
from controlplane.datasources.models import Datasource
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.query.models import PastQuery, SavedQuery
from controlplane.segments.models import SegmentSchema
from tests.support.django_cast import STARTED, Cast, browsing_as, speaking_as
from tests.support.html import parsed
from tests.support.sql import june as make_june
from tests.support.sql import rows

STATEMENT = 'SELECT "n"\nFROM june -- <b>&'


@pytest.fixture
def june(cast: Cast, tmp_path: Path, settings: Any) -> Datasource:
    return make_june(cast.alpha, tmp_path, settings)


def saved(cast: Cast, owner: str, team: bool = False) -> SavedQuery:
    values = {"name": f"of {owner}", "statement": STATEMENT, "owner": cast.users[owner]}
    return SavedQuery.objects.create(**values, team=cast.alpha if team else None)


def past(cast: Cast, user: str) -> PastQuery:
    values = {"query_id": "q", "started_at": STARTED, "duration_ms": 1234, "rows": 5, "state": "succeeded"}
    return PastQuery.objects.create(user=cast.users[user], statement=STATEMENT, **values)


def shown_statement(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return str(answer.context["form"]["statement"].value())


def linked(client: Client, address: str, label: str) -> list[str]:
    """The statements of links of a page whose text begins so."""
    links = parsed(client.get(address)).all("a")
    found = [a.attributes["href"] for a in links if a.text.startswith(label)]
    return [parse_qs(urlsplit(address).query)["statement"][0] for address in found]


def test_the_editor_begins_with_what_the_address_has(cast: Cast) -> None:
    viewer = browsing_as(cast, "viewer")
    assert shown_statement(viewer, "/query/") == ""
    assert "&lt;b&gt;" in viewer.get("/query/", {"statement": STATEMENT}).content.decode()
    assert shown_statement(viewer, f"/query/?past={past(cast, 'viewer').pk}") == STATEMENT
    assert shown_statement(viewer, f"/query/?saved={saved(cast, 'owner', team=True).pk}") == STATEMENT
    for address in (
        f"past={past(cast, 'owner').pk}",
        f"saved={saved(cast, 'owner').pk}",
        "saved=x",
        f"past={'9' * 30}",
    ):
        assert viewer.get(f"/query/?{address}").status_code == 404
    assert "You can read no datasource yet" not in viewer.get("/query/").content.decode()
    Datasource.objects.filter(team=cast.alpha).update(deleted_at=STARTED)
    assert "You can read no datasource yet" in viewer.get("/query/").content.decode()


def test_words_are_of_what_the_user_may_read(cast: Cast, june: Datasource) -> None:
    set_masks(user=cast.users["owner"], datasource=june, masks={"n": "admin"})
    Datasource.objects.create(name="theirs", team=cast.beta)
    operator = browsing_as(cast, "operator")
    tables = operator.get("/query/words.json").json()
    assert {"team": "alpha", "name": "june"} in tables["tables"]
    assert not tables["cut"]
    assert "theirs" not in str(tables)
    assert {"name": "task_count", "type": "BIGINT"} in tables["sys"]["supervisors"]
    assert set(tables["sys"]) == {"segments", "supervisors", "tasks", "offsets", "quarantine", "publishes"}
    assert operator.get("/query/words.json?search=JU").json()["tables"] == [{"team": "alpha", "name": "june"}]
    columns = operator.get("/query/words.json?table=june&table=theirs&table=a%00").json()["columns"]
    assert columns["theirs"] == columns["a\x00"] == []
    assert {c["name"]: c["type"] for c in columns["june"]} == {
        "__time": "TIMESTAMPTZ",
        "n": "masked",
        "name": "VARCHAR",
        "tags": "VARCHAR[]",
    }


def test_a_statement_is_saved_changed_and_deleted_by_the_forms(cast: Cast) -> None:
    viewer, owner = browsing_as(cast, "viewer"), browsing_as(cast, "owner")
    begun = viewer.post("/query/saved/-/new/", {"statement": STATEMENT})
    assert (begun.status_code, SavedQuery.objects.count()) == (200, 0)
    assert begun.context["form"]["statement"].value() == STATEMENT
    form = {"name": "Mine", "statement": STATEMENT, "team": "alpha", "description": "d"}
    assert viewer.post("/query/saved/-/new/", {**form, "team": "beta"}).status_code == 400
    assert viewer.post("/query/saved/-/new/", {**form, "name": " "}).status_code == 400
    made = viewer.post("/query/saved/-/new/", form)
    [stored] = SavedQuery.objects.all()
    assert (made.status_code, made["Location"]) == (302, f"/query/?saved={stored.pk}")
    assert (stored.statement, stored.owner, stored.team) == (STATEMENT, cast.users["viewer"], cast.alpha)
    page = f"/query/saved/{stored.pk}/"
    assert owner.post(page, {**form, "name": "Ours"}).status_code == 302
    operator = browsing_as(cast, "operator")
    assert operator.get(page)["Location"] == f"/query/?saved={stored.pk}"
    assert ">Change<" not in operator.get("/query/saved/").content.decode()
    assert operator.post(f"{page}delete/").status_code == operator.get(f"{page}delete/").status_code == 403
    assert "The members of team alpha lose it too." in owner.get(f"{page}delete/").content.decode()
    assert owner.post(f"{page}delete/").status_code == 302
    assert not SavedQuery.objects.exists()


def test_lists_show_what_is_ones_own_and_the_teams(cast: Cast) -> None:
    saved(cast, "viewer")
    saved(cast, "owner", team=True)
    saved(cast, "outsider")
    past(cast, "viewer")
    viewer = browsing_as(cast, "viewer")
    listed = viewer.get("/query/saved/").content.decode()
    assert ("of viewer" in listed, "of owner" in listed, "of outsider" in listed) == (True, True, False)
    assert "No saved queries match" in viewer.get("/query/saved/?search=nothing").content.decode()
    assert "1.23" in viewer.get("/query/history/").content.decode()
    assert "No queries yet" in browsing_as(cast, "owner").get("/query/history/").content.decode()


def test_links_of_other_pages_begin_statements_that_run(cast: Cast, june: Datasource) -> None:
    browser, rest = browsing_as(cast, "operator"), speaking_as(cast, "operator")
    QuarantinedRecord.objects.filter(pk=cast.quarantined.pk).update(datasource=june, timestamp_ms=1_748_736_030_000)
    types = {"__time": "timestamp", "n": "long", "name": "string", "tags": "strings"}
    shape = [{"name": name, "type": kind} for name, kind in types.items()]
    SegmentSchema.objects.filter(datasource=june).update(columns=shape)
    [whole] = linked(browser, "/datasources/june/", "Query this")
    assert len(rows(rest, whole)) == 6
    days = linked(browser, "/datasources/june/intervals/", "Query this")
    assert [len(rows(rest, statement)) for statement in days] == [2, 2, 2]
    interval = "/datasources/june/segments/?from=2025-06-01T00:00:00Z&to=2025-06-02T00:00:00Z"
    [day] = linked(browser, interval, "Query this")
    assert [row[1] for row in rows(rest, day)] == [0, 1]
    columns = linked(browser, "/datasources/june/columns/", "Query this")
    assert [len(rows(rest, statement)) for statement in columns] == [3, 6, 6, 6]
    [around] = linked(browser, f"/datasources/june/quarantine/{cast.quarantined.pk}/", "Query this")
    assert [row[1] for row in rows(rest, around)] == [0]
