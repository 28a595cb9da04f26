"""What pages, REST and Druid's addresses show of a supervisor with a ``topicPattern`` and of its topics."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from controlplane.common.errors import InvalidInput
from controlplane.publishing.models import IndexerFence
from controlplane.supervisors import offset_reset
from controlplane.supervisors.completeness import completeness
from controlplane.supervisors.lag import observe_waiting
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.overview import overview
from controlplane.supervisors.run import iterate
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.topic_patterns import V1, a_spec, rounds, submitted, tasks_of, topics_of

DRUID = "/druid/indexer/v1/supervisor"


def test_rest_and_druid_tell_of_all_topics(cast: Cast, clients: dict[str, Client], broker: Broker, stem: str) -> None:
    for last, partitions in (("a", 1), ("b", 2)):
        broker.make_topic(f"{stem}-{last}", partitions=partitions)
        broker.produce(f"{stem}-{last}", [b"{}"] * 4, partition=0)
    supervisor = submitted(cast, broker, stem, useEarliestOffset=False)
    iterate()
    iterate()
    rounds()
    for child, published in zip(topics_of(supervisor).values(), (3, 4), strict=True):
        [task] = tasks_of(child)
        IndexerFence.objects.create(
            task_id=task.pk, number=0, datasource=child.datasource, polled=published, published=published
        )
    broker.produce(f"{stem}-b", [b"{}"] * 2, partition=1)
    observe_waiting()
    shown = clients["viewer"].get(f"{V1}{stem}/").json()
    assert (shown["totals"]["published"], shown["totals"]["polled"]) == (7, 7)
    assert (shown["topic"], shown["topic_pattern"], shown["reads_for"]) == ("", f"{stem}-.*", None)
    assert [(t["topic"], t["supervisor"]) for t in shown["topics"]] == [
        (f"{stem}-{last}", f"{stem}:{stem}-{last}") for last in "ab"
    ]
    assert clients["viewer"].get(f"{V1}{stem}:{stem}-a/").json()["reads_for"] == stem
    assert clients["outsider"].get(f"{V1}{stem}:{stem}-a/").status_code == 404
    lag = clients["viewer"].get(f"{V1}{stem}/lag/").json()
    assert lag["partitions"] == []
    payload = clients["viewer"].get(f"{DRUID}/{stem}/status").json()["payload"]
    assert (payload["stream"], payload["partitions"]) == (f"{stem}-.*", 3)
    assert payload["minimumLag"] == {f"{stem}-a:0": 0, f"{stem}-b:0": 0, f"{stem}-b:1": 2}
    assert payload["latestOffsets"] == {f"{stem}-a:0": 4, f"{stem}-b:0": 4, f"{stem}-b:1": 2}
    assert payload["aggregateLag"] == 2
    offsets = [t["currentOffsets"] for t in payload["activeTasks"]]
    assert offsets == [{f"{stem}-a:0": 4}, {f"{stem}-b:0": 4, f"{stem}-b:1": 0}]
    spec = clients["viewer"].get(f"{DRUID}/{stem}").json()
    assert spec["ioConfig"]["topicPattern"] == f"{stem}-.*"
    assert len(clients["viewer"].get(f"{DRUID}/{stem}/stats").json()["0"]) == 2
    with pytest.raises(InvalidInput, match="Reset the offsets of one topic at its own supervisor"):
        offset_reset.reset_offsets(user=cast.users["owner"], supervisor=supervisor, offsets={0: 0})
    offset_reset.reset(user=cast.users["owner"], supervisor=supervisor)
    found = completeness(supervisor.datasource)
    assert [r.topic for r in found.readers] == [f"{stem}-a", f"{stem}-b"]


def test_what_is_wrong_with_a_topic_is_told_once(cast: Cast, broker: Broker, stem: str) -> None:
    broker.make_topic(f"{stem}-a", partitions=1)
    supervisor = submitted(cast, broker, stem)
    iterate()
    [child] = topics_of(supervisor).values()
    Supervisor.objects.filter(pk=child.pk).update(detailed_state="UNHEALTHY_TASKS", failures=3)
    Supervisor.objects.filter(pk=supervisor.pk).update(detailed_state="UNHEALTHY_TASKS")
    problems = overview(cast.users["owner"]).problems
    assert [p.name for p in problems if p.name.startswith(stem)] == [child.pk]


def test_the_pages_name_it_and_its_topics(cast: Cast, broker: Broker, stem: str) -> None:
    topic = broker.make_topic(f"{stem}-a", partitions=1)
    broker.make_topic(f"{stem}-b", partitions=1)
    owner = browsing_as(cast, "owner")
    checked = {"document": json.dumps(a_spec(broker, stem)), "check": "1"}
    asked = parsed(owner.post("/supervisors/-/new/", checked)).one("div", data_topics="2")
    assert f"matches 2 topics now: {stem}-a, {stem}-b." in asked.text
    assert not Supervisor.objects.filter(pk=stem).exists()
    submitted(cast, broker, stem)
    iterate()
    child = f"{stem}:{topic}"
    table = parsed(owner.get(f"/supervisors/{stem}/")).one(id="supervisor-topics")
    assert [row.attributes["data-topic"] for row in table.one("tbody").all("tr")] == [f"{stem}-a", f"{stem}-b"]
    assert table.one("tr", data_topic=topic).one("a", href=f"/supervisors/{child}/")
    for part in ("", "live/", "lag/", "lag.json", "autoscaler/", "spec/"):
        for name in (stem, child):
            assert owner.get(f"/supervisors/{name}/{part}").status_code == 200
    page = parsed(owner.get(f"/supervisors/{child}/"))
    assert page.one("main").one("a", href=f"/supervisors/{stem}/")
    buttons = {b.text.strip() for b in page.one(id="supervisor-head").all("a") if "/confirm/" in str(b.attributes)}
    assert not buttons & {"Suspend", "Scale", "Terminate"}
    assert owner.get("/supervisors/-/new/", {"from": child}).status_code == 409
    assert owner.post(f"/supervisors/{child}/suspend/", follow=True).status_code in (200, 409)
    assert not Supervisor.objects.get(pk=child).suspended
    rows = parsed(owner.get("/supervisors/", {"search": stem})).one("tbody").all("tr")
    assert [row.attributes["data-supervisor"] for row in rows] == [stem, child, f"{stem}:{stem}-b"]
    assert rows[1].one("td", data_col="topic").one("a", href=f"/supervisors/{stem}/")
    assert owner.get("/").status_code == 200
