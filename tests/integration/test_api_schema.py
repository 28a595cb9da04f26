"""OpenAPI says what is answered: real answers of Druid's addresses, held against their schemas."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Status, Task
from tests.support.django_cast import STARTED, Cast, spec_for

DRUID = "/druid/indexer/v1/"
GETS = (
    "tasks",
    "task/{task_id}",
    "task/{task_id}/status",
    "totalWorkerCapacity",
    "supervisor",
    "supervisor?full",
    "supervisor?state=true",
    "supervisor/history",
    "supervisor/{supervisor_id}",
    "supervisor/{supervisor_id}/status",
    "supervisor/{supervisor_id}/health",
    "supervisor/{supervisor_id}/stats",
    "supervisor/{supervisor_id}/history",
)
POSTS = (
    "task/{task_id}/shutdown",
    "supervisor/{supervisor_id}/taskGroups/handoff",
    "supervisor/{supervisor_id}/suspend",
    "supervisor/{supervisor_id}/resume",
    "supervisor/suspendAll",
    "supervisor/resumeAll",
    "supervisor/{supervisor_id}/terminate",
    "supervisor/terminateAll",
)


@cache
def asked() -> dict[str, Any]:
    """What the address answers, once for all tests: it does not change."""
    found: dict[str, Any] = Client().get("/api/schema/", headers={"Accept": "application/vnd.oai.openapi+json"}).json()
    return found


@pytest.fixture
def document(db: None) -> dict[str, Any]:
    return asked()


def check(document: dict[str, Any], method: str, pattern: str, answer: Any) -> None:
    """The answer is what the document says of it, and the document does say something."""
    said = document["paths"][DRUID + pattern.partition("?")[0]][method]["responses"][str(answer.status_code)]
    schema = said["content"]["application/json"]["schema"]
    assert schema not in ({}, {"type": "object", "additionalProperties": {}}), f"{pattern}: says nothing"
    Draft202012Validator.check_schema(schema)
    errors = Draft202012Validator({**schema, "components": document["components"]}).iter_errors(answer.json())
    assert [f"{pattern}: {'/'.join(map(str, e.absolute_path))}: {e.message}"[:500] for e in errors] == []


@pytest.fixture
def everything(cast: Cast) -> None:
    """Tasks that wait, run, ended well and badly; a supervisor that was terminated, and one with errors."""
    for status, error in ((Status.PENDING, ""), (Status.SUCCESS, ""), (Status.FAILED, "It failed.")):
        ended = None if status == Status.PENDING else STARTED
        values = {**_values(cast.task), "id": f"task-{status}", "status": status, "error": error, "ended_at": ended}
        Task.objects.create(**values)
    Task.objects.create(**{**_values(cast.task), "id": "repair", "kind": Task.Kind.REPAIR})
    event = {"at": STARTED.isoformat(), "class": "KafkaProblem", "message": "away", "stream": True, "stack": ""}
    Supervisor.objects.filter(pk="flights").update(
        run_errors=[event], terminations=[{"at": STARTED.isoformat(), "by": "owner"}]
    )


def _values(task: Task) -> dict[str, Any]:
    names = ("kind", "datasource", "supervisor_id", "spec_version", "spec", "indexers_wanted", "slots", "created_at")
    return {name: getattr(task, name) for name in names}


@pytest.mark.parametrize("pattern", GETS)
def test_what_is_read_is_as_described(
    pattern: str, document: dict[str, Any], everything: None, cast: Cast, clients: dict[str, Client]
) -> None:
    path = DRUID + pattern.format(task_id=cast.task.pk, supervisor_id="flights")
    answer = clients["owner"].get(path)
    assert answer.json()
    check(document, "get", pattern, answer)


def test_what_is_done_is_as_described(document: dict[str, Any], cast: Cast, clients: dict[str, Client]) -> None:
    owner = clients["owner"]
    for pattern, kind in (("task", "index_kafka_share_group"), ("supervisor", "index_kafka_share_group")):
        spec = {**copy.deepcopy(spec_for("flights", groupId="another")), "type": kind}
        check(document, "post", pattern, owner.post(DRUID + pattern, spec, content_type="application/json"))
    for pattern in POSTS:
        path = DRUID + pattern.format(task_id=cast.task.pk, supervisor_id="flights")
        answer = owner.post(path, {"taskGroupIds": [0]}, content_type="application/json")
        assert answer.status_code == 200, answer.content
        check(document, "post", pattern, answer)
