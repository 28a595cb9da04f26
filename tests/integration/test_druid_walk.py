"""The calls of a client that knows Druid, in the same order as a real Druid has answered them."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from controlplane.tasks.models import Goal, Status, Task
from tests.support.django_cast import PASSWORD, STARTED, Cast, spec_for
from tests.support.druid_overlord import V1, fits
from tests.support.druid_walk import COORDINATOR, GOLDEN, told

WALK: list[tuple[str, str, str | None, dict[str, Any]]] = json.loads(GOLDEN.read_text(encoding="utf-8"))["walk"]
# What differs and is named in docs/reference/druid-api.md: of a call our status.
DIFFER = {
    **dict.fromkeys((f"GET {V1}/tasks?max=x", f"GET {V1}/completeTasks?n=x"), 400),
    **dict.fromkeys((f"POST {V1}/lockedIntervals", f"POST {V1}/lockedIntervals/v2"), 200),
    **dict.fromkeys((f"POST {V1}/supervisor/walked/{call}" for call in ("reset", "resetOffsets")), 409),
}
# And of an answer the fields that only one of both has.
_WALKED, _CONFIG = f"{V1}/supervisor/walked", f"{COORDINATOR}/config/compaction"
FIELDS = {
    f"GET {_WALKED}": f"{_WALKED}: ['id']",
    **{f"POST {_WALKED}/{action}": f"{_WALKED}/{action}: ['id']" for action in ("suspend", "resume")},
    f"GET {_WALKED}/status": f"{_WALKED}/status/payload: ['latestOffsets', 'offsetsLastUpdated']",
    f"GET {_CONFIG}": f"{_CONFIG}: ['compactionPolicy', 'useSupervisors']",
}


def walked(client: Client, method: str, address: str, body: str | None) -> dict[str, Any]:
    answer = client.generic(method, address, body or "", content_type="application/json")
    try:
        value = json.loads(answer.content)
    except ValueError:
        value = answer.content.decode()
    media_type = answer.headers.get("Content-Type", "").partition(";")[0]
    return told({"status": answer.status_code, "type": media_type, "body": value})


def meant(method: str, address: str, body: str | None, status: int) -> set[int]:
    """The statuses that ours may have where a real Druid has this one."""
    if address.startswith(f"{COORDINATOR}/") and "/none" in address:
        return {404} if status < 400 else {404, 400 if status == 500 else status}
    if status in (400, 500) and body:
        return {400}
    return {400 if status == 500 else DIFFER.get(f"{method} {address}", status)}


def test_a_walk_is_answered_as_by_a_real_druid(clients: dict[str, Client]) -> None:
    differ = {}
    for method, address, body, theirs in WALK:
        ours, may = walked(clients["owner"], method, address, body), meant(method, address, body, theirs["status"])
        call = f"{method} {address} {body or ''}".strip()
        if ours["status"] not in may:
            differ[call] = f"{ours['status']}, and not {may}"
        elif ours["status"] == 200 == theirs["status"]:
            differ[call] = _differs(ours, theirs, address)
    assert {call: how for call, how in differ.items() if how} == FIELDS


def _differs(ours: dict[str, Any], theirs: dict[str, Any], address: str) -> str:
    kinds = [] if ours["type"] == theirs["type"] else [f"{ours['type']}, and not {theirs['type']}"]
    return "; ".join([*kinds, *fits(ours["shape"], theirs["shape"], address)])


@pytest.mark.usefixtures("empty_cache")
def test_the_sequence_of_airflows_hook(cast: Cast) -> None:
    """It submits, asks for the status until it is not RUNNING, and shuts down what takes too long."""
    login = base64.b64encode(f"operator:{PASSWORD}".encode()).decode()
    client = Client(headers={"Authorization": f"Basic {login}"})
    address = f"{V1}/task"
    posted = client.generic("POST", address, json.dumps(spec_for("flights")), content_type="application/json")
    task = posted.json()["task"]
    assert client.get(f"{address}/{task}/status").json()["status"]["status"] == "RUNNING"
    assert client.post(f"{address}/{task}/shutdown").json() == {"task": task}
    assert Task.objects.get(pk=task).goal == Goal.STOP


def test_a_task_that_has_ended_is_shut_down_without_a_word(clients: dict[str, Client], cast: Cast) -> None:
    usual: dict[str, Any] = {"kind": "share_group", "datasource": cast.datasource, "spec": cast.task.spec}
    ended = {"created_at": STARTED, "started_at": STARTED, "ended_at": STARTED + timedelta(seconds=5)}
    task = Task.objects.create(id="a-task-of-before", status=Status.SUCCESS, **usual, **ended)
    answer = clients["operator"].post(f"{V1}/task/{task.pk}/shutdown")
    assert (answer.status_code, answer.json()) == (200, {"task": task.pk})
    assert clients["operator"].get(f"{V1}/task/{task.pk}/status").json()["status"]["status"] == "SUCCESS"
