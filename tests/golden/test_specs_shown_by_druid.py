"""What a real Druid's own GET shows of a supervisor's spec is taken as it stands, and means what the spec meant."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.tasks.diagnosis import options_without_effect
from ingestion.specs.errors import SpecError
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.support.druid_specs import GOLDEN, specs
from tests.unit.test_specs import changed

RECORDED: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))["specs"]
WRITTEN = specs()
PLAIN = RECORDED["tuning: none"]
BY_HEADER = {"filter": {"type": "in", "dimension": "h", "values": ["x"]}}
# What Druid's answer has of its own, which nobody wrote: by part the fields whose defaults are others here, or that
# have no effect. Everything else must be as it was written.
OF_DRUIDS_OWN = {
    "ioConfig": {"emitTimeLagMetrics"},
    "tuningConfig": {
        *("handoffConditionTimeout", "chatRetries", "httpTimeout", "shutdownTimeout", "offsetFetchPeriod"),
        *("appendableIndexSpec", "skipBytesInMemoryOverheadCheck", "skipSequenceNumberAvailabilityCheck"),
        *("repartitionTransitionDuration", "numPersistThreads", "maxColumnsToMerge", "indexSpec", "type"),
        *("indexSpecForIntermediatePersists", "maxParseExceptions", "maxSavedParseExceptions", "maxRowsInMemory"),
    },
    "dataSchema": set(),
}


def test_all_that_was_asked_is_recorded() -> None:
    assert set(RECORDED) == set(WRITTEN)
    assert [name for name, shown in RECORDED.items() if shown is None] == []


def _told(spec: dict[str, Any], part: str) -> dict[str, Any]:
    told = {n: v for n, v in copy.deepcopy(spec)["spec"][part].items() if n not in OF_DRUIDS_OWN[part]}
    if part == "dataSchema":
        # Druid excludes the time and what metrics read and are named as, which discovery leaves out here too.
        told["dimensionsSpec"].pop("dimensionExclusions")
        told["granularitySpec"]["intervals"] = told["granularitySpec"].get("intervals") or []
        if told["granularitySpec"]["segmentGranularity"] == {"type": "period", "period": "P1D"}:
            told["granularitySpec"]["segmentGranularity"] = "DAY"
        for dimension in told["dimensionsSpec"]["dimensions"]:
            del dimension["createBitmapIndex"]
            dimension.pop("formatVersion", None)
    return told


def test_what_druid_shows_is_taken_and_means_what_was_written() -> None:
    faults = {name: _other_parts(name) for name in RECORDED}
    assert {name: parts for name, parts in faults.items() if parts} == {}


def _other_parts(name: str) -> list[Any]:
    """The parts of which Druid's answer means something else than what was written, each both ways."""
    try:
        shown, written = parse_supervisor_spec(RECORDED[name]), parse_supervisor_spec(WRITTEN[name])
    except SpecError as error:
        return [str(error)]
    others: list[Any] = [] if shown.suspended is True else ["is not suspended"]
    for part in ("dataSchema", "ioConfig", "tuningConfig"):
        ours, theirs = _told(written.canonical(), part), _told(shown.canonical(), part)
        if name == "reading: autoscaler" and part == "ioConfig":
            assert (ours.pop("taskCount"), theirs.pop("taskCount")) == (1, 2)  # Druid shows what it has scaled to
        if name == "reading: format: kafka with all" and part == "ioConfig":
            assert ours["inputFormat"]["keyFormat"].pop("findColumnsFromHeader") is False  # Druid's default
        if name == "reading: autoscaler off" and part == "ioConfig":
            ours.pop("autoScalerConfig"), theirs.pop("autoScalerConfig")  # Druid forgets its bounds
        others += [] if ours == theirs else [(part, ours, theirs)]
    undiscovered = shown.spec.dataSchema.undiscovered, written.spec.dataSchema.undiscovered
    return others + ([] if undiscovered[0] == undiscovered[1] else [("undiscovered", *undiscovered)])


