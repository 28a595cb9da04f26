"""The page that takes over a Druid cluster's supervisors: what each would become, and then those that are ticked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from controlplane.common.strict_json import MAX_BYTES
from controlplane.connections.models import Connection
from controlplane.supervisors.models import Supervisor
from controlplane.teams.models import AuditEntry, Membership
from controlplane.teams.roles import Role
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.druid_specs import LISTED
from tests.support.html import Element, parsed

pytestmark = pytest.mark.usefixtures("checked_here")

PAGE = "/supervisors/-/import/"
OF_DRUID: list[dict[str, Any]] = json.loads(LISTED.read_text(encoding="utf-8"))["supervisors"]
IDS = [entry["id"] for entry in OF_DRUID]


@pytest.fixture
def owner(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def asked(client: Client, listed: Any, status: int = 200, **fields: Any) -> Element:
    answer = client.post(PAGE, {"document": json.dumps(listed), "suspended": "on", **fields})
    assert answer.status_code == status, answer.content
    return parsed(answer)


def verdicts(page: Element) -> list[tuple[str, str]]:
    found = [item for item in page.all("li") if "data-verdict" in item.attributes]
    return [(item.attributes["data-supervisor"], item.attributes["data-verdict"]) for item in found]


def hidden(page: Element) -> dict[str, str]:
    """What the form sends that does what was shown, without the ticks."""
    form = page.one("section", id="verdicts").one("form")
    fields = [one.attributes for one in form.all("input") if one.attributes.get("type") == "hidden"]
    return {f["name"]: f["value"] for f in fields if f["name"] != "csrfmiddlewaretoken"}


def test_what_is_ticked_is_imported_as_it_was_shown(owner: Client) -> None:
    before = list(Supervisor.objects.values_list("pk", "version")), AuditEntry.objects.count()
    page = asked(owner, OF_DRUID)
    assert verdicts(page) == [(i, "create") for i in IDS]
    assert (list(Supervisor.objects.values_list("pk", "version")), AuditEntry.objects.count()) == before
    ticks = [one.attributes["value"] for one in page.all("input", name="ticked")]
    assert ticks == IDS
    done = parsed(owner.post(PAGE, {**hidden(page), "ticked": IDS[1:3]}))
    assert verdicts(done) == [(i, "create") for i in IDS[1:3]]
    assert "2 of 2 were created or changed." in done.one("main").text
    assert set(Supervisor.objects.filter(pk__in=IDS, suspended=True).values_list("pk", flat=True)) == set(IDS[1:3])
    again = asked(owner, OF_DRUID[:2])
    assert verdicts(again) == [(IDS[0], "create"), (IDS[1], "same")]
    assert [one.attributes["value"] for one in again.all("input", name="ticked")] == [IDS[0]]


def test_a_file_is_read_and_shown_in_the_form(owner: Client) -> None:
    text = json.dumps(OF_DRUID[:1])
    file = SimpleUploadedFile("supervisors.json", b"\xef\xbb\xbf" + text.encode())
    page = parsed(owner.post(PAGE, {"file": file}))
    assert verdicts(page) == [(IDS[0], "create")]
    assert page.one("textarea", id="id_document").raw_text.strip() == text
    assert "suspended" not in hidden(page)
    running = json.loads(text)
    running[0]["spec"]["suspended"] = False
    owner.post(PAGE, {"document": json.dumps(running), "sure": "1", "ticked": IDS[0]})
    assert not Supervisor.objects.get(pk=IDS[0]).suspended


def test_every_fault_a_change_and_what_has_no_effect_are_told(owner: Client) -> None:
    odd = json.loads(json.dumps(OF_DRUID[0]["spec"]))
    odd["spec"]["ioConfig"]["taskCount"] = 0
    listed = [{"id": "odd", "spec": odd}, OF_DRUID[1], {"id": "flights", "spec": spec_for("flights", taskCount=3)}]
    page = asked(owner, listed)
    assert verdicts(page) == [("odd", "refused"), (IDS[1], "create"), ("flights", "change")]
    refused, new, changed = (item for item in page.all("li") if "data-verdict" in item.attributes)
    assert "ioConfig.taskCount" in refused.text
    assert "tuningConfig.chatRetries" in new.text
    assert '"taskCount": 3' in changed.one("pre").text
    done = parsed(owner.post(PAGE, {**hidden(page), "ticked": ["odd", "flights"]}))
    assert verdicts(done) == [("odd", "refused"), ("flights", "change")]
    assert Supervisor.objects.get(pk="flights").version == 2


def test_team_and_connection_are_chosen_for_all(owner: Client, cast: Cast) -> None:
    Membership.objects.create(user=cast.users["owner"], team=cast.beta, role=Role.ADMIN)
    place = {"kind": "kafka", "properties": {"bootstrap.servers": "localhost:1"}}
    Connection.objects.create(team=cast.beta, name="the-cluster", **place)
    [(_, verdict)] = verdicts(asked(owner, OF_DRUID[:1]))
    assert verdict == "refused"  # of which team it is to be
    page = asked(owner, OF_DRUID[:1], team="beta", connection="the-cluster")
    owner.post(PAGE, {**hidden(page), "ticked": IDS[0]})
    made = Supervisor.objects.get(pk=IDS[0])
    assert (made.datasource.team.name, made.io_config.connection) == ("beta", "the-cluster")
    asked(owner, OF_DRUID[1:2], status=400, team="gamma")
    asked(owner, OF_DRUID[1:2], status=400, connection="none")


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({}, "Choose the file of Druid's answer, or paste its text."),
        ({"document": " \n"}, "Choose the file of Druid's answer, or paste its text."),
        ({"document": "[{]"}, "Not JSON: "),
        ({"document": "[NaN]"}, "JSON not accepted: NaN is not a JSON number."),
        ({"document": "{}"}, "The body must be the list that Druid answers"),
        ({"document": json.dumps(IDS)}, "[0]: must be an object with id and spec"),
        ({"document": "[" + " " * MAX_BYTES + "]"}, "Ensure this value has at most"),
        ({"file": SimpleUploadedFile("x", b"\xff\xfe")}, "The file is not UTF-8 text."),
        ({"file": SimpleUploadedFile("x", b" " * (MAX_BYTES + 1))}, "It is larger than 1,048,576 bytes."),
        ({"file": SimpleUploadedFile("x", b"")}, "The submitted file is empty."),
        ({"document": json.dumps(OF_DRUID[:1]), "sure": "1"}, "Tick at least one supervisor."),
        ({"document": json.dumps(OF_DRUID[:1]), "sure": "1", "ticked": "another"}, "Tick at least one supervisor."),
    ],
)
def test_what_is_no_such_list_is_told_and_changes_nothing(owner: Client, sent: dict[str, Any], says: str) -> None:
    answer = owner.post(PAGE, sent)
    assert answer.status_code == 400
    assert says in parsed(answer).one(id="problem").text
    assert not Supervisor.objects.filter(pk__in=IDS).exists()


def test_it_is_offered_to_admins_and_refused_to_others(cast: Cast, owner: Client) -> None:
    for address in ("/supervisors/", "/supervisors/-/new/"):
        assert PAGE in [a.attributes["href"] for a in parsed(owner.get(address)).one("main").all("a")]
    assert PAGE in [hit["url"] for hit in owner.get("/-/go.json?q=import").json()["hits"]]
    operator = browsing_as(cast, "operator")
    assert PAGE not in [a.attributes["href"] for a in parsed(operator.get("/supervisors/")).one("main").all("a")]
    asked(operator, OF_DRUID, status=403)
