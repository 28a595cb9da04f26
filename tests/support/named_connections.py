"""Tests make named connections over REST, and specs that name them."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from tests.support.django_cast import spec_for

CONNECTIONS, TASKS, SUPERVISORS = "/api/v1/connections/", "/api/v1/tasks/", "/api/v1/supervisors/"
CANARY = "canary-4711"
LOGIN = {
    "bootstrap.servers": "10.0.0.1:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "me",
}
REGISTRY = {
    "url": "http://10.0.0.1:8081",
    "config": {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": f"fred:{CANARY}"},
    "headers": {"X-Key": CANARY},
}


def send(client: Client, method: str, path: str, document: Any = None, **headers: str) -> Any:
    text = "" if document is None else json.dumps(document)
    return client.generic(method, path, text, content_type="application/json", headers=headers)


def made(client: Client, name: str = "secured", kind: str = "kafka", properties: Any = None) -> Any:
    properties = {**LOGIN, "sasl.password": CANARY} if properties is None else properties
    answer = send(client, "POST", CONNECTIONS, {"name": name, "kind": kind, "properties": properties})
    assert answer.status_code == 201, answer.content
    return answer


def faults(answer: Any) -> dict[str, str]:
    assert answer.status_code == 400, answer.content
    return {e["pointer"]: e["detail"] for e in answer.json()["errors"]}


def naming(name: str = "flights", connection: str = "secured", **io_config: Any) -> dict[str, Any]:
    """A spec that names a connection; ``consumerProperties`` is what stands beside it."""
    spec = spec_for(name, connection=connection, **io_config)
    if "consumerProperties" not in io_config:
        del spec["ioConfig"]["consumerProperties"]
    return spec
