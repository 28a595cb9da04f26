"""Druid's compaction supervisors and task slots: a config under a supervisor's id, and a share of the pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from controlplane.compaction import configs, jobs
from controlplane.compaction.models import Configured
from controlplane.tasks import residents
from controlplane.tasks.models import Resident
from controlplane.teams.audit import AuditEntry
from ingestion.specs.messages.compaction import WorkRequest
from tests.support.django_cast import Cast

SV, CONFIG = "/druid/indexer/v1/supervisor", "/druid/coordinator/v1/config/compaction"
CLUSTER = "/druid/indexer/v1/compaction/config/cluster"
Ask = Callable[..., Any]


@pytest.fixture
def ask(cast: Cast, clients: dict[str, Client]) -> Ask:
    def asked(method: str, path: str, body: Any = None, role: str = "operator", expect: int = 200) -> Any:
        given = {} if body is None else {"data": body, "content_type": "application/json"}
        answer = getattr(clients[role], method.lower())(path, headers={"X-Druid-Comment": "why"}, **given)
        assert answer.status_code == expect, answer.content
        return answer.json()

    return asked


def document(name: str, **changes: Any) -> dict[str, Any]:
    return {"type": "autocompact", "spec": {"dataSource": name, "skipOffsetFromLatest": "PT1H"}, **changes}


def test_a_supervisor_and_a_config_are_one_fact(cast: Cast, ask: Ask) -> None:
    name = cast.datasource.name
    mine = f"{SV}/autocompact__{name}"
    before = ask("GET", SV)
    ask("GET", mine, expect=404)
    assert ask("POST", SV, document(name)) == {"id": f"autocompact__{name}"}
    assert ask("GET", f"{CONFIG}/{name}")["skipOffsetFromLatest"] == "PT1H"
    spec = ask("GET", mine)
    assert (spec["type"], spec["id"], spec["suspended"]) == ("autocompact", f"autocompact__{name}", False)
    assert spec["spec"] == ask("GET", f"{CONFIG}/{name}")
    assert ask("GET", SV) == [*before, f"autocompact__{name}"]
    assert ask("GET", f"{SV}?state=true")[-1]["state"] == "RUNNING"
    assert (
        ask("GET", f"{mine}/status")["payload"]
        == ask("GET", "/druid/coordinator/v1/compaction/status")["latestStatus"][0]
    )
    assert (ask("GET", f"{mine}/health"), ask("GET", f"{mine}/stats")) == ({"healthy": True}, {})
    assert ask("POST", SV, spec) == {"id": f"autocompact__{name}"}  # what it shows is taken

    ask("POST", CONFIG, {"dataSource": name, "maxRowsPerSegment": 1000})
    assert ask("GET", mine)["spec"]["maxRowsPerSegment"] == 1000
    ask("DELETE", f"{CONFIG}/{name}")
    ask("GET", mine, expect=404)
    assert ask("GET", SV) == before


def test_it_is_suspended_resumed_and_terminated(cast: Cast, ask: Ask) -> None:
    name = cast.datasource.name
    mine = f"{SV}/autocompact__{name}"
    ask("POST", SV, document(name))
    assert ask("POST", f"{mine}/suspend")["suspended"] is True
    assert configs.policy_of(cast.datasource) is None and cast.datasource.pk not in configs.policies()
    ask("GET", f"{CONFIG}/{name}", expect=404)
    assert "suspended already" in ask("POST", f"{mine}/suspend", expect=400)["errorMessage"]
    assert ask("GET", f"{SV}?full")[-1]["state"] == "SUSPENDED"
    assert ask("GET", f"{mine}/status")["payload"]["scheduleStatus"] == "NOT_ENABLED"
    assert ask("POST", f"{mine}/resume")["spec"]["skipOffsetFromLatest"] == "PT1H"
    assert cast.datasource.pk in configs.policies()
    ask("POST", f"{mine}/resume", expect=400)
    ask("POST", f"{mine}/reset", role="owner", expect=400)
    ask("POST", SV, document(name, suspended=True))
    assert Configured.objects.get().suspended
    assert ask("POST", f"{mine}/terminate") == {"id": f"autocompact__{name}"}
    ask("POST", f"{mine}/terminate", expect=404)
    history = ask("GET", f"{mine}/history")
    assert [(e["spec"]["type"], e["spec"]["suspended"]) for e in history] == [
        ("NoopSupervisorSpec", False),
        ("autocompact", True),
        ("autocompact", False),
        ("autocompact", True),
        ("autocompact", False),
    ]
    shown = [
        e["compactionConfig"] and e["compactionConfig"]["skipOffsetFromLatest"]
        for e in ask("GET", f"{CONFIG}/{name}/history")
    ]
    assert shown == [None, None, "PT1H", None, "PT1H"]
    actions = AuditEntry.objects.filter(target_id=name).order_by("id").values_list("action", flat=True)
    assert list(actions) == ["set_compaction"] * 4 + ["turn_off_compaction"]


def test_all_of_them_at_once_and_only_where_one_may(cast: Cast, ask: Ask) -> None:
    ask("POST", SV, document(cast.datasource.name))
    for role, suspended in (("viewer", False), ("outsider", False), ("operator", True)):
        ask("POST", f"{SV}/suspendAll", role=role)
        assert Configured.objects.get().suspended is suspended
    ask("POST", f"{SV}/resumeAll")
    assert Configured.objects.get().enabled
    ask("POST", f"{SV}/terminateAll", role="viewer")
    assert f"autocompact__{cast.datasource.name}" in ask("GET", f"{SV}/history")
    ask("POST", f"{SV}/terminateAll")
    assert not Configured.objects.get().enabled


def test_bad_documents_change_nothing(cast: Cast, ask: Ask) -> None:
    name = cast.datasource.name
    for body, why, status in (
        (document(name, id="another"), "omit it", 400),
        (document(name, suspended="maybe"), "suspended", 400),
        ({"type": "autocompact"}, "spec", 400),
        (document(name, oops=1), "oops", 400),
        ({"type": "autocompact", "spec": {"dataSource": name, "metricsSpec": []}}, "metricsSpec", 400),
        (document("nobodys"), "no datasource", 404),
    ):
        assert why in ask("POST", SV, body, expect=status)["errorMessage"]
    ask("POST", SV, document(name), role="viewer", expect=403)
    ask("POST", SV, document(name), role="outsider", expect=404)
    assert not Configured.objects.exists()


def test_task_slots_are_a_share_of_the_pool(cast: Cast, ask: Ask, settings: LazySettings) -> None:
    settings.WORKER_CAPACITY, settings.COMPACTION_PERCENT = 10, 25
    assert (residents.slots(), ask("GET", CONFIG)["compactionTaskSlotRatio"]) == (2, 0.25)
    application = Resident.objects.create(pk="compaction_1", token_hash="x", slots=2, launched_at=timezone.now())
    assert jobs.assign_jobs(application.pk, WorkRequest(free=2)).directive == "continue"
    for path in (f"{CONFIG}/taskslots?ratio=2", f"{CONFIG}/taskslots?max=many", f"{CONFIG}/taskslots?max=-1"):
        ask("POST", path, role="superuser", expect=400)
    ask("POST", CLUSTER, {"compactionTaskSlotRatio": "x"}, role="superuser", expect=400)
    ask("POST", CLUSTER, {"engine": "msq"}, role="superuser", expect=400)
    ask("POST", f"{CONFIG}/taskslots?ratio=0.25", role="superuser")  # as it is: nothing to do
    assert jobs.assign_jobs(application.pk, WorkRequest(free=2)).directive == "continue"

    ask("POST", f"{CONFIG}/taskslots?ratio=0.59", role="superuser")
    assert residents.slots() == 5
    assert jobs.assign_jobs(application.pk, WorkRequest(free=2)).directive == "finish"  # the next one has five
    Resident.objects.update(ended_at=timezone.now())
    assert ask("POST", CLUSTER, {"maxCompactionTaskSlots": 3}, role="superuser") == {"success": True}
    assert residents.slots() == 3
    shown = {"compactionTaskSlotRatio": 0.59, "maxCompactionTaskSlots": 3}
    assert ask("GET", CLUSTER) == {**shown, "useSupervisors": True, "engine": "native"}
    assert shown.items() <= ask("GET", CONFIG).items()
    ask("POST", CLUSTER, ask("GET", CLUSTER), role="superuser")
    for nothing in ("max=0", "ratio=0&max=3"):
        ask("POST", f"{CONFIG}/taskslots?{nothing}", role="superuser")
        assert (residents.slots(), residents.launch(jobs.NAME)) == (0, None)
    entries = AuditEntry.objects.filter(action="set_compaction_slots").order_by("id")
    assert [e.detail["maxCompactionTaskSlots"] for e in entries] == [None, 3, 0, 3]
