"""A changed spec is tried on the topic's newest records, too: it may help the quarantine and harm what comes in."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from django.test import Client

from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import Source
from controlplane.supervisors import live_trial
from controlplane.supervisors.services import submit_supervisor
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.html import parsed
from tests.support.permission_table import CAUSE_OF_CAST

FIX = f"/datasources/flights/quarantine/fix/?cause={CAUSE_OF_CAST}"
TRY = "/api/v1/datasources/flights/quarantine/try/"
WITH_AT, WITH_TIME = 20, 40
QUARANTINED = b'{"at": "2025-01-01T00:00:00Z"}'


def timed_by(spec: dict[str, Any], column: str) -> dict[str, Any]:
    document = copy.deepcopy(spec)
    document["dataSchema"]["timestampSpec"] = {"column": column, "format": "auto"}
    return document


@pytest.fixture
def kept(cast: Cast) -> Cast:
    """One record whose time stands in ``at`` waits in the quarantine."""
    QuarantinedRecord.objects.filter(pk=cast.quarantined.pk).update(payload=QUARANTINED)
    return cast


@pytest.fixture
def live(kept: Cast, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The spec in force reads the field ``__time``, which two thirds of the topic's records have."""
    monkeypatch.setattr(live_trial, "READ_MS", 15_000)  # a busy machine reads all of them, too
    topic = broker.topic("live")
    lines = [{"at": "2025-01-01"}] * WITH_AT + [{"__time": "2025-01-01"}] * WITH_TIME
    broker.produce(topic, [json.dumps(line).encode() for line in lines])
    spec = spec_for("flights", topic=topic, consumerProperties={"bootstrap.servers": broker.bootstrap})
    spec = timed_by(spec, "__time")
    Source.objects.filter(pk=kept.source.pk).update(topic=topic)
    submit_supervisor(user=kept.users["owner"], document=spec)
    return spec


def tried(client: Client, spec: dict[str, Any]) -> Any:
    answer = client.post(TRY, {"cause": CAUSE_OF_CAST, "spec": spec}, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_change_that_harms_the_live_topic_is_red(
    kept: Cast, live: dict[str, Any], clients: dict[str, Client]
) -> None:
    harmful = timed_by(live, "at")
    page = parsed(browsing_as(kept, "operator").post(FIX, {"document": json.dumps(harmful), "try": "1"}))
    [warning] = page.all("div", class_="alert-danger")
    assert warning.attributes["data-live-tried"] == str(WITH_AT + WITH_TIME)
    assert f"{WITH_AT} of the topic's {WITH_AT + WITH_TIME} newest records would become rows" in warning.text
    assert f"with the current spec, {WITH_TIME} do" in warning.text
    [asked] = parsed(browsing_as(kept, "owner").post(FIX, {"document": json.dumps(harmful), "confirm": "1"})).all(
        "div", class_="alert-danger"
    )
    assert asked.attributes["data-live-passing"] == str(WITH_AT)
    found = tried(clients["operator"], harmful)
    assert (found["tried"], found["passing"], found["failing"]) == (1, 1, 0)
    assert found["live"] == {
        "tried": WITH_AT + WITH_TIME, "passing": WITH_AT, "passing_now": WITH_TIME, "failing": WITH_TIME,
        "worse": True, "failure": "",
    }  # fmt: skip


def test_a_change_that_reads_more_is_not_red(kept: Cast, live: dict[str, Any], clients: dict[str, Client]) -> None:
    better = timed_by(live, "__time")
    better["dataSchema"]["timestampSpec"]["missingValue"] = "2025-01-01"
    found = tried(clients["operator"], better)["live"]
    assert (found["passing"], found["passing_now"], found["worse"]) == (WITH_AT + WITH_TIME, WITH_TIME, False)
    page = parsed(browsing_as(kept, "operator").post(FIX, {"document": json.dumps(better), "try": "1"}))
    assert page.all("div", class_="alert-danger") == []
