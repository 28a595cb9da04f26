"""A cause is fixed: a spec tried on its records, then submitted with a replay of them all, or not at all."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.quarantine.models import QuarantinedRecord
from controlplane.sources.models import Source
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from controlplane.teams.models import AuditEntry
from ingestion.specs.causes import cause_of
from ingestion.specs.source_traits import STORED_OFFSETS
from tests.support.django_cast import Cast, browsing_as, spec_for
from tests.support.html import parsed

WRONG = "field '__time' has no time: it is missing or null"
CAUSE = cause_of("unparseable", WRONG).fingerprint
FIX = f"/datasources/flights/quarantine/fix/?cause={CAUSE}"
SUBMIT = f"/datasources/flights/quarantine/fix/submit/?cause={CAUSE}"
GOOD, BAD = 12, 3
TRY: dict[str, Any] = {"try": "1"}


def spec(column: str, **more: Any) -> dict[str, Any]:
    """The cast's with another time column."""
    document = copy.deepcopy(spec_for("flights"))
    document["dataSchema"]["timestampSpec"] = {"column": column, "format": "auto"}
    document["dataSchema"] |= more
    return document


def keep(cast: Cast, offset: int, payload: bytes, **more: Any) -> QuarantinedRecord:
    values = {
        "source": cast.source, "datasource": cast.datasource, "task_id": cast.task.pk, "partition": 1, "offset": offset,
        "delivery_count": 1, "reason": "unparseable", "error": WRONG, "payload": payload, "created_at": timezone.now(),
        "cause": CAUSE, "publish_id": "3f2b8c1a-0000-4000-8000-123456789abc",
    }  # fmt: skip
    return QuarantinedRecord.objects.create(**{**values, **more})


@pytest.fixture
def waiting(cast: Cast) -> Cast:
    """Records whose time stands in ``at``, and some that have none at all, under one cause."""
    for n in range(GOOD):
        keep(cast, n, json.dumps({"at": "2025-01-01T00:00:00Z", "carrier": f"<b>{n}"}).encode())
    for n in range(GOOD, GOOD + BAD):
        keep(cast, n, b'{"carrier": "x"}')
    return cast


def post(client: Client, address: str, document: Any, expect: int = 200, **more: Any) -> str:
    text = document if isinstance(document, str) else json.dumps(document)
    answer = client.post(address, {"document": text, **more})
    assert answer.status_code == expect, answer.content.decode()[:3000]
    return answer.content.decode()


def nothing_changed(cast: Cast) -> None:
    assert Supervisor.objects.get(pk=cast.supervisor.pk).version == cast.supervisor.version
    assert not Task.objects.filter(kind=Task.Kind.REPLAY).exists()
    assert not QuarantinedRecord.objects.filter(cause=CAUSE).exclude(state="kept").exists()


def test_records_that_no_supervisor_reads_lead_back_home(cast: Cast) -> None:
    """Without its cause the page is not there: it has no beginning to open."""
    of_nobody = Source.objects.create(
        datasource=cast.datasource, cluster_id="c", group="nobody", topic="gone", topic_id="gone"
    )
    keep(cast, 0, b"{}", source=of_nobody)
    Supervisor.objects.all().delete()
    answer = browsing_as(cast, "owner").get(FIX)
    assert answer.status_code == 409
    assert [link.attributes["href"] for link in parsed(answer).all("a", class_="btn-primary")] == ["/"]


def test_the_spec_stands_beside_ten_records(waiting: Cast) -> None:
    page = browsing_as(waiting, "operator").get(FIX)
    text = page.content.decode()
    assert text.count("data-line=") == 10
    assert "Spec of supervisor flights, version 1" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert "timestampSpec" in text
    assert page.context["found"].kept == GOOD + BAD


def test_trying_counts_what_would_pass_and_what_is_still_wrong(waiting: Cast) -> None:
    operator = browsing_as(waiting, "operator")
    text = post(operator, FIX, spec("at"), **TRY)
    assert f'data-tried="{GOOD + BAD}" data-passing="{GOOD}" data-failing="{BAD}"' in text
    assert "has no time: it is missing or null" in text
    assert text.count('data-outcome="unparseable"') == BAD  # the newest, of the ten that are shown
    assert text.count('data-outcome="stored"') == 10 - BAD
    same = post(operator, FIX, spec("__time"), **TRY)
    assert f'data-passing="0" data-failing="{GOOD + BAD}"' in same
    nothing_changed(waiting)


def test_live_records_that_could_not_be_tried_are_named(waiting: Cast, clients: dict[str, Client]) -> None:
    """Nobody answers at the cast's broker: the quarantine is tried all the same."""
    text = post(browsing_as(waiting, "operator"), FIX, spec("at"), **TRY)
    assert "Headgate could not try live records, so this change may break new records." in text
    body = {"cause": CAUSE, "spec": spec("at")}
    path = "/api/v1/datasources/flights/quarantine/try/"
    found = clients["operator"].post(path, body, content_type="application/json").json()
    assert (found["passing"], found["failing"], found["live"]["tried"]) == (GOOD, BAD, 0)
    assert found["live"]["failure"]
    nothing_changed(waiting)


