"""The pages that change what is kept: rules as rows of a form, and segments out of use and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from controlplane.retention import rule_runner
from controlplane.retention.models import RuleChange, RuleSet
from controlplane.retention.rules import read_rules, rules_json
from controlplane.segments.models import Segment
from controlplane.teams.models import AuditEntry
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed

RULES, SITE = "/datasources/flights/retention/rules/", "/retention/"
MARK = "/datasources/flights/retention/mark/"


@pytest.fixture
def owner(cast: Cast) -> Client:
    return browsing_as(cast, "owner")


def rows(*kinds: tuple[str, str], **more: str) -> dict[str, str]:
    """What the form sends: kinds with their periods or intervals."""
    sent = {"rows": str(len(kinds)), "do": "preview", **more}
    for n, (kind, of) in enumerate(kinds):
        sent |= {f"kind-{n}": kind, f"of-{n}": of, f"rest-{n}": "{}"}
    return sent


def seen_in(answer: Any) -> str:
    return str(parsed(answer).one("input", name="seen").attributes["value"])


def test_rules_are_saved_as_they_were_looked_at(cast: Cast, owner: Client) -> None:
    wanted = [("loadByPeriod", "P1M"), ("dropByInterval", "2013-01-01/P1D")]
    looked = owner.post(RULES, rows(*wanted))
    assert looked.status_code == 200
    assert "marks 2 segments of 1 interval unused: 900 rows, 8.8 KiB, from 2013-01-01" in parsed(looked).text
    assert "dropByInterval 2013-01-01T00:00:00.000Z/2013-01-02T00:00:00.000Z" in parsed(looked).text
    saved = owner.post(RULES, rows(*wanted, do="save", seen=seen_in(looked), comment="a month"))
    assert (saved.status_code, saved["Location"]) == (302, "/datasources/flights/retention/")
    [first, second] = RuleSet.objects.get(datasource=cast.datasource).rules
    # A box that is not ticked is not sent.
    assert (first["type"], first["period"], first["includeFuture"]) == ("loadByPeriod", "P1M", False)
    assert second["type"] == "dropByInterval"
    assert RuleChange.objects.get().comment == "a month"
    assert "a month" in parsed(owner.get(RULES)).text
    assert AuditEntry.objects.get(action="set_rules").username == "owner"


def test_what_was_not_looked_at_is_not_saved(cast: Cast, owner: Client) -> None:
    looked = seen_in(owner.post(RULES, rows(("loadForever", ""))))
    again = owner.post(RULES, rows(("dropForever", ""), do="save", seen=looked))
    assert again.status_code == 200
    assert "Check this preview" in parsed(again).text
    assert "marks 4 segments of 3 intervals unused" in parsed(again).text
    assert not RuleSet.objects.exists()


def test_fields_that_the_form_does_not_show_are_kept(cast: Cast, owner: Client) -> None:
    before = read_rules([{"type": "loadForever", "tieredReplicants": {"hot": 3}, "useDefaultTierForNull": False}])
    rule_runner.set_rules(user=cast.users["owner"], datasource=cast.datasource, rules=before)
    page = parsed(owner.get(RULES))
    sent = rows(("loadForever", "")) | {"rest-0": page.one("input", name="rest-0").attributes["value"]}
    looked = owner.post(RULES, sent)
    owner.post(RULES, {**sent, "do": "save", "seen": seen_in(looked)})
    assert RuleSet.objects.get().rules == rules_json(before)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (rows(("loadByPeriod", "a month")), "The period must be an ISO 8601 period such as P1M or P1DT12H."),
        (rows(("loadByPeriod", "")), "The period must be an ISO 8601 period"),
        (rows(("dropByPeriod", "P1\0M")), "The period must be an ISO 8601 period"),
        (rows(("loadForever", ""), ("dropByInterval", "2013")), "The interval must be like 2025-06-01/2025-07-01"),
        (rows(("dropByInterval", "2024-01-01/2024")), "The interval is empty"),
        (rows(("foo", "")), "The rule must be one of loadForever"),
        ({**rows(("loadForever", "")), "rest-0": '{"foo": 1}'}, "foo is not a field of this rule."),
        ({**rows(("loadForever", "")), "rest-0": '{"tieredReplicants": {"hot": "x"}}'}, "tieredReplicants.hot "),
        ({**rows(("loadForever", "")), "rest-0": "[NaN"}, "form is incomplete"),
        ({**rows(("loadForever", "")), "comment": "x" * 501}, "at most 500 characters"),
        ({**rows(("loadForever", "")), "comment": "a\0b"}, "Null characters"),
        ({"do": "save"}, "at most 100"),
        ({"do": "save", "rows": "101"}, "at most 100"),
        ({"do": "save", "rows": "-1"}, "at most 100"),
    ],
)
def test_what_is_no_rule_is_said_at_its_row(cast: Cast, owner: Client, sent: dict[str, str], said: str) -> None:
    answer = owner.post(RULES, sent)
    assert answer.status_code == 400
    assert said in parsed(answer).text
    assert "[0]" not in parsed(answer).text  # a list's place in a document that nobody here has seen
    assert not RuleSet.objects.exists()


@pytest.mark.parametrize("asked", ["up-0", "down-1", "up-9", "remove-9", "remove-x", "other", "up-²"])
def test_a_move_that_leads_nowhere_changes_no_row(cast: Cast, owner: Client, asked: str) -> None:
    page = parsed(owner.post(RULES, rows(("loadForever", ""), ("dropForever", ""), do=asked)))
    chosen = [option.attributes["value"] for option in page.all("option") if "selected" in option.attributes]
    assert chosen == ["loadForever", "dropForever"]


def test_the_sites_rules_are_for_its_administrators(cast: Cast, owner: Client) -> None:
    assert owner.get(SITE).status_code == 403
    root = browsing_as(cast, "superuser")
    looked = root.post(SITE, rows(("dropForever", "")))
    assert "flights" in parsed(looked).one("table").text
    assert root.post(SITE, rows(("dropForever", ""), do="save", seen=seen_in(looked)))["Location"] == SITE
    assert RuleSet.objects.get(datasource=None).rules == [{"type": "dropForever"}]


def test_segments_are_taken_out_of_use_and_put_back(cast: Cast, owner: Client, tmp_path: Path, settings: Any) -> None:
    settings.DEEP_STORAGE = "s3://elsewhere/segments"  # no folder: nobody looks for files
    day = {"step": "mark_unused", "scope": "interval", "interval": "2013-01-01/P1D"}
    looked = owner.post(MARK, day)
    assert "2 segments of 1 interval: 900 rows, 8.8 KiB." in parsed(looked).text
    assert Segment.objects.filter(used=False).count() == 0
    assert owner.post(MARK, {**day, "sure": "1"})["Location"] == "/datasources/flights/retention/"
    first, _ = Segment.objects.filter(used=False).order_by("partition_num")
    assert f"ids={first.pk}" in owner.get("/datasources/flights/retention/").content.decode()
    back = {"step": "mark_used", "scope": "ids", "ids": f"{first.pk}\n{first.identifier}"}
    assert "1 segment of 1 interval: 500 rows" in parsed(owner.post(MARK, back)).text
    owner.post(MARK, {**back, "sure": "1"})
    assert Segment.objects.get(used=False).partition_num == 1
    kill = {"step": "kill", "scope": "interval", "interval": "2013-01-01/P1D", "versions": f"other, {first.version}"}
    assert "1 unused segment of 1 interval" in parsed(owner.post(MARK, kill)).text
    owner.post(MARK, {**kill, "sure": "1"})
    assert Segment.objects.get(used=False).kill_began_at is not None
    lost = parsed(owner.post(MARK, {"step": "mark_used", "scope": "everything"})).text
    assert "No segment would change." in lost
    assert "1 segment cannot be marked used: the file is deleted." in lost
    actions = AuditEntry.objects.filter(target="datasource").values_list("action", flat=True)
    assert sorted(actions) == ["kill", "mark_unused", "mark_used"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"step": "mark_unused", "scope": "interval"}, "must be like 2025-06-01/2025-07-01"),
        ({"step": "mark_unused", "scope": "interval", "interval": "2013\0"}, "Null characters"),
        ({"step": "mark_unused", "scope": "ids", "ids": "nonsense"}, "is not the id of a segment of flights"),
        ({"step": "mark_unused", "scope": "both"}, "Select a valid choice"),
        ({"step": "burn", "scope": "everything", "sure": "1"}, "Select a valid choice"),
        ({"sure": "1"}, "This field is required"),
    ],
)
def test_what_names_no_segments_changes_none(cast: Cast, owner: Client, sent: dict[str, str], said: str) -> None:
    answer = owner.post(MARK, {**sent, "sure": "1"})
    assert answer.status_code == 400
    assert said in parsed(answer).text
    assert not Segment.objects.filter(used=False).exists()
