"""Load and drop rules: what they speak of (a table), and what becomes of segments, on a real PostgreSQL."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.publishing.selectors.fate import record_fate
from controlplane.retention import celery_tasks, rule_runner
from controlplane.retention.models import RuleChange, RuleSet
from controlplane.retention.rules import dropping_rule, read_rules, rules_json
from controlplane.segments.marking import Amount
from controlplane.segments.models import Interval, Removal, Segment
from controlplane.segments.selectors.lists import list_segments
from controlplane.sources.models import Source
from controlplane.teams.audit import AuditEntry
from controlplane.teams.models import User
from tests.support.django_cast import Cast
from tests.support.publishes import make_source, request, segment, send, start
from tests.support.waiting import await_a_long_day

ROOT = User(username="root", is_superuser=True)
NOW = datetime(2025, 6, 30, 12, tzinfo=UTC)
RULES = "/druid/coordinator/v1/rules"


def day(number: int) -> tuple[datetime, datetime]:
    begin = datetime(2025, 6, number, tzinfo=UTC)
    return begin, begin + timedelta(days=1)


FUTURE = (NOW + timedelta(days=5), NOW + timedelta(days=6))
# Rule, interval, whether it speaks of it. By Druid's own definition of each.
TABLE: list[tuple[dict[str, Any], tuple[datetime, datetime], bool]] = [
    ({"type": "loadForever"}, day(1), True),
    ({"type": "dropForever"}, day(1), True),
    ({"type": "loadByPeriod", "period": "P7D"}, day(23), True),  # reaches into it
    ({"type": "loadByPeriod", "period": "P7D"}, day(22), False),
    ({"type": "loadByPeriod", "period": "P7D"}, FUTURE, True),
    ({"type": "loadByPeriod", "period": "P7D", "includeFuture": False}, FUTURE, False),
    ({"type": "loadByPeriod", "period": "P7D", "includeFuture": False}, day(30), True),
    ({"type": "dropByPeriod", "period": "P7D"}, day(23), False),  # not wholly within
    ({"type": "dropByPeriod", "period": "P7D"}, day(24), True),
    ({"type": "dropByPeriod", "period": "P7D"}, FUTURE, True),
    ({"type": "dropByPeriod", "period": "P7D", "includeFuture": False}, FUTURE, False),
    ({"type": "dropByPeriod", "period": "P7D", "includeFuture": False}, day(30), False),
    ({"type": "dropBeforeByPeriod", "period": "P7D"}, day(23), False),
    ({"type": "dropBeforeByPeriod", "period": "P7D"}, day(22), True),
    ({"type": "dropBeforeByPeriod", "period": "P1M"}, day(1), False),
    ({"type": "loadByInterval", "interval": "2025-06-05/2025-06-07"}, day(6), True),
    ({"type": "loadByInterval", "interval": "2025-06-05T12:00/2025-06-07"}, day(5), True),  # touches it
    ({"type": "loadByInterval", "interval": "2025-06-05/2025-06-07"}, day(7), False),
    ({"type": "dropByInterval", "interval": "2025-06-05/2025-06-07"}, day(6), True),
    ({"type": "dropByInterval", "interval": "2025-06-05T12:00/2025-06-07"}, day(5), False),  # not wholly within
]


@pytest.mark.parametrize(("rule", "interval", "applies"), TABLE)
def test_of_what_a_rule_speaks(rule: dict[str, Any], interval: tuple[datetime, datetime], applies: bool) -> None:
    [read] = read_rules([rule])
    assert read.applies(*interval, NOW) is applies


def test_the_first_rule_that_applies_decides_and_without_one_all_stays() -> None:
    rules = read_rules([{"type": "loadByPeriod", "period": "P7D"}, {"type": "dropForever"}])
    assert dropping_rule(rules, *day(30), NOW) is None
    assert dropping_rule(rules, *day(2), NOW) == rules[1]
    assert dropping_rule(rules[:1], *day(2), NOW) is None
    assert dropping_rule([], *day(2), NOW) is None


def test_they_are_shown_in_druids_form() -> None:
    """What a Druid 33 answered for these."""
    sent = [
        {"type": "dropByPeriod", "period": "P1D"},
        {"type": "dropBeforeByPeriod", "period": "P1M"},
        {"type": "dropByInterval", "interval": "2012-01-01/2013-01-01"},
        {"type": "loadByInterval", "interval": "2012-01-01/2013-01-01"},
        {"type": "loadForever"},
    ]
    tiers = {"tieredReplicants": {"_default_tier": 2}, "useDefaultTierForNull": True}
    year = "2012-01-01T00:00:00.000Z/2013-01-01T00:00:00.000Z"
    assert rules_json(read_rules(sent)) == [
        {"period": "P1D", "includeFuture": True, "type": "dropByPeriod"},
        {"period": "P1M", "type": "dropBeforeByPeriod"},
        {"interval": year, "type": "dropByInterval"},
        {"interval": year, **tiers, "type": "loadByInterval"},
        {**tiers, "type": "loadForever"},
    ]


@pytest.mark.parametrize(
    ("sent", "tiers"),
    [
        ({"tieredReplicants": None, "useDefaultTierForNull": None}, {"_default_tier": 2}),
        ({"tieredReplicants": None, "useDefaultTierForNull": False}, {}),
        ({"useDefaultTierForNull": False}, {}),
        ({"useDefaultTierForNull": "false"}, {}),
        ({"useDefaultTierForNull": 0}, {}),
        ({"tieredReplicants": {"hot": 0}, "useDefaultTierForNull": False}, {"hot": 0}),
        ({"tieredReplicants": {}}, {}),
    ],
)
def test_null_is_what_is_not_there(sent: dict[str, Any], tiers: dict[str, int]) -> None:
    """A real Druid 33 shows what it was sent so."""
    [rule] = rules_json(read_rules([{"type": "loadByPeriod", "period": "P1D", "includeFuture": None, **sent}]))
    by_default = sent.get("useDefaultTierForNull") not in (False, "false")
    assert rule == {
        "type": "loadByPeriod",
        "period": "P1D",
        "includeFuture": True,
        "tieredReplicants": tiers,
        "useDefaultTierForNull": by_default,
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"type": "dropForever"}, "Rules must be a list"),
        ([{"type": "dropForever"}] * 101, "at most 100"),
        ([{"type": "foo"}], "[0] type must be one of loadForever"),
        ([{"type": "broadcastForever"}], "type must be one of"),
        ([{}], "type must be one of"),
        (["dropForever"], "has the wrong type"),
        ([{"type": "loadForever"}, {"type": "loadByPeriod", "period": "x"}], "[1].period must be an ISO 8601 period"),
        ([{"type": "loadByPeriod"}], "[0].period is missing"),
        ([{"type": "loadByPeriod", "period": "P999999Y"}], "must be an ISO 8601 period"),
        ([{"type": "dropByInterval", "interval": "2012"}], "must be like 2025-06-01/2025-07-01"),
        (
            [{"type": "loadForever"}, {"type": "dropByInterval", "interval": "2024-01-01/2024"}],
            "[1].interval is empty",
        ),
        ([{"type": "dropForever", "period": "P1D"}], "[0].period is not a field of this rule"),
        (
            [{"type": "loadForever", "tieredReplicants": {"hot": 1, "cold": -1}}],
            "[0].tieredReplicants.cold must not be negative",
        ),
        ([{"type": "loadByPeriod", "period": None}], "[0].period has the wrong type"),
        (
            [{"type": "loadForever", "tieredReplicants": [], "useDefaultTierForNull": False}],
            "[0].tieredReplicants has the wrong type",
        ),
    ],
)
def test_what_is_no_rule_is_refused_by_name(document: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_rules(document)
    said = " ".join([refused.value.detail, *(f"{e.path} {e.message}" for e in refused.value.errors)])
    assert message in said
    assert "pydantic" not in said


@pytest.fixture
def source(db: None) -> Source:
    await_a_long_day()
    found = make_source("flights")
    epoch = start(found)
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    for ago in (0, 3, 40):
        send(request(epoch, segments=[segment({0: [(ago * 10, ago * 10 + 5)]}, today - timedelta(days=ago))]))
    return found


OLDER_THAN_A_WEEK = [{"type": "loadByPeriod", "period": "P7D"}, {"type": "dropForever"}]


def test_rules_take_segments_out_of_use_and_say_so(source: Source) -> None:
    datasource = source.datasource
    oldest = Segment.objects.order_by("interval_start")[0]
    rules = read_rules(OLDER_THAN_A_WEEK)
    seen = rule_runner.preview(datasource, rules)
    assert (seen.amount, seen.intervals) == (Amount(1, 5, 50), 1)
    assert (seen.oldest, seen.newest) == (oldest.interval_start, oldest.interval_end)
    assert celery_tasks.apply_rules() == 0  # nothing is set yet
    assert len(list_segments(datasource)) == 3
    rule_runner.set_rules(user=ROOT, datasource=datasource, rules=rules, comment="a week")
    assert celery_tasks.apply_rules() == 1
    assert celery_tasks.apply_rules() == 0
    assert oldest.pk not in {s.pk for s in list_segments(datasource)}
    removal = Removal.objects.get()
    assert (removal.by, removal.what, removal.rows) == ("a rule", "dropForever", 5)
    assert Interval.objects.get(start=oldest.interval_start).rows == 0
    [fate] = record_fate(ROOT, topic="topic", partition=0, offset=402)
    assert fate.explanation.startswith("Stored, then removed by a rule at ")
    assert AuditEntry.objects.get().action == "set_rules"
    assert RuleChange.objects.get().comment == "a week"


def test_the_sites_rules_are_asked_after_a_datasources_own(source: Source) -> None:
    others = make_source("others", group="other").datasource
    keeps = read_rules([{"type": "loadByPeriod", "period": "P10D"}])
    rule_runner.set_rules(user=ROOT, datasource=source.datasource, rules=keeps)
    rule_runner.set_rules(user=ROOT, datasource=None, rules=read_rules([{"type": "dropForever"}]))
    rule_runner.set_rules(
        user=ROOT, datasource=None, rules=read_rules([{"type": "dropBeforeByPeriod", "period": "P30D"}])
    )
    assert RuleSet.objects.filter(datasource=None).count() == 1
    assert rule_runner.preview(others, []).intervals == 0
    assert celery_tasks.apply_rules() == 1
    assert len(list_segments(source.datasource)) == 2


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json", headers={"X-Druid-Comment": "why"})


def test_druids_addresses(cast: Cast, clients: dict[str, Client]) -> None:
    owner = clients["owner"]
    forever = {"tieredReplicants": {"_default_tier": 2}, "useDefaultTierForNull": True, "type": "loadForever"}
    assert owner.get(RULES).json() == {"_default": [forever]}
    assert owner.get(f"{RULES}/flights").json() == []
    assert owner.get(f"{RULES}/flights?full").json() == [forever]
    assert post(owner, f"{RULES}/flights", [{"type": "dropForever"}]).status_code == 200
    assert owner.get(f"{RULES}/flights").json() == [{"type": "dropForever"}]
    assert owner.get(f"{RULES}/flights?full").json() == [{"type": "dropForever"}, forever]
    assert owner.get(RULES).json() == {"_default": [forever], "flights": [{"type": "dropForever"}]}
    assert post(owner, f"{RULES}/flights", [{"type": "foo"}]).status_code == 400
    assert post(owner, f"{RULES}/_default", []).status_code == 403
    assert post(clients["superuser"], f"{RULES}/_default", [{"type": "loadForever"}]).status_code == 200
    [change] = owner.get(f"{RULES}/flights/history").json()
    assert (change["key"], change["type"], json.loads(change["payload"])) == (
        "flights",
        "rules",
        [{"type": "dropForever"}],
    )
    assert (change["auditInfo"]["author"], change["auditInfo"]["comment"]) == ("owner", "why")
    assert owner.get(f"{RULES}/flights/history?count=x").status_code == 400
    assert RuleSet.objects.get(datasource__name="flights").rules == [{"type": "dropForever"}]


def test_over_rest_they_are_looked_at_before_they_are_set(cast: Cast, clients: dict[str, Client]) -> None:
    path = "/api/v1/datasources/flights/rules/"
    owner = clients["owner"]
    assert owner.get(path).json()["rules"] == []
    seen = post(owner, f"{path}preview/", {"rules": [{"type": "dropByInterval", "interval": "2013-01-01/P2D"}]}).json()
    assert seen == {
        "segments": 3,
        "rows": 1200,
        "size_bytes": 12000,
        "intervals": 2,
        "oldest": "2013-01-01T00:00:00Z",
        "newest": "2013-01-03T00:00:00Z",
    }
    assert not RuleSet.objects.exists()
    answer = owner.put(path, {"rules": [{"type": "dropForever"}]}, content_type="application/json")
    assert answer.json()["rules"] == [{"type": "dropForever"}]
    assert post(owner, f"{path}preview/", {"rules": [{"type": "foo"}]}).status_code == 400


def test_the_page_shows_rules_what_goes_and_when(cast: Cast, clients: dict[str, Client], client: Client) -> None:
    client.force_login(cast.users["viewer"])
    text = client.get("/datasources/flights/retention/").content.decode()
    assert "There are no unused segments." in text
    assert "These rules mark nothing unused now." in text
    rules = [{"type": "dropByInterval", "interval": "2013-01-01/P1D"}]
    clients["owner"].put("/api/v1/datasources/flights/rules/", {"rules": rules}, content_type="application/json")
    text = client.get("/datasources/flights/retention/").content.decode()
    assert "marks 2 segments unused: 900 rows" in text
    celery_tasks.apply_rules()
    text = client.get("/datasources/flights/retention/").content.decode()
    assert "removed by a rule: dropByInterval 2013-01-01T00:00:00.000Z/2013-01-02T00:00:00.000Z" in text
    since = Segment.objects.filter(used=False)[0].unused_at
    assert since is not None
    assert f"{since + timedelta(days=30):%Y-%m-%d %H:%M}" in text
    assert "These rules mark nothing unused now." in text


def test_over_rest_a_fault_is_told_where_it_stands(clients: dict[str, Client]) -> None:
    for part, ask in (("preview/", clients["owner"].post), ("", clients["owner"].put)):
        body = {"rules": [{"type": "loadForever"}, {"type": "loadByPeriod", "period": "1M"}]}
        told = ask(f"/api/v1/datasources/flights/rules/{part}", body, content_type="application/json")
        assert told.status_code == 400
        assert [(e["pointer"], e["path"]) for e in told.json()["errors"]] == [("/rules/1/period", "rules[1].period")]
