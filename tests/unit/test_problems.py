"""What needs a person: what was observed → the sentences, the worst first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from controlplane.common.health import Code, Health, Kind
from controlplane.datasources.models import Datasource
from controlplane.quarantine.models import QuarantineCause
from controlplane.sources.models import SourceEvent
from controlplane.supervisors.problems import problems_of
from controlplane.tasks.causes import DescribedCause

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=1)
WELL = Health.of(Code.UP_TO_DATE, "It keeps up.")
GONE = Health.of(Code.TOPIC_MISSING, "Topic 'o' is gone.", kind=Kind.NEEDS_ATTENTION, since=EARLIER)
FAILS = Health.of(Code.FAILING, "Its last 3 tasks failed.", since=EARLIER)
WAITS = Health.of(Code.WAITING_FOR_SLOT, "It needs 4 slots; 0 of 8 are free.", since=EARLIER)
CAUSE = DescribedCause(
    QuarantineCause(
        datasource=Datasource(name="invoices"),
        cause="fingerprint",
        reason="unparseable",
        records=50,
        kept=41,
        first_at=EARLIER,
        last_at=NOW,
    ),
    title="amount is text.",
    trend=[0, 41],
    latest=None,
    supervisor_id="invoices",
    spec_version=7,
)


def event(kind: SourceEvent.Kind, detail: str, at: datetime, task: str = "") -> SourceEvent:
    return SourceEvent(datasource=Datasource(name="d"), kind=kind, detail=detail, task_id=task, created_at=at)


def test_what_is_well_or_helps_itself_is_no_problem() -> None:
    working = replace(WELL, kind=Kind.WORKING, code=Code.BEHIND)
    assert problems_of({"a": WELL, "b": working, "c": replace(WAITS, code=Code.SUSPENDED)}) == []


def test_what_fails_comes_first() -> None:
    found = problems_of({"orders": GONE, "clicks": FAILS}, [CAUSE])
    assert [(p.health.kind, p.health.code, p.name) for p in found] == [
        (Kind.FAILED, "failing", "clicks"),
        (Kind.NEEDS_ATTENTION, "topic_missing", "orders"),
        (Kind.NEEDS_ATTENTION, "quarantined", "invoices"),
    ]


def test_those_that_nobody_looks_at_are_one_problem() -> None:
    unseen = Health.of(Code.NOT_OBSERVED, "It had no run.", "Check the worker.", since=EARLIER)
    [problem] = problems_of({"c": WELL, "b": unseen, "a": unseen})
    assert (problem.health.kind, problem.health.code, problem.name) == (Kind.NEEDS_ATTENTION, "not_observed", "a")
    assert problem.health.text == "It had no run. The same holds for 1 more supervisor. Check the worker."


def test_those_that_wait_for_room_are_one_problem() -> None:
    names = ("e", "d", "c", "b", "a")
    [problem] = problems_of({n: replace(WAITS, since=NOW) for n in names} | {"b": WAITS})
    assert (problem.health.code, problem.subject, problem.health.since) == ("capacity_full", "pool", EARLIER)
    assert problem.health.cause == f"5 supervisors wait for slots: a, b, c and 2 more. {WAITS.cause}"


def test_records_in_quarantine_name_cause_and_version() -> None:
    [problem] = problems_of({}, [CAUSE])
    assert problem.health.cause == "41 records wait in quarantine, the newest by version 7 of invoices: amount is text."
    assert (problem.health.since, problem.last_at, problem.fingerprint) == (EARLIER, NOW, "fingerprint")
    [by_hand] = problems_of({}, [replace(CAUSE, supervisor_id="", title="")])
    assert by_hand.health.cause == "41 records wait in quarantine: unparseable."


def test_records_of_one_datasource_are_one_problem() -> None:
    few = QuarantineCause(
        datasource=Datasource(name="invoices"),
        cause="other",
        reason="refused",
        records=2,
        kept=2,
        first_at=NOW,
        last_at=NOW,
    )
    [problem] = problems_of({}, [replace(CAUSE, cause=few, title="too wide"), CAUSE])
    assert problem.health.cause == (
        "43 records wait in quarantine for 2 causes, the newest by version 7 of invoices. Most of them: amount is text."
    )
    assert (problem.health.since, problem.last_at, problem.fingerprint) == (EARLIER, NOW, "")


def test_alarms_of_a_kind_are_one_problem_until_what_they_tell_of_is_over() -> None:
    gaps = [event(SourceEvent.Kind.GAP, "Offsets 5 to 6.", NOW), event(SourceEvent.Kind.GAP, "Offset 1.", EARLIER)]
    failing = event(SourceEvent.Kind.FAILING, "Indexer 0 fails.", NOW, "t")
    [gap] = problems_of({}, [], [*gaps, failing])
    assert gap.health.cause == "Retention removed records before they were read (2 times recently): Offsets 5 to 6."
    assert (gap.health.since, gap.last_at) == (EARLIER, NOW)
    assert [p.health.code for p in problems_of({}, [], [failing], active_tasks=["t"])] == ["failing"]
