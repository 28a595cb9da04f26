"""Kafka's properties, read as a spec's: what is kept of them, what a client gets, and what is refused where."""

from __future__ import annotations

from typing import Any

import pytest

from ingestion.specs.errors import SpecError
from ingestion.specs.kafka.properties import librdkafka_properties
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.unit.test_specs import changed

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
CANARY = "canary-4711"


def read(**properties: Any) -> dict[str, Any]:
    """The properties as the spec keeps them."""
    given = {"bootstrap.servers": "k:9092", **properties}
    return parse_task_spec(changed(("ioConfig/consumerProperties", given))).spec.ioConfig.consumerProperties


def for_client(properties: dict[str, Any]) -> dict[str, str]:
    """What librdkafka gets, without the servers; and given it again, it is the same."""
    found = librdkafka_properties(read(**properties))
    assert librdkafka_properties(found) == found
    return {name: value for name, value in found.items() if name != "bootstrap.servers"}


def faults(**properties: Any) -> dict[str, str]:
    """Pointer below consumerProperties → message."""
    with pytest.raises(SpecError) as caught:
        read(**properties)
    assert CANARY not in str(caught.value)
    return by_pointer(caught.value)


def by_pointer(error: SpecError) -> dict[str, str]:
    return {i.pointer.removeprefix("/ioConfig/consumerProperties"): i.message for i in error.issues}
