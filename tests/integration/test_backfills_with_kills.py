"""A reader that skips and its backfills on real services, killed at each place: each offset once, none lost."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.lanes import lane_spec
from tests.support.records import numbered, published
from tests.support.waiting import wait_for
from tests.support.workers import Workers

Make = Callable[..., Workers]
FIRST, SECOND, ALL = 3_000, 4_000, 5_000
_SKIP = """
import json
from django.db import transaction
from controlplane.publishing import claims
from controlplane.sources.models import Source
source = Source.objects.get(datasource__name={name!r})
with transaction.atomic():
    print(json.dumps(claims.skip_stored_offsets(source, [{task!r}], {{0: 0}}, {{0: {end}}}, "test")))
"""


def skip(house: House, name: str, reader: Workers, end: int) -> list[tuple[int, int, int]]:
    """What the transaction of *skip and fill* does to a reader; what it has passed over."""
    said = house.manage("shell", "--verbosity", "0", "-c", _SKIP.format(name=name, task=reader.id, end=end))
    return [(int(p), *bounds) for p, bounds in json.loads(said.strip().splitlines()[-1]).items()]


@pytest.mark.parametrize(
    ("lane", "reader_at", "backfill_at"),
    [("offset_range", "uploaded", "committed"), ("consumer_group", "committed", "decoded")],
)
def test_both_are_killed_and_it_skips_twice(
    house: House, make_workers: Make, lane: str, reader_at: str, backfill_at: str
) -> None:
    topic = house.topic(partitions=1)
    name = f"{topic}-{lane}"
    spec, owner = lane_spec(house, lane, topic, name), f"{name}-owner"
    reader = make_workers(spec, owner=owner)
    house.produce(topic, numbered(0, FIRST))
    _hold(house, name, reader, reader_at)
    house.produce(topic, numbered(FIRST, SECOND))
    first = make_workers(spec, owner=f"{owner}:fill:1", ranges=skip(house, name, reader, SECOND))
    reader.kill(0)
    _hold(house, name, first, backfill_at)
    first.kill(0)
    reader.start(0)
    house.produce(topic, numbered(SECOND, ALL))
    second = make_workers(spec, owner=f"{owner}:fill:2", ranges=skip(house, name, reader, ALL))
    for backfill in (first, second):
        backfill.start(0)
    assert {first.ended(0), second.ended(0)} == {("ended", "")}
    published(house, name, ALL)
    reader.finish(0)
    check_exactly_once(house, name, range(ALL))


def _hold(house: House, name: str, workers: Workers, place: str) -> None:
    """Start an indexer, and wait until it stands at the place."""
    held = house.home.path / f"{workers.id}.held"
    house.fail_at(name, **{place: f"hold:{held}"})
    workers.start(0)
    wait_for("an indexer stands there", held.exists, 60, lambda: workers.status(0))
    house.fail_at(name)
