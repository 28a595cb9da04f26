"""A batch task's spec is changed beside quarantined records of files, tried on them, and given to a replay alone."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from django.test import Client

from controlplane.datasources.masking import set_masks
from controlplane.tasks import file_replays, lifecycle
from controlplane.tasks.models import Task
from controlplane.teams.roles import Role
from tests.support.django_cast import Cast, browsing_as
from tests.support.file_replays import CAUSE, alone, became, ingest, left_by, numbers, states
from tests.support.html import parsed

__all__ = ["alone"]  # a fixture

HEADER = b"t,at,page"
FIX = f"/datasources/flights/quarantine/fix/?cause={CAUSE}&task="
SUBMIT = FIX.replace("fix/", "fix/submit/")
TRY: dict[str, Any] = {"try": "1"}
GOOD, BAD = 12, 3
FIRST_FOUR_S = "2025-01-01T00:00:00Z/2025-01-01T00:00:04Z"


@pytest.fixture
def waiting(alone: Cast) -> tuple[Cast, Task]:
    """Records of a file with a header, whose time stands in ``at``; some have none at all."""
    lines = [f",2025-01-01T00:00:{n:02}Z,<b>{n}".encode() for n in range(GOOD)] + [b",,x"] * BAD
    read: dict[str, Any] = {
        "ioConfig__inputFormat": {"type": "csv", "findColumnsFromHeader": True, "skipHeaderRows": 1}
    }
    return alone, left_by(alone, *lines, header=HEADER, **read)


def edited(task: Task, column: str = "at", **io_config: Any) -> dict[str, Any]:
    spec = copy.deepcopy(task.spec)
    spec["spec"]["dataSchema"]["timestampSpec"] = {"column": column, "format": "auto"}
    spec["spec"]["ioConfig"] |= io_config
    return spec


def post(client: Client, address: str, spec: Any, expect: int = 200, **more: Any) -> str:
    answer = client.post(address, {"document": json.dumps(spec), **more})
    assert answer.status_code == expect, answer.content.decode()[:3000]
    return answer.content.decode()


def test_the_batch_tasks_spec_stands_beside_its_records_and_is_tried(waiting: tuple[Cast, Task]) -> None:
    cast, task = waiting
    operator = browsing_as(cast, "operator")
    listed = parsed(operator.get(f"/datasources/flights/quarantine/?cause={CAUSE}"))
    [link] = [a for a in listed.all("a") if a.text == "Fix the spec for these records"]
    assert link.attributes["href"] == f"/datasources/flights/quarantine/fix/?cause={CAUSE}&task={task.pk}"
    page = operator.get(FIX + task.pk)
    text = page.content.decode()
    assert text.count("data-line=") == 10 and f'data-reader="{task.pk}"' in text
    assert "&lt;b&gt;" in text and "<b>" not in text and "findColumnsFromHeader" in text
    tried = post(operator, FIX + task.pk, edited(task), **TRY)
    assert f'data-tried="{GOOD + BAD}" data-passing="{GOOD}" data-failing="{BAD}"' in tried
    same = post(operator, FIX + task.pk, task.spec, **TRY)
    assert f'data-passing="0" data-failing="{GOOD + BAD}"' in same
    assert set(states()) == {"kept"}


def test_what_lies_outside_of_the_intervals_is_tried_as_thrown_away(waiting: tuple[Cast, Task]) -> None:
    cast, task = waiting
    spec = edited(task)
    spec["spec"]["dataSchema"]["granularitySpec"] = {"segmentGranularity": "second", "intervals": [FIRST_FOUR_S]}
    tried = post(browsing_as(cast, "operator"), FIX + task.pk, spec, **TRY)
    assert f'data-tried="{GOOD + BAD}" data-passing="4" data-failing="{BAD}"' in tried
    assert f"{GOOD - 4} would be thrown away" in tried


def test_a_changed_spec_replays_the_cause_and_changes_nothing_else(waiting: tuple[Cast, Task]) -> None:
    cast, task = waiting
    operator, spec = browsing_as(cast, "operator"), edited(task)
    asked = post(operator, FIX + task.pk, spec, confirm="1")
    assert f"Replay {GOOD + BAD} records with this spec?" in asked and f'data-passing="{GOOD}"' in asked
    upto = numbers()[-1]
    post(operator, SUBMIT + task.pk, spec, 302, upto=upto)
    [replay] = Task.objects.filter(kind=Task.Kind.REPLAY)
    assert replay.spec["spec"]["dataSchema"]["timestampSpec"]["column"] == "at"
    assert set(states()) == {"replaying"} and not replay.supervisor_id
    mine = Task.objects.get(pk=task.pk)
    assert mine.spec == task.spec
    told = file_replays.start(replay)
    *good, last = numbers()
    file_replays.publish(replay, became(told.epoch, good, bad=[last]))
    lifecycle.end_task(replay)
    [next_one] = ingest(cast)
    assert next_one.spec == replay.spec, "what still could not be read stands under the spec that read it last"


def test_who_may_change_it(waiting: tuple[Cast, Task]) -> None:
    cast, task = waiting
    spec = edited(task)
    assert 'data-needs="operator"' in browsing_as(cast, "viewer").get(FIX + task.pk).content.decode()
    post(browsing_as(cast, "viewer"), FIX + task.pk, spec, 403, **TRY)
    post(browsing_as(cast, "viewer"), SUBMIT + task.pk, spec, 403)
    post(browsing_as(cast, "outsider"), SUBMIT + task.pk, spec, 404)
    for unknown in ("nobody", "%00", cast.task.pk):
        post(browsing_as(cast, "operator"), FIX + unknown, spec, 404, **TRY)
    assert set(states()) == {"kept"}


def test_a_spec_that_says_something_else_is_refused_where_it_does(waiting: tuple[Cast, Task]) -> None:
    cast, task = waiting
    operator = browsing_as(cast, "operator")
    moved = edited(task, inputSource={"type": "inline", "data": "x"})
    other = edited(task)
    other["spec"]["dataSchema"]["dataSource"] = "another"
    for spec, said in (
        (moved, "from the quarantine: leave inputSource unchanged"),
        (other, "these records belong to"),
        (edited(task, inputFormat={"type": "protobuf"}), "is a message format"),
    ):
        assert said in post(operator, FIX + task.pk, spec, 400, **TRY)
        assert said in post(operator, SUBMIT + task.pk, spec, 400)
    assert set(states()) == {"kept"}


def test_over_rest_a_spec_is_for_records_of_one(waiting: tuple[Cast, Task], clients: dict[str, Client]) -> None:
    cast, task = waiting
    path = "/api/v1/datasources/flights/quarantine/replay/"

    def ask(role: str = "operator", **more: Any) -> Any:
        body = {"mode": "ingest", "filter": {}, "spec": edited(task), **more}
        return clients[role].post(path, body, content_type="application/json")

    left_by(cast, b"3", name="/b.json", dataSchema__timestampSpec={"column": "else"})
    assert ask().status_code == 409 and "2 different specs" in ask().json()["detail"]
    assert ask(mode="produce").status_code == 400
    assert ask("viewer").status_code == 403 and ask("outsider").status_code == 404
    assert ask(filter={"task": task.pk}, spec={"type": "index_parallel"}).status_code == 400
    started = ask(filter={"task": task.pk})
    assert started.status_code == 202 and started.json()["records"] == GOOD + BAD, started.content
    [name] = started.json()["tasks"]
    assert Task.objects.get(pk=name).spec["spec"]["dataSchema"]["timestampSpec"]["column"] == "at"
    again = ask(filter={"task": task.pk})
    assert again.status_code == 409 and "None of these records is in quarantine now" in again.json()["detail"]


def test_who_may_not_see_all_columns_brings_no_spec(waiting: tuple[Cast, Task], clients: dict[str, Client]) -> None:
    cast, task = waiting
    set_masks(user=cast.users["owner"], datasource=cast.datasource, masks={"page": Role.ADMIN})
    path = "/api/v1/datasources/flights/quarantine/replay/"
    body = {"mode": "ingest", "filter": {}, "spec": edited(task)}
    assert clients["operator"].post(path, body, content_type="application/json").status_code == 403
    post(browsing_as(cast, "operator"), SUBMIT + task.pk, edited(task), 403)
    text = browsing_as(cast, "operator").get(f"/datasources/flights/quarantine/{numbers()[0]}/").content.decode()
    assert "t,at,page" not in text and "&lt;b&gt;0" not in text
    assert clients["owner"].post(path, body, content_type="application/json").status_code == 202


def test_a_record_is_read_as_its_tasks_spec_reads_it_and_shown_with_its_header(waiting: tuple[Cast, Task]) -> None:
    cast, _ = waiting
    page = browsing_as(cast, "operator").get(f"/datasources/flights/quarantine/{numbers()[0]}/", {"as": "spec"})
    text = page.content.decode()
    assert 'data-outcome="unparseable"' in text and "has no time" in text
    assert "<span>page</span>: <code>&quot;&lt;b&gt;0&quot;</code>" in text
    assert "t,at,page" in text