def test_of_no_spec_anything_is_unknown_later() -> None:
    """The stored form is taken again, and names what has no effect."""
    stored = {name: parse_supervisor_spec(shown).canonical() for name, shown in RECORDED.items()}
    assert [name for name, spec in stored.items() if parse_supervisor_spec(spec).canonical() != spec] == []
    assert [name for name, spec in stored.items() if not options_without_effect(spec, supervised=True)] == []


def _nulls(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict) and path[-1:] != ("consumerProperties",):
        for name, inner in value.items():
            yield (*path, name)
            yield from _nulls(inner, (*path, name))


NEEDED = {
    ("dataSchema",),
    ("ioConfig",),
    ("dataSchema", "dataSource"),
    ("dataSchema", "timestampSpec"),
    ("ioConfig", "topic"),
    ("ioConfig", "inputFormat"),
    ("ioConfig", "inputFormat", "type"),
    ("ioConfig", "consumerProperties"),
    # What says which kind of a thing it is.
    ("tuningConfig", "appendableIndexSpec", "type"),
    ("dataSchema", "granularitySpec", "queryGranularity", "type"),
}


def test_every_field_but_those_that_are_needed_may_be_null() -> None:
    places = sorted(_nulls(PLAIN["spec"]))
    assert len(places) > 50
    assert [".".join(place) for place in places if not _null_is_as_it_should(place)] == []


