"""Druid's addresses of datasources: the shapes that a real Druid 33 answers, as OpenAPI says them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from controlplane.segments.models import Interval, Segment
from tests.support.django_cast import Cast

C = "/druid/coordinator/v1/"
DAY = "2013-01-01T00:00:00.000Z/2013-01-02T00:00:00.000Z"
# Address, where OpenAPI says what it answers, and what it must hold.
READ = [
    ("datasources", "datasources"),
    ("datasources?simple", "datasources"),
    ("datasources?full", "datasources"),
    ("datasources/flights", "datasources/{name}"),
    ("datasources/flights?full", "datasources/{name}"),
    ("datasources/flights/intervals", "datasources/{name}/intervals"),
    ("datasources/flights/intervals?simple", "datasources/{name}/intervals"),
    ("datasources/flights/intervals?full", "datasources/{name}/intervals"),
    ("datasources/flights/intervals/2013-01-01_2013-01-02", "datasources/{name}/intervals/{interval}"),
    ("datasources/flights/intervals/2013-01-01_2013-01-02?full", "datasources/{name}/intervals/{interval}"),
    ("datasources/flights/segments", "datasources/{name}/segments"),
    ("datasources/flights/segments?full", "datasources/{name}/segments"),
    ("datasources/flights/segments/{segment}", "datasources/{name}/segments/{segment_id}"),
    ("datasources/flights/tiers", "datasources/{name}/tiers"),
    ("datasources/flights/loadstatus?forceMetadataRefresh=true", "datasources/{name}/loadstatus"),
    ("loadstatus", "loadstatus"),
    ("loadstatus?full", "loadstatus"),
    ("metadata/datasources", "metadata/datasources"),
    ("metadata/datasources?full", "metadata/datasources"),
    ("metadata/datasources/flights", "metadata/datasources/{name}"),
    ("metadata/datasources/flights/segments?full", "metadata/datasources/{name}/segments"),
    ("metadata/datasources/flights/segments/{segment}", "metadata/datasources/{name}/segments/{segment_id}"),
    ("metadata/datasources/flights/unusedSegments", "metadata/datasources/{name}/unusedSegments"),
    ("metadata/segments", "metadata/segments"),
    ("metadata/segments?datasources=flights&includeOvershadowedStatus", "metadata/segments"),
]


def got(owner: Client, path: str) -> Any:
    answer = owner.get(C + path)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_all_is_as_openapi_says(owner: Client, cast: Cast) -> None:
    document = owner.get("/api/schema/", headers={"Accept": "application/vnd.oai.openapi+json"}).json()
    Segment.objects.filter(pk=cast.segments[3].pk).update(used=False, unused_at=cast.segments[3].created_at)
    for path, pattern in READ:
        told = got(owner, path.replace("{segment}", cast.segments[0].identifier))
        assert told, path
        said = document["paths"][C + pattern]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        errors = Draft202012Validator({**said, "components": document["components"]}).iter_errors(told)
        assert [f"{path}: {e.message}"[:500] for e in errors] == []


def test_datasources_and_their_intervals(owner: Client, cast: Cast) -> None:
    assert got(owner, "datasources") == ["flights"]
    assert got(owner, "datasources/flights") == {
        "tiers": {"_default_tier": {"size": 15000, "replicatedSize": 15000, "segmentCount": 4}},
        "segments": {
            "maxTime": "2013-01-04T00:00:00.000Z",
            "size": 15000,
            "minTime": "2013-01-01T00:00:00.000Z",
            "count": 4,
            "replicatedSize": 15000,
        },
    }
    intervals = got(owner, "datasources/flights/intervals")
    assert intervals == sorted(intervals, reverse=True)
    assert intervals[-1] == DAY
    assert got(owner, "datasources/flights/intervals/2013-01-01_2013-01-02?simple") == {DAY: {"size": 9000, "count": 2}}
    assert got(owner, "loadstatus") == {"flights": 100.0}
    assert got(owner, "loadstatus?simple") == {"flights": 0}


def test_a_segment_in_druids_form(owner: Client, cast: Cast) -> None:
    first, second = cast.segments[:2]
    told = got(owner, f"datasources/flights/segments/{second.identifier}")
    assert told == {
        "metadata": {
            "dataSource": "flights",
            "interval": DAY,
            "version": first.version,
            "loadSpec": {"type": "parquet", "path": second.path},
            "dimensions": "carrier",
            "metrics": "",
            "shardSpec": {"type": "numbered", "partitionNum": 1, "partitions": 0},
            "binaryVersion": 9,
            "size": 4000,
            "identifier": second.identifier,
        },
        "servers": [],
    }
    assert got(owner, "datasources/flights/segments")[:2] == [first.identifier, second.identifier]
    within = owner.post(
        f"{C}metadata/datasources/flights/segments", ["2013-01-01/PT1H"], content_type="application/json"
    )
    assert within.json() == [first.identifier, second.identifier]


@pytest.mark.parametrize("root", [f"{C}datasources", "/druid/indexer/v1/datasources"])
def test_marking(owner: Client, cast: Cast, root: str, settings: Any) -> None:
    settings.DEEP_STORAGE = "s3://elsewhere/segments"
    one = f"{root}/flights/segments/{cast.segments[0].identifier}"

    def post(path: str, **body: Any) -> Any:
        return owner.post(f"{root}/flights/{path}", body, content_type="application/json").json()

    day = "2013-01-01/2013-01-02"
    assert post("markUnused", interval=day) == {"numChangedSegments": 2, "segmentStateChanged": True}
    assert post("markUnused", interval=day) == {"numChangedSegments": 0, "segmentStateChanged": False}
    unused = got(owner, "metadata/datasources/flights/unusedSegments")
    assert [u["dataSegment"]["identifier"] for u in unused] == sorted(
        (s.identifier for s in cast.segments[:2]), key=lambda i: [s.pk for s in cast.segments if s.identifier == i]
    )
    assert not any(u["used"] for u in unused)
    assert owner.get(f"{C}datasources/flights/segments/{cast.segments[0].identifier}").status_code == 404
    assert post("markUsed", segmentIds=[cast.segments[0].identifier])["numChangedSegments"] == 1
    assert owner.delete(one).json() == {"segmentStateChanged": True}
    assert owner.delete(one).json() == {"segmentStateChanged": False}
    assert owner.post(one).json() == {"segmentStateChanged": True}
    assert post("markUnused", interval=day, versions=["another"])["numChangedSegments"] == 0
    assert owner.delete(f"{root}/flights").json()["numChangedSegments"] == 3
    assert got(owner, "datasources") == got(owner, "metadata/datasources") == []
    assert got(owner, "metadata/datasources?includeUnused") == ["flights"]
    assert owner.post(f"{root}/flights").json()["numChangedSegments"] == 4
    assert sum(Interval.objects.values_list("rows", flat=True)) == 1500


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "Give an interval or segment ids"),
        ({"interval": "2013-01-01/2013-01-02", "segmentIds": []}, "Give an interval or segment ids"),
        ({"interval": "x"}, "must be like"),
        ({"interval": ["2013-01-01/2013-01-02"]}, "string"),
        ({"segmentIds": ["nope"]}, "not the id of a segment"),
        ({"what": 1}, "unknown field"),
    ],
)
def test_what_is_not_clear_changes_nothing(owner: Client, cast: Cast, body: Any, message: str) -> None:
    for what in ("markUnused", "markUsed"):
        answer = owner.post(f"{C}datasources/flights/{what}", body, content_type="application/json")
        assert answer.status_code == 400
        assert message in answer.json()["errorMessage"]
    assert Segment.objects.filter(used=True).count() == 4


ODD = [
    "datasources/flights/segments/nope",
    "datasources/flights/intervals/nope",
    "datasources/flights/loadstatus",
    "metadata/segments?datasources=x",
    "metadata/datasources/flights/unusedSegments?limit=0",
]


@pytest.mark.parametrize("path", ODD)
def test_odd_questions_are_refused(owner: Client, cast: Cast, path: str) -> None:
    answer = owner.get(C + path)
    assert answer.status_code in (400, 404)
    assert answer.json()["error"] == "druidException"