def test_what_a_replay_does_not_reject_passes(waiting: Cast) -> None:
    document = spec("at")
    document["ioConfig"]["lateMessageRejectionPeriod"] = "PT1H"
    text = post(browsing_as(waiting, "operator"), FIX, document, **TRY)
    assert f'data-passing="{GOOD}"' in text


def test_a_spec_with_faults_says_where(waiting: Cast) -> None:
    operator = browsing_as(waiting, "operator")
    assert "dimensionsSpec" in post(operator, FIX, spec("at", dimensionsSpec={"dimensions": 7}), 400, **TRY)
    assert "Not JSON" in post(operator, FIX, "{", 400, **TRY)
    other = spec("at")
    other["dataSchema"]["dataSource"] = "another"
    assert "these records belong to" in post(operator, FIX, other, 400, **TRY)
    nothing_changed(waiting)


def test_who_may_what(waiting: Cast) -> None:
    def needs(role: str) -> tuple[bool, bool, bool]:
        text = browsing_as(waiting, role).get(FIX).content.decode()
        return 'name="try"' in text, 'name="confirm"' in text, "data-needs=" in text

    assert needs("viewer") == (False, False, True)
    assert needs("operator") == (True, False, True)
    assert needs("owner") == (True, True, False)
    post(browsing_as(waiting, "viewer"), FIX, spec("at"), 403, **TRY)
    post(browsing_as(waiting, "operator"), FIX, spec("at"), 403, confirm="1")
    post(browsing_as(waiting, "operator"), SUBMIT, spec("at"), 403)
    post(browsing_as(waiting, "outsider"), SUBMIT, spec("at"), 404)
    nothing_changed(waiting)


def test_submitting_asks_first_and_then_replays_with_the_new_version(waiting: Cast) -> None:
    owner = browsing_as(waiting, "owner")
    asked = post(owner, FIX, spec("at"), confirm="1")
    assert f"replay {GOOD + BAD} records?" in asked
    assert f'data-passing="{GOOD}"' in asked
    nothing_changed(waiting)
    upto = QuarantinedRecord.objects.filter(cause=CAUSE).order_by("-id")[0].pk
    later = keep(waiting, 900, b"{}")
    post(owner, SUBMIT, spec("at"), 302, upto=upto)
    supervisor = Supervisor.objects.get(pk="flights")
    [replay] = Task.objects.filter(kind=Task.Kind.REPLAY)
    assert (supervisor.version, replay.spec_version) == (2, 2)
    assert replay.spec["spec"]["dataSchema"]["timestampSpec"]["column"] == "at"
    held = QuarantinedRecord.objects.filter(state="replaying", replay_id=replay.pk)
    assert held.count() == GOOD + BAD
    assert QuarantinedRecord.objects.get(pk=later.pk).state == "kept"  # nobody has seen it
    actions = set(AuditEntry.objects.values_list("target", "action"))
    assert {("supervisor", "update"), ("quarantine", "replay_ingest")} <= actions


def test_both_or_neither(waiting: Cast) -> None:
    """What another reader has read is not replayed with this spec, and then the spec is not submitted either."""
    other = Source.objects.create(
        datasource=waiting.datasource, cluster_id="cluster-1", group="flights", topic="flights-topic", topic_id="t",
        kind=STORED_OFFSETS.kind,
    )  # fmt: skip
    QuarantinedRecord.objects.filter(cause=CAUSE, offset=3).update(source=other)
    text = post(browsing_as(waiting, "owner"), SUBMIT, spec("at"), 409)
    assert "there is no spec to decode" in text or "nothing was changed" in text
    nothing_changed(waiting)
    moved = spec("at")
    moved["ioConfig"]["topic"] = "another-topic"
    post(browsing_as(waiting, "owner"), SUBMIT, moved, 409)
    nothing_changed(waiting)


def test_records_of_a_task_by_hand_can_be_tried_only(waiting: Cast) -> None:
    Task.objects.filter(pk=waiting.task.pk).update(supervisor_id="")
    waiting.supervisor.delete()
    owner = browsing_as(waiting, "owner")
    text = owner.get(FIX).content.decode()
    assert 'data-needs="supervisor"' in text
    assert 'name="confirm"' not in text
    assert f'data-passing="{GOOD}"' in post(owner, FIX, spec("at"), **TRY)


@pytest.mark.parametrize("address", [FIX.replace(CAUSE, "0" * 16), FIX.replace(CAUSE, ""), FIX.replace(CAUSE, "%00")])
def test_a_cause_that_does_not_wait(waiting: Cast, address: str) -> None:
    assert browsing_as(waiting, "owner").get(address).status_code == 404


def test_a_record_is_read_as_the_spec_reads_it(waiting: Cast) -> None:
    record = QuarantinedRecord.objects.get(cause=CAUSE, offset=3)
    address = f"/datasources/flights/quarantine/{record.pk}/"
    text = browsing_as(waiting, "operator").get(address, {"as": "spec"}).content.decode()
    assert 'data-outcome="unparseable"' in text
    assert "has no time" in text
    tree = browsing_as(waiting, "viewer").get(address, {"as": "tree"}).content.decode()
    assert "<span>carrier</span>: <code>&quot;&lt;b&gt;3&quot;</code>" in tree
    assert "as the spec reads it" not in tree
    refused = browsing_as(waiting, "viewer").get(address, {"as": "spec"}).content.decode()
    assert "data-outcome" not in refused
