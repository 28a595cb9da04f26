"""What an application's token opens, and what an application may say once it is in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.common.errors import InvalidInput
from controlplane.publishing.publish import publish
from controlplane.segments.models import Segment
from controlplane.sources.models import Source
from controlplane.tasks.lifecycle import end_task, new_token, token_hash
from controlplane.tasks.models import Resident, Task
from ingestion.specs.messages.protocol import HeartbeatRequest
from tests.support.django_cast import Cast, spec_for
from tests.support.publishes import make_source, request, segment, start
from tests.support.routes import all_routes

INTERNAL = [route for route in all_routes() if route.pattern.startswith("internal/tasks/")]
OF_RESIDENTS = [route for route in all_routes() if route.pattern.startswith("internal/compaction/")]


@pytest.fixture
def other(cast: Cast) -> Task:
    """A second task that runs, of the same datasource."""
    return Task.objects.create(**{**_values(cast.task), "id": "other-task"})


def _values(task: Task) -> dict[str, Any]:
    return {field.attname: getattr(task, field.attname) for field in Task._meta.concrete_fields}


def ask(pattern: Any, task: str, token: str) -> tuple[int, bytes]:
    """The answer to a message of no use."""
    method = "GET" if pattern.pattern.endswith(("assignment", "quarantined")) else "POST"
    of_task = pattern in INTERNAL
    path = pattern.path(**({"task_id": task, "number": 0} if of_task else {"application": task, "job_id": "none"}))
    headers = {"Authorization": f"Bearer {token}"}
    client = Client(raise_request_exception=False)
    answer = client.generic(method, path, "[]", content_type="application/json", headers=headers)
    return answer.status_code, answer.content


@pytest.mark.parametrize("route", INTERNAL, ids=lambda r: r.pattern.rpartition("/")[2])
def test_a_token_opens_its_task_for_one_launch(cast: Cast, other: Task, route: Any) -> None:
    """Row 11 of the security checklist: not another task, not once it was launched again, not after its end."""
    old = new_token(cast.task)
    token, others = new_token(cast.task), new_token(other)
    assert ask(route, cast.task.pk, token)[0] not in (401, 410), "it is read"
    refused = [ask(route, cast.task.pk, wrong) for wrong in (old, others, "", token[:-1])]
    assert {status for status, _ in refused} == {401}
    unknown = ask(route, "no-such-task", token)
    assert unknown == refused[0], "whether there is such a task is not told"
    end_task(cast.task)
    assert ask(route, cast.task.pk, token)[0] == 410
    assert ask(route, other.pk, token)[0] == 401
    assert ask(route, cast.task.pk, old)[0] == 401


@pytest.mark.parametrize("route", OF_RESIDENTS, ids=lambda r: r.pattern.rpartition("/")[2])
def test_a_token_opens_its_application_until_its_end(cast: Cast, route: Any) -> None:
    """Row 11 of the security checklist, of what serves all datasources: no other's token, and no task's."""
    tasks = new_token(cast.task)
    resident = Resident.objects.create(
        pk="compaction_1", token_hash=token_hash("its"), slots=1, launched_at=timezone.now()
    )
    assert ask(route, resident.pk, "its")[0] not in (401, 410), "it is read"
    refused = [ask(route, resident.pk, wrong) for wrong in (tasks, "it", "", resident.token_hash)]
    assert {status for status, _ in refused} == {401}
    assert ask(route, "compaction_2", "its") == refused[0], "whether there is such an application is not told"
    Resident.objects.update(ended_at=timezone.now())
    assert ask(route, resident.pk, "its")[0] == 410


def test_only_a_tokens_hash_is_kept(cast: Cast) -> None:
    """Row 11 of the security checklist: who reads the store has no token; every launch has another one."""
    tokens = {new_token(cast.task) for _ in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) >= 40
    cast.task.refresh_from_db()
    kept = json.dumps(_values(cast.task), default=str)
    assert not any(token in kept for token in tokens)


def test_a_message_that_was_caught_is_worth_nothing_later(cast: Cast) -> None:
    """Row 11 of the security checklist: a heartbeat is sent again word for word after the next launch."""
    headers = {"Authorization": f"Bearer {new_token(cast.task)}"}
    body = HeartbeatRequest(indexers=[], slots=1).model_dump_json()
    path = f"/internal/tasks/{cast.task.pk}/heartbeat"

    def sent() -> int:
        return Client().post(path, body, content_type="application/json", headers=headers).status_code

    assert sent() == 200
    new_token(cast.task)
    before = Task.objects.get(pk=cast.task.pk).last_heartbeat_at
    assert sent() == 401
    assert Task.objects.get(pk=cast.task.pk).last_heartbeat_at == before


@pytest.fixture
def source(db: None) -> Source:
    return make_source("flights")


@pytest.mark.parametrize(
    "path",
    [
        "/flights/x.parquet",
        "flights",
        "flights/",
        "flights/../other/x.parquet",
        "flights/./x.parquet",
        "flights//x.parquet",
        "flights/x\0.parquet",
        "flights /x.parquet",
        "other/x.parquet",
        "../flights/x.parquet",
        "%2e%2e/x.parquet",
        "flightѕ/x.parquet",  # its last letter is Cyrillic
        "",
    ],
)
def test_a_task_names_files_of_its_own_datasource_only(source: Source, path: str) -> None:
    """Row 14 of the security checklist: a publish that names another file registers nothing."""
    epoch = start(source)
    good, odd = segment({0: [(0, 10)]}), segment({0: [(10, 20)]}).model_copy(update={"path": path})
    sent = request(epoch, segments=[good, odd])
    with pytest.raises(InvalidInput, match="is not the path of a file in the folder flights"):
        publish(task_id="task-1", number=0, request=sent)
    assert not Segment.objects.exists()


def test_a_file_is_named_once(source: Source) -> None:
    """Row 14 of the security checklist: two segments can't share a file, so that none is read twice."""
    epoch = start(source)
    first, second = segment({0: [(0, 10)]}), segment({0: [(10, 20)]})
    sent = request(epoch, segments=[first, second.model_copy(update={"path": first.path})])
    with pytest.raises(InvalidInput, match="the same path"):
        publish(task_id="task-1", number=0, request=sent)
    assert not Segment.objects.exists()


def test_a_datasources_name_leads_nowhere_else(clients: dict[str, Client], cast: Cast) -> None:
    """Row 14 of the security checklist: names become folders."""
    names = ["..", ".", "../x", "/etc", "a/b", "a\\b", "a\0b", "a..b", "%2e%2e", ".hidden", "flightѕ", "a" * 201, " a"]
    for name in names:
        for path in ("/druid/indexer/v1/supervisor", "/api/v1/tasks/"):
            body = json.dumps(spec_for(name))
            answer = clients["owner"].post(
                path, body, content_type="application/json", headers={"X-Headgate-Team": "alpha"}
            )
            assert answer.status_code == 400, (name, answer.content)
    assert set(Task.objects.values_list("datasource__name", flat=True)) == {"flights"}
