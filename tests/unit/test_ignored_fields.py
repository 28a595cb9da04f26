"""What an imported spec of Druid says that nobody reads: taken out, and told with its place and the reason."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from controlplane.loading.ignored_fields import without_leftovers

Document = dict[str, Any]


def spec() -> Document:
    parts: Document = {
        "dataSchema": {"dataSource": "a", "dimensionsSpec": {"dimensions": ["b", {"type": "string", "name": "c"}]}},
        "ioConfig": {"topic": "t", "inputFormat": {"type": "json"}},
        "tuningConfig": {"type": "kafka"},
    }
    return {"type": "kafka", "context": {"priority": 75}, "spec": parts}


def put(document: Document, path: str, value: Any) -> Document:
    """A copy with one more field."""
    changed = copy.deepcopy(document)
    *steps, last = path.split("/")
    level: Any = changed
    for step in steps:
        level = level[int(step)] if isinstance(level, list) else level[step]
    level[last] = value
    return changed


LEFT = [
    ("spec/tuningConfig/awaitSegmentAvailabilityTimeoutMillis", 5000, "tuningConfig.awaitSegment"),
    ("spec/tuningConfig/releaseLocksOnHandoff", True, "tuningConfig.releaseLocksOnHandoff: "),
    ("spec/tuningConfig/skipOffsetGaps", True, "tuningConfig.skipOffsetGaps: "),
    ("spec/ioConfig/skipOffsetGaps", True, "ioConfig.skipOffsetGaps: "),
    ("spec/tuningConfig/taskCount", 3, "tuningConfig.taskCount: "),
    ("spec/ioConfig/appendToExisting", True, "ioConfig.appendToExisting: "),
    ("spec/tuningConfig/appendToExisting", True, "tuningConfig.appendToExisting: "),
    ("spec/dataSchema/dimensionsSpec/forceSegmentSortByTime", True, "dimensionsSpec.forceSegmentSortByTime: "),
    ("spec/context", {"priority": 75}, "spec.context: "),
    ("spec/version", "1", "spec.version: "),
    ("version", "1", "version: "),
    ("_comment", "ours", "_comment: "),
    ("spec/dataSchema/_comment", "ours", "spec.dataSchema._comment: "),
    (
        "spec/dataSchema/dimensionsSpec/dimensions/1/_comment",
        "x",
        "spec.dataSchema.dimensionsSpec.dimensions[1]._comment: ",
    ),
]


@pytest.mark.parametrize(("path", "value", "place"), LEFT, ids=[one[0] for one in LEFT])
def test_what_nobody_reads_is_taken_out_and_told(path: str, value: Any, place: str) -> None:
    cleaned, [told] = without_leftovers(put(spec(), path, value))
    assert cleaned == spec()
    assert told.startswith(place)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("spec/dataSchema/dimensionsSpec/dimensions/1/type", "dimensionsSpec.dimensions[1].type"),
        ("spec/ioConfig/inputFormat/type", "ioConfig.inputFormat.type"),
        ("spec/tuningConfig/type", "tuningConfig.type"),
    ],
)
def test_a_type_in_capitals_is_read_in_small_letters(path: str, place: str) -> None:
    document = spec()
    level: Any = document
    for step in path.split("/"):
        level = level[int(step)] if isinstance(level, list) else level[step]
    cleaned, told = without_leftovers(put(document, path, level.upper()))
    assert (cleaned, told) == (document, [f"{place}: {level.upper()!r} is read as {level!r}"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec/dataSchema/dimensionsSpec/forceSegmentSortByTime", False),
        ("spec/ioConfig/taskCount", 3),
        ("spec/ioConfig/unknown", 1),
        ("spec/dataSchema/metricsSpec", [{"type": "LONGSUM"}]),
    ],
)
def test_what_means_something_stays(path: str, value: Any) -> None:
    document = put(spec(), path, value)
    assert without_leftovers(document) == (document, [])


def test_parts_beside_spec_are_read_alike_and_told_once() -> None:
    document = put(spec(), "spec/tuningConfig/taskCount", 3)
    both = {**document, "tuningConfig": dict(document["spec"]["tuningConfig"])}
    cleaned, told = without_leftovers(both)
    assert (cleaned["tuningConfig"], cleaned["spec"]["tuningConfig"], len(told)) == ({"type": "kafka"},) * 2 + (1,)


@pytest.mark.parametrize("written", [None, [], "text", 7, {"spec": "text"}, {"spec": {"ioConfig": [1]}}, {"type": 1}])
def test_what_is_no_spec_stays_for_who_reads_it(written: Any) -> None:
    document = {"id": "a", "spec": written}
    assert without_leftovers(document)[0] == document