def _null_is_as_it_should(place: tuple[str, ...]) -> bool:
    """Whether the field is refused by its name if it is needed, and otherwise taken as if it were not there."""
    document = copy.deepcopy(PLAIN)
    inner = document["spec"]
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = None
    try:
        taken = parse_supervisor_spec(document)
    except SpecError as error:
        there = "spec." + ".".join(place[:-1] or place)
        return place in NEEDED and all(issue.path.startswith(there) for issue in error.issues)
    if place == ("ioConfig", "stream"):
        return taken.spec.ioConfig.topic == "a-topic"
    return place not in NEEDED and taken.datasource == PLAIN["spec"]["dataSchema"]["dataSource"]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("ioConfig/configOverrides", {"type": "properties"}, "consumerProperties"),
        ("ioConfig/headerBasedFilterConfig", {"filter": {"type": "selector"}}, 'must be a filter of type "in"'),
        ("ioConfig/headerBasedFilterConfig", {"filter": {"type": "in"}}, "required field is missing"),
        ("ioConfig/headerBasedFilterConfig", {**BY_HEADER, "encoding": "klingon"}, "must be 'UTF-8'"),
        ("ioConfig/headerBasedFilterConfig", {**BY_HEADER, "stringDecodingCacheSize": 0}, "must be 1 or more"),
        ("tuningConfig/appendableIndexSpec/preserveExistingMetrics", True, "metrics are made of"),
        ("tuningConfig/appendableIndexSpec/type", "offheap", "must be 'onheap'"),
        ("ioConfig/autoScalerConfig", {"enableTaskAutoScaler": True, "autoScalerStrategy": "costBased"}, "costBased"),
        ("ioConfig/stopTaskCount", 0, "must be 1 or more"),
        ("ioConfig/taskCount", True, "must be a whole number"),
        ("tuningConfig/maxRowsInMemory", False, "must be a whole number"),
        ("ioConfig/emitTimeLagMetrics", "perhaps", "must be true or false"),
    ],
)
def test_what_would_change_what_is_stored_is_refused_by_name(place: str, value: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        parse_supervisor_spec(changed((f"spec/{place}", value), of=PLAIN))
    assert caught.value.issues[0].path.startswith("spec." + place.replace("/", "."))


@pytest.mark.parametrize(("name", "value"), [("stream", "another"), ("useEarliestSequenceNumber", True)])
def test_a_copy_that_contradicts_is_refused(name: str, value: Any) -> None:
    with pytest.raises(SpecError, match=f"{name} must equal"):
        parse_supervisor_spec(changed((f"spec/ioConfig/{name}", value), of=PLAIN))


@pytest.mark.parametrize(
    "scaler",
    [
        {"autoScalerStrategy": "costBased", "lagWeight": 0.25, "idleWeight": 0.75, "enableTaskAutoScaler": False},
        {"autoScalerStrategy": "costBased", "lagWeight": 0.25, "taskCountMax": 4},
        {"enableTaskAutoScaler": False, "taskCountMax": 0, "taskCountMin": 0, "lagAggregate": None},
        {"enableTaskAutoScaler": None},
    ],
)
def test_an_autoscaler_that_is_off_is_taken_whatever_it_has(scaler: dict[str, Any]) -> None:
    spec = parse_supervisor_spec(changed(("spec/ioConfig/autoScalerConfig", scaler), of=PLAIN))
    assert spec.spec.ioConfig.auto_scaler is None


@pytest.mark.parametrize("aggregate", ["SUM", "MAX", "AVERAGE", None])
def test_partitions_lags_are_aggregated_as_druid_does(aggregate: str | None) -> None:
    on = {"enableTaskAutoScaler": True, "taskCountMin": 1, "taskCountMax": 2, "lagAggregate": aggregate}
    spec = parse_supervisor_spec(changed(("spec/ioConfig/autoScalerConfig", on), of=PLAIN))
    assert spec.spec.ioConfig.auto_scaler is not None
    assert spec.spec.ioConfig.auto_scaler.lagAggregate == aggregate


@pytest.mark.parametrize("other", ["average", "MIN", 1])  # which Druid refuses too
def test_there_are_no_other_aggregates(other: Any) -> None:
    on = {"enableTaskAutoScaler": True, "taskCountMin": 1, "taskCountMax": 2, "lagAggregate": other}
    with pytest.raises(SpecError, match="lagAggregate: must be"):
        parse_supervisor_spec(changed(("spec/ioConfig/autoScalerConfig", on), of=PLAIN))


@pytest.mark.parametrize("given", [0, -1, None])
def test_a_bound_that_druid_finds_itself_is_our_own(given: int | None) -> None:
    spec = parse_supervisor_spec(changed(("spec/tuningConfig/maxBytesInMemory", given), of=PLAIN))
    assert spec.spec.tuningConfig.maxBytesInMemory == 64 * 1024 * 1024


# pydantic's words, as its documentation of errors has them.
LIBRARY = ("Input should", "Extra inputs", "instance of", "valid ", "Unable to", "Field required", "pydantic", "ctx")
ODD: list[Any] = [None, True, -1, 1.5, 10**30, "odd", "", [], [1], [None], {}, {"odd": 1}, "x" * 200_000, float("nan")]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield (*path, name)
        yield from _places(inner, (*path, name))


RICH = [
    "schema: dimensions",
    "schema: metrics",
    "schema: transforms",
    "reading: autoscaler",
    "reading: idle",
    "reading: format: kafka with all",
    "reading: format: json with flattening",
    "schema: filter: bound",
    "schema: filter: range",
    "schema: filter: and",
]


@pytest.mark.parametrize("name", RICH)
def test_no_fault_is_told_in_a_librarys_words(name: str) -> None:
    """Any field may be anything: what is said of it is ours, and leads to it."""
    whole = {n: v for n, v in RECORDED[name].items() if n not in ("dataSchema", "ioConfig", "tuningConfig")}
    said: set[str] = set()
    common = set() if name == RICH[0] else set(_places(PLAIN))
    for place in (p for p in _places(whole) if p not in common):
        for odd in ODD:
            document = copy.deepcopy(whole)
            inner: Any = document
            for part in place[:-1]:
                inner = inner[part]
            inner[place[-1]] = odd
            try:
                parse_supervisor_spec(document)
            except SpecError as error:
                said |= {issue.message for issue in error.issues}
    assert said
    assert [message[:200] for message in said if any(word in message for word in LIBRARY)] == []
