"""A rewind on real services: killed once, it ends in the rows of a clean run, and is undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.house import House
from tests.support.invariants import check_adds_up, stored_numbers
from tests.support.lanes import lane_spec
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

Make = Callable[..., Workers]
ALL, KEPT = 3_000, 2_000
FILTER = {"type": "bound", "dimension": "n", "upper": str(KEPT), "upperStrict": True, "ordering": "numeric"}


def rewinds(house: House, supervisor: str) -> list[Any]:
    listed: list[Any] = house.api("GET", f"/api/v1/supervisors/{supervisor}/rewinds/")["rewinds"]
    return listed


def parts_done(house: House, supervisor: str) -> list[Any]:
    def parts() -> list[Any] | None:
        listed = rewinds(house, supervisor)[0]["parts"]
        return None if any(p["state"] == "waiting" for p in listed) else listed

    return wait_for("no part waits", parts, 120, lambda: rewinds(house, supervisor))


@pytest.mark.parametrize("lane", ["offset_range", "share_group"])
def test_a_wrong_spec_is_corrected_by_a_rewind_that_is_killed_once(house: House, make_workers: Make, lane: str) -> None:
    topic = house.topic(partitions=1)
    spec = lane_spec(house, lane, topic, topic)
    spec["dataSchema"]["granularitySpec"]["segmentGranularity"] = "THIRTY_MINUTE"
    readers = make_workers(spec, owner=None)
    readers.start(0)
    house.produce(topic, numbered(0, ALL))
    published(house, topic, ALL)
    readers.finish(0)
    corrected = {**spec, "dataSchema": {**spec["dataSchema"], "transformSpec": {"filter": FILTER}}, "suspended": True}
    supervisor = house.api("POST", "/druid/indexer/v1/supervisor", corrected)["id"]
    asked = {"start_offsets": {"0": 0}, "end_offsets": {"0": ALL}}
    house.api("POST", f"/api/v1/supervisors/{supervisor}/rewinds/", {**asked, "dry_run": True})
    dry = [(p["state"], p["rows_after"], p["counted"]["polled"]) for p in parts_done(house, supervisor)]
    assert dry == [("read", 1_800, 1_800), ("read", 200, 1_200)]
    changed = [{c["name"]: c for c in p["changes"]["columns"]} for p in rewinds(house, supervisor)[0]["parts"]]
    assert "n" not in changed[0]
    n = changed[1]["n"]
    assert (n["type_before"], n["values_before"], n["values_after"]) == (n["type_after"], 1_200, 200)
    assert (n["sum_before"], n["sum_after"]) == (sum(range(1_800, ALL)), sum(range(1_800, KEPT)))
    assert stored_numbers(house, topic)[0] == Counter(range(ALL))
    house.fail_at(topic, uploaded=f"once:{house.home.path / topic}.killed:kill")
    plan = house.api("POST", f"/api/v1/supervisors/{supervisor}/rewinds/", asked)
    assert (plan["records"], plan["refused"], [p["rows"] for p in plan["parts"]]) == (ALL, [], [1_800, 1_200])
    parts = parts_done(house, supervisor)
    assert [(p["state"], p["rows_before"], p["rows_after"]) for p in parts] == [
        ("done", 1_800, 1_800),
        ("done", 1_200, 200),
    ], house.logs(topic)
    assert (house.home.path / f"{topic}.killed").exists()
    assert stored_numbers(house, topic)[0] == Counter(range(KEPT))
    totals = house.totals(topic)
    assert (totals["polled"], totals["published"], totals["thrown_away"]) == (ALL, KEPT, ALL - KEPT)
    check_adds_up(totals)
    house.api("POST", f"/api/v1/supervisors/{supervisor}/rewinds/undo/", {"rewind": plan["rewind"]})
    assert stored_numbers(house, topic)[0] == Counter(range(ALL))
    check_adds_up(house.totals(topic))
