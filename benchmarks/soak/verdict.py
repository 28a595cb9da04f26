"""Every record that stands in the log against what became of it, id by id; then the invariants."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from benchmarks.soak.lanes import Lane, published
from benchmarks.soak.producers import Ledger
from ingestion.specs import offsets
from tests.support.house import House
from tests.support.invariants import check_exactly_once, stored_numbers

SHOWN = 10
Position = tuple[int, int]  # partition, offset


@dataclass
class Log:
    """What a reader of committed records finds: places by id. An id that was sent once has one."""

    places: dict[int, list[Position]] = field(default_factory=dict)
    # The same for records that only a reader of uncommitted ones finds.
    aborted: dict[int, list[Position]] = field(default_factory=dict)

    def present(self, numbers: Iterable[int]) -> set[int]:
        return set(numbers) & set(self.places)


def read_log(bootstrap: str, topic: str, partitions: int) -> Log:
    """The whole topic, from its first offset to the end it has now."""
    committed, everything = (_read(bootstrap, topic, partitions, f"read_{how}") for how in ("committed", "uncommitted"))
    return Log(committed, {n: places for n, places in everything.items() if n not in committed})


def _read(bootstrap: str, topic: str, partitions: int, isolation: str) -> dict[int, list[Position]]:
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "soak-verdict",
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer, left = Consumer(config), set(range(partitions))
    places: dict[int, list[Position]] = {}
    consumer.assign([TopicPartition(topic, p, 0) for p in left])
    give_up = time.monotonic() + 120
    try:
        while left:
            for message in consumer.consume(5_000, 1.0):
                if message.error() is None:
                    places.setdefault(int(message.key()), []).append((message.partition(), message.offset()))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
            if time.monotonic() > give_up:
                raise RuntimeError(f"{topic} could not be read to its end: partitions {sorted(left)}")
    finally:
        consumer.close()
    return places


@dataclass(frozen=True)
class Verdict:
    """Of one lane."""

    lost: int
    duplicated: int
    faults: list[str]  # a line for each kind of fault found, with ids and their places
    stored: int
    quarantined: int
    thrown_away: int
    totals: dict[str, Any]
    alarms: dict[str, int]


def settled(house: House, lane: Lane, ledger: Ledger, log: Log) -> bool:
    """Whether as many rows and quarantined records are there as the log holds."""
    return published(house, lane) >= len(log.present(ledger.valid)) and len(_quarantined(house, lane)) >= len(
        log.present(ledger.poison)
    )


def judge(house: House, lane: Lane, ledger: Ledger, log: Log) -> Verdict:
    """Compare; nothing of the lane runs any more."""
    good, poison, too_late = (log.present(ids) for ids in (ledger.valid, ledger.poison, ledger.too_late))
    stored, _ = stored_numbers(house, lane.datasource)
    quarantined, outcomes = _quarantined(house, lane), _receipt_outcomes(house, lane)
    twice = {n for n, times in stored.items() if times > 1}
    findings = [
        ("lost", good - set(stored)),
        ("stored more than once", twice),
        ("stored although it is no row", set(stored) - good),
        ("poison that is not in quarantine once", _not_once(poison, log, quarantined)),
        ("in quarantine although it is no poison", _numbers(quarantined, log) - poison),
        ("too late and not thrown away once", _not_once(too_late, log, outcomes.get("thrown_away", Counter()))),
        ("aborted, and yet in the log", ledger.aborted & set(log.places)),
        ("acknowledged by the broker, and not in the log", ledger.acknowledged - set(log.places)),
        ("in the log more than once", {n for n, places in log.places.items() if len(places) > 1}),
    ]
    wrong = [_line(what, numbers, log, outcomes) for what, numbers in findings if numbers]
    totals, broken = _invariants(house, lane, good)
    return Verdict(
        lost=len(good - set(stored)),
        duplicated=sum(stored[n] - 1 for n in twice),
        faults=[*wrong, *broken],
        stored=len(stored),
        quarantined=len(quarantined),
        thrown_away=sum(outcomes.get("thrown_away", Counter()).values()),
        totals=totals,
        alarms=_alarms(house, lane),
    )


def _invariants(house: House, lane: Lane, good: set[int]) -> tuple[dict[str, Any], list[str]]:
    try:
        return check_exactly_once(house, lane.datasource, good), []
    except AssertionError as problem:
        return {}, [str(problem)[:4_000]]


def _alarms(house: House, lane: Lane) -> dict[str, int]:
    rows = house.sql(
        "SELECT e.kind, count(*) FROM sources_sourceevent e JOIN datasources_datasource d ON d.id = e.datasource_id"
        " WHERE d.name = %s AND e.alarm GROUP BY 1",
        lane.datasource,
    )
    return {str(kind): int(times) for kind, times in rows}


def _quarantined(house: House, lane: Lane) -> Counter[Position]:
    return Counter(
        (partition, offset)
        for partition, offset in house.sql(
            "SELECT q.partition, q.offset FROM quarantine_quarantinedrecord q"
            " JOIN datasources_datasource d ON d.id = q.datasource_id WHERE d.name = %s",
            lane.datasource,
        )
    )


def _receipt_outcomes(house: House, lane: Lane) -> dict[str, Counter[Position]]:
    """Outcome → every place that ended so, with how often, by the receipts."""
    by_outcome: dict[str, Counter[Position]] = {}
    rows = house.sql(
        "SELECT k.partition, r.outcomes FROM publishing_receipt r JOIN publishing_progresskey k ON k.id = r.key_id"
        " JOIN sources_source s ON s.id = k.source_id JOIN datasources_datasource d ON d.id = s.datasource_id"
        " WHERE d.name = %s",
        lane.datasource,
    )
    for partition, outcomes in rows:
        for name, ranges in outcomes.items():
            places = by_outcome.setdefault(name, Counter())
            places.update((partition, o) for o in offsets.expanded((r[0], r[1]) for r in ranges))
    return by_outcome


def _not_once(numbers: set[int], log: Log, counts: Counter[Position]) -> set[int]:
    return {n for n in numbers if [counts[place] for place in log.places[n]] != [1]}


def _numbers(places: Counter[Position], log: Log) -> set[int]:
    by_place = {place: n for n, id_places in log.places.items() for place in id_places}
    return {by_place.get(place, -1) for place in places}


def _line(what: str, numbers: set[int], log: Log, outcomes: dict[str, Counter[Position]]) -> str:
    shown = [f"{n} at {_where(n, log, outcomes)}" for n in sorted(numbers)[:SHOWN]]
    return f"{what}: {len(numbers)} ids: {'; '.join(shown)}"


def _where(number: int, log: Log, outcomes: dict[str, Counter[Position]]) -> str:
    """Partition and offset, and what the receipts say of them."""
    places = [f"{p}/{o} ({_fate((p, o), outcomes)})" for p, o in log.places.get(number, [])]
    undone = [f"{p}/{o} (not committed)" for p, o in log.aborted.get(number, [])]
    return ", ".join(places + undone) or "no place in the log"


def _fate(place: Position, outcomes: dict[str, Counter[Position]]) -> str:
    return ", ".join(f"{name} ×{counts[place]}" for name, counts in outcomes.items() if counts[place]) or "never ended"
