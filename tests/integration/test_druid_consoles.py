"""What Druid's console and exporters ask beside supervisors and tasks: true answers, in the shapes of OpenAPI."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from controlplane.datasources.masking import set_masks
from controlplane.quarantine.models import QuarantinedRecord
from tests.support.django_cast import PAYLOAD, Cast

C, D = "/druid/coordinator/v1/", "/druid/indexer/v1/"
DAY = "2013-01-01T00:00:00.000Z/2013-01-02T00:00:00.000Z"
CONFIG = {"dataSource": "flights", "skipOffsetFromLatest": "PT1H"}
# Address, where OpenAPI says what it answers, and the answer.
ANSWERS: list[tuple[str, str, Any]] = [
    (f"{C}servers", f"{C}servers", []),
    (f"{C}servers?simple", f"{C}servers", []),
    (f"{C}tiers", f"{C}tiers", ["_default_tier"]),
    (f"{C}tiers?simple", f"{C}tiers", {"_default_tier": {"currSize": 0, "maxSize": 0}}),
    (f"{C}loadqueue?simple", f"{C}loadqueue", {}),
    (
        f"{C}cluster",
        f"{C}cluster",
        {
            "coordinator": [{"host": "testserver", "service": "druid/coordinator", "plaintextPort": 80}],
            "overlord": [{"host": "testserver", "service": "druid/overlord", "plaintextPort": 80}],
            "broker": [],
            "historical": [],
        },
    ),
    (
        f"{D}worker",
        f"{D}worker",
        {
            "type": "default",
            "selectStrategy": {"type": "equalDistribution", "affinityConfig": None},
            "autoScaler": None,
        },
    ),
    (f"{D}compaction/isSupervisorEnabled", f"{D}compaction/isSupervisorEnabled", True),
    (
        f"{D}compaction/config/datasources",
        f"{D}compaction/config/datasources",
        {"compactionConfigs": []},
    ),
]


@pytest.fixture
def document(owner: Client) -> Any:
    return owner.get("/api/schema/", headers={"Accept": "application/vnd.oai.openapi+json"}).json()


def faults(document: Any, pattern: str, told: Any) -> list[str]:
    said = document["paths"][pattern]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    errors = Draft202012Validator({**said, "components": document["components"]}).iter_errors(told)
    return [f"{pattern}: {e.message}"[:500] for e in errors]


def test_what_there_is_none_of_is_empty(owner: Client, document: Any) -> None:
    for path, pattern, expected in ANSWERS:
        told = owner.get(path)
        assert (told.status_code, told.json()) == (200, expected), path
        assert faults(document, pattern, told.json()) == []
    scaling = owner.get(f"{D}scaling")
    assert (scaling.status_code, scaling.content) == (200, b"")
    config = owner.get(f"{C}config").json()
    assert (config["maxSegmentsToMove"], config["pauseCoordination"]) == (0, False)
    assert faults(document, f"{C}config", config) == []


def test_intervals_of_all_datasources_that_one_may_see(clients: dict[str, Client], document: Any) -> None:
    told = clients["viewer"].get(f"{C}intervals").json()
    assert list(told) == sorted(told, reverse=True)
    assert told[DAY] == {"flights": {"size": 9000, "count": 2}}
    assert faults(document, f"{C}intervals", told) == []
    assert clients["outsider"].get(f"{C}intervals").json() == {}


def test_compaction_at_the_overlords_addresses(owner: Client, document: Any) -> None:
    here, there = f"{D}compaction/", f"{C}config/compaction"
    assert owner.post(there, CONFIG, content_type="application/json").status_code == 200
    configs = owner.get(f"{here}config/datasources").json()
    assert configs == {"compactionConfigs": [owner.get(f"{there}/flights").json()]}
    assert owner.get(f"{here}config/datasources/flights").json() == configs["compactionConfigs"][0]
    history = owner.get(f"{here}config/datasources/flights/history").json()
    assert history == {"entries": owner.get(f"{there}/flights/history").json()}
    assert len(history["entries"]) == 1
    [status] = owner.get(f"{here}status/datasources").json()["latestStatus"]
    assert owner.get(f"{here}status/datasources/flights").json() == status
    assert owner.get(f"{C}compaction/status?dataSource=flights").json() == {"latestStatus": [status]}
    name = f"{here}config/datasources/{{name}}/history"
    assert faults(document, name, history) == []
    assert owner.delete(f"{here}config/datasources/flights").status_code == 200
    assert owner.get(f"{here}config/datasources/flights").status_code == 404


def test_a_supervisors_parse_errors_are_those_of_its_running_tasks(
    cast: Cast, clients: dict[str, Client], document: Any
) -> None:
    address = f"{D}supervisor/flights/parseErrors"
    told = clients["viewer"].get(address).json()
    [record] = QuarantinedRecord.objects.all()
    assert [(one["input"], one["errorType"], one["details"]) for one in told] == [
        (PAYLOAD.decode(), "unparseable", [record.error])
    ]
    assert faults(document, f"{D}supervisor/{{supervisor_id}}/parseErrors", told) == []
    set_masks(user=cast.users["owner"], datasource=cast.datasource, masks={"flight": "admin"})
    [hidden] = clients["viewer"].get(address).json()
    assert (hidden["input"], PAYLOAD.decode() in str(hidden)) == ("", False)
    cast.task.status = "SUCCESS"
    cast.task.save()
    assert clients["viewer"].get(address).json() == []
