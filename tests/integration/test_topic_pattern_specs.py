"""Specs with a ``topicPattern`` that are refused: what is said of them, and that nothing is made."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from controlplane.common.errors import InvalidInput
from controlplane.supervisors import services
from controlplane.supervisors.models import Supervisor
from tests.support.broker import Broker
from tests.support.django_cast import Cast
from tests.support.topic_patterns import V1, a_spec


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": "both"}, "one of the two"),
        ({"topicPattern": None}, "required field is missing"),
        ({"topicPattern": "a(?=b)"}, "is not supported"),
        ({"topicPattern": "a++"}, "is not supported"),
        ({"topicPattern": "("}, "is not supported"),
        ({"topicPattern": 7}, "must be a text"),
    ],
)
def test_a_bad_pattern_changes_nothing(
    cast: Cast, clients: dict[str, Client], broker: Broker, stem: str, given: dict[str, Any], said: str
) -> None:
    spec = a_spec(broker, stem)
    spec["ioConfig"] |= given
    answer = clients["owner"].post(V1, spec, content_type="application/json")
    [error] = answer.json()["errors"]
    assert (answer.status_code, error["path"].rsplit(".", 1)[0], said in error["detail"]) == (400, "ioConfig", True)
    assert not Supervisor.objects.filter(pk=stem).exists()


def test_tasks_and_samples_are_of_one_topic(cast: Cast, clients: dict[str, Client], broker: Broker, stem: str) -> None:
    spec = a_spec(broker, stem)
    for address, kind in (("/api/v1/tasks/", "index_kafka"), ("/druid/indexer/v1/sampler", "kafka")):
        answer = clients["owner"].post(address, {**spec, "type": kind}, content_type="application/json")
        assert answer.status_code == 400
        assert "is for supervisors" in answer.content.decode()


def test_the_id_leaves_room_for_its_topics(cast: Cast, broker: Broker) -> None:
    spec = a_spec(broker, "d" * 161)
    with pytest.raises(InvalidInput, match="160 characters"):
        services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
