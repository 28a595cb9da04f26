"""What a heartbeat stores, and how little it asks of the metadata store: each running task sends one every second."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from controlplane.tasks.lifecycle import new_token
from controlplane.tasks.models import Indexer, Status, Task
from tests.support.django_cast import Cast

Beat = dict[str, Any]
FULL: Beat = {
    "number": 0,
    "epoch": 3,
    "state": "reading",
    "pid": 4_242,
    "in_flight": 17,
    "partitions": [0, 5],
    "restarts": 2,
    "ack_failures": 1,
    "redelivery_counts": {"1": 900, "2": 4},
    "leases": {"acquired": 904, "hold_ms": {"125": 900}},
    "holding": [[5, 100, 117]],
    "message": "It reads \N{SNOWMAN}.",
}


@pytest.fixture
def task(cast: Cast) -> Task:
    Task.objects.filter(pk=cast.task.pk).update(status=Status.PENDING, started_at=None, launched_at=None)
    Indexer.objects.filter(task=cast.task).delete()
    return cast.task


def send(client: Client, task: Task, token: str, *indexers: Beat) -> None:
    answer = client.post(
        f"/internal/tasks/{task.pk}/heartbeat",
        {"indexers": indexers, "slots": 2},
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 200, answer.content


def stored(task: Task) -> list[Beat]:
    return list(task.indexers.order_by("number").values(*FULL))


def test_all_that_it_says_is_stored_and_replaced(client: Client, task: Task) -> None:
    token, other = new_token(task), {"number": 1, "epoch": 1, "state": "starting", "message": "x" * 3_000}
    send(client, task, token, FULL, other)
    first, second = stored(task)
    assert first == {**FULL, "leases": {**first["leases"], **FULL["leases"]}}
    assert (second["state"], len(second["message"]), second["holding"]) == ("starting", 2_000, [])
    task.refresh_from_db()
    began = task.started_at
    assert task.status == Status.RUNNING and began is not None
    send(client, task, token, {"number": 0, "epoch": 4, "state": "waiting"})
    first, second = stored(task)
    assert (first["epoch"], first["state"], first["redelivery_counts"], first["pid"]) == (4, "waiting", {}, 0)
    assert second["state"] == "starting"
    task.refresh_from_db()
    assert task.started_at == began


def test_it_reads_no_document_and_writes_twice(client: Client, task: Task, django_assert_num_queries: Any) -> None:
    token = new_token(task)
    with django_assert_num_queries(5) as asked:  # task, savepoint, task, indexers, release
        send(client, task, token, {**FULL, "restarts": 0})
    written = [q["sql"] for q in asked.captured_queries if q["sql"].lstrip().startswith(("UPDATE", "INSERT"))]
    assert len(written) == 2
    assert not any('"tasks_task"."spec"' in q["sql"] for q in asked.captured_queries)
