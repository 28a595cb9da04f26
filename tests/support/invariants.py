"""What must hold after every fault, whatever the source: the invariants I1 to I8 of docs/failure-matrix.md."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import ConsumerGroupTopicPartitions

from ingestion.segments.deep_storage import open_deep_storage
from ingestion.sources.repair import RepairSource
from ingestion.specs import offsets
from ingestion.specs.counters import OUTCOMES
from ingestion.specs.messages.protocol import RepairRange
from tests.support.column_ids import ids_in
from tests.support.house import House

KEY_BITS = 44  # where a settled range's key begins
_KEYS = """
    SELECT k.id, k.partition, k.next_offset, s.kind, s.topic, s.current FROM publishing_progresskey k
    JOIN sources_source s ON s.id = k.source_id JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE d.name = %s
"""
_RECEIPTS = """
    SELECT r.key_id, r.publish_id, r.outcomes, r.segment_ids, r.replay FROM publishing_receipt r
    JOIN publishing_progresskey k ON k.id = r.key_id JOIN sources_source s ON s.id = k.source_id
    JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s
"""
_SEGMENTS = """
    SELECT s.id::text, s.path, s.rows, s.size_bytes, s.sha256 FROM segments_segment s
    JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s AND s.used
"""
_SETTLED = f"""
    SELECT k.id, lower(r.span) - (k.id << {KEY_BITS}), upper(r.span) - (k.id << {KEY_BITS})
    FROM publishing_progresskey k
    JOIN publishing_settledrange r ON r.span && int8range(k.id << {KEY_BITS}, (k.id + 1) << {KEY_BITS})
    JOIN sources_source s ON s.id = k.source_id JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE d.name = %s
"""
_QUARANTINED = """
    SELECT k.id, q.offset FROM quarantine_quarantinedrecord q JOIN datasources_datasource d ON d.id = q.datasource_id
    JOIN publishing_progresskey k ON k.source_id = q.source_id AND k.partition = q.partition
    WHERE d.name = %s AND q.reason <> 'dead_letter'  -- those that were imported nobody has rejected
"""
_COMMITTABLE = """
    SELECT s.group, k.partition, k.next_offset FROM publishing_progresskey k JOIN sources_source s ON s.id = k.source_id
    JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s AND s.kind = 'offsets' AND s.current
"""
_IDS = """
    SELECT c.name, c.type, c.number, c.element FROM segments_column c
    JOIN datasources_datasource d ON d.id = c.datasource_id WHERE d.name = %s
"""
_WRITTEN = """
    SELECT s.id::text, s.rows, s.used, s.removal_id IS NOT NULL, coalesce(t.kind = 'reindex', false) OR EXISTS (
        SELECT FROM publishing_rewindpart p WHERE p.state = 'undone' AND p.made @> ARRAY[s.id]  -- its receipts are gone
    ) FROM (
        SELECT id, datasource_id, rows, used, removal_id, task_id FROM segments_segment
        UNION ALL SELECT id, datasource_id, rows, false, removal_id, '' FROM segments_killedsegment
    ) s JOIN datasources_datasource d ON d.id = s.datasource_id LEFT JOIN tasks_task t ON t.id = s.task_id
    WHERE d.name = %s
"""
_REPLACEMENTS = """
    SELECT r.taken::text[], r.made::text[], r.rows_before, r.rows_after FROM segments_replacement r
    JOIN datasources_datasource d ON d.id = r.datasource_id WHERE d.name = %s
"""
_PUBLISHES = """
    SELECT f.id, p.epoch, p.abandoned, p.segment_ids FROM publishing_publish p
    JOIN publishing_indexerfence f ON f.id = p.fence_id JOIN datasources_datasource d ON d.id = f.datasource_id
    WHERE d.name = %s ORDER BY p.created_at
"""


@dataclass
class _Key:
    """One partition of one source, and what its receipts say: by outcome, and in which segment what is stored."""

    partition: int
    next_offset: int | None
    kind: str
    topic: str
    current: bool
    by_outcome: dict[str, list[offsets.Range]] = field(default_factory=dict)
    settled: list[offsets.Range] = field(default_factory=list)
    quarantined: list[int] = field(default_factory=list)

    @property
    def ended(self) -> list[offsets.Range]:
        """Every range that a publish ended, duplicates aside."""
        return [r for name, ranges in self.by_outcome.items() if name not in ("duplicate", "further") for r in ranges]


def check_exactly_once(house: House, datasource: str, expected: Iterable[int]) -> dict[str, Any]:
    """All of them; ``expected`` are the numbers that must be stored, each once. Returns the totals."""
    wanted = set(expected)
    _check_stored(house, datasource, wanted)
    keys = _keys(house, datasource)
    _check_publishes(house, datasource)
    for key in keys.values():
        _check_key(key)
    _check_quarantine(keys)
    _check_committed(house, datasource)
    _check_no_record_left(house, keys.values())
    _check_intervals(house, datasource)
    totals = house.totals(datasource)
    assert totals["published"] == len(wanted)
    check_adds_up(totals)
    return totals


def check_adds_up(totals: dict[str, Any]) -> None:
    """Every polled record ended in exactly one way."""
    ended = sum(totals[outcome.name] for outcome in OUTCOMES)
    assert totals["polled"] + totals["further_rows"] == ended, totals
    assert totals["adds_up"] is True


def stored_numbers(house: House, datasource: str) -> tuple[Counter[int], int]:
    """I8, then every ``n`` in the datasource's used segments with how often it is there, and the sum of ``value``."""
    numbers: Counter[int] = Counter()
    total = 0
    storage = open_deep_storage(house.environment["HEADGATE_DEEP_STORAGE"])
    files = house.sql(_SEGMENTS, datasource)
    known = {(name, kind): (number, element) for name, kind, number, element in house.sql(_IDS, datasource)}
    for _, path, rows, size_bytes, sha256 in files:
        with storage.open(path) as file:
            data = file.read()
        assert len(data) == size_bytes, f"I8: {path} has another size than registered"
        assert hashlib.sha256(data).hexdigest() == sha256, f"I8: {path} has other bytes than registered"
        table = pq.read_table(pa.BufferReader(data), columns=["n", "value"])
        assert table.num_rows == rows, f"I8: {path} has another number of rows than registered"
        written = ids_in(pa.BufferReader(data))
        assert written == {one: known.get(one) for one in written}, f"I8: {path} has other ids of columns"
        numbers.update(table["n"].to_pylist())
        total += sum(table["value"].to_pylist())
    return numbers, total


def _check_stored(house: House, datasource: str, wanted: set[int]) -> None:
    """I1 and I8: the very records, each once."""
    numbers, total = stored_numbers(house, datasource)
    twice = {n: times for n, times in numbers.items() if times > 1}
    assert not twice, f"I1: stored more than once: {len(twice)}, for example {sorted(twice)[:10]}"
    lost = wanted - set(numbers)
    assert not lost, f"I1: lost: {len(lost)}, for example {sorted(lost)[:10]}. {house.logs(datasource)}"
    assert set(numbers) == wanted
    assert total == 3 * sum(wanted)


def _keys(house: House, datasource: str) -> dict[int, _Key]:
    """Every partition with its receipts; I2 and the segments' rows are looked at on the way."""
    # It may be publishing.
    found, settled, quarantined, receipts, written, replaced = house.sql_at_once(
        datasource, _KEYS, _SETTLED, _QUARANTINED, _RECEIPTS, _WRITTEN, _REPLACEMENTS
    )
    keys = {row[0]: _Key(*row[1:]) for row in found}
    for key_id, key in keys.items():
        key.settled = offsets.merged([(start, end) for of, start, end in settled if of == key_id])
        key.quarantined = [offset for of, offset in quarantined if of == key_id]
    rows_of: Counter[str] = Counter()
    for key_id, _, outcomes, segment_ids, replay in receipts:
        for name, ranges in () if replay else outcomes.items():  # of a replay they had ended before
            keys[key_id].by_outcome.setdefault(name, []).extend((r[0], r[1]) for r in ranges)
        for start, end, index in outcomes.get("stored", []):
            rows_of[segment_ids[index]] += end - start
    made = {segment for _, ids, *_ in replaced for segment in ids}
    published = {segment: rows for segment, rows, *_, anew in written if segment not in made and not anew}
    assert rows_of == published, "I2: the receipts' stored offsets are not the rows of the segments published"
    _check_replacements(written, replaced)
    return keys


def _check_replacements(written: list[Any], replaced: list[Any]) -> None:
    """I1, of compaction: each segment is taken once, and its rows are in those that were made of it."""
    rows = {segment: count for segment, count, *_ in written}
    taken = Counter(segment for ids, *_ in replaced for segment in ids)
    assert not [s for s, times in taken.items() if times > 1], "I1: a segment was replaced twice"
    live = {segment for segment, _, used, *_ in written if used}
    removed = {segment for segment, _, _, removed, _ in written if removed}
    assert not removed & set(taken), "I1: a segment was replaced and removed"
    assert live == set(rows) - set(taken) - removed, "I1: what is used is not what nothing has replaced or removed"
    for ids, made, before, after in replaced:
        assert before == sum(rows[s] for s in ids) and after == sum(rows[s] for s in made)
        assert after == before, "I1: rows were lost or doubled by a replace"


def _check_key(key: _Key) -> None:
    """I2: no offset ended twice. I3 and I4: what ended is what is settled, and the stored offset is its end."""
    where = f"{key.topic} partition {key.partition}"
    ended = offsets.merged(key.ended)
    assert offsets.count(key.ended) == offsets.count(ended), f"I2: an offset of {where} ended twice"
    assert ended == key.settled, f"I4: {where}: receipts {ended}, settled {key.settled}"
    if key.kind == "offsets" and ended:
        assert len(ended) == 1, f"I6: {where}: offsets between {ended} were passed over"
        assert key.next_offset == ended[-1][1], f"I3: {where}: stored {key.next_offset}, published {ended}"


def _check_quarantine(keys: dict[int, _Key]) -> None:
    """I5: what was rejected is kept, whole."""
    kept = [(i, offset) for i, k in keys.items() for offset in k.quarantined]
    rejected = [(i, o) for i, k in keys.items() for o in offsets.expanded(k.by_outcome.get("unparseable", []))]
    assert sorted(kept) == sorted(rejected), "I5: the quarantine does not hold what was rejected"


def _check_committed(house: House, datasource: str) -> None:
    """I4, of consumer groups that are called as the offsets' owner: Kafka is told of nothing before it is stored."""
    groups = {group for group, *_ in house.sql(_COMMITTABLE, datasource)}
    committed = {group: committed_in_kafka(house, group) for group in groups}  # first: it may be publishing
    rows = [row for row in house.sql(_COMMITTABLE, datasource) if row[0] in groups]
    early = [row for row in rows if committed[row[0]].get(row[1], 0) > (row[2] or 0)]
    assert not early, f"I4: Kafka was told of {committed} before these were stored: {early}"


def _check_publishes(house: House, datasource: str) -> None:
    """I7: of each indexer, no epoch published after a newer one had; what was abandoned registered nothing."""
    publishes, replaced, segments = house.sql_at_once(datasource, _PUBLISHES, _REPLACEMENTS, _WRITTEN)
    newest: dict[int, int] = {}
    named: Counter[str] = Counter()
    for fence, epoch, abandoned, segment_ids in publishes:
        assert epoch >= newest.get(fence, 0), f"I7: epoch {epoch} of indexer {fence} came after {newest[fence]}"
        newest[fence] = epoch
        assert not (abandoned and segment_ids)
        named.update(segment_ids)
    made = {segment for _, ids, *_ in replaced for segment in ids}
    written = Counter(row[0] for row in segments if row[0] not in made)
    assert named == written, "I7: the segments are not those that the publishes name"


def _check_no_record_left(house: House, keys: Iterable[_Key]) -> None:
    """I6: below the highest settled offset, what is not settled holds no record (a marker that no repair has met)."""
    for key in keys:
        if not key.current or len(key.settled) < 2:
            continue
        holes = offsets.subtracted([(key.settled[0][0], key.settled[-1][1])], key.settled)
        found = [n for start, end in holes for n in _records_in(house, key, start, end)]
        assert not found, f"I6: {key.topic} partition {key.partition}: records at {found[:10]} were passed over"


def _records_in(house: House, key: _Key, start: int, end: int) -> Iterator[int]:
    ranges = [RepairRange(partition=key.partition, start=start, end=end)]
    source = RepairSource({"bootstrap.servers": house.bootstrap}, key.topic, ranges)
    while not source.exhausted():
        batch = source.poll(0)
        assert batch is not None
        yield from batch.offsets.tolist()


def _check_intervals(house: House, datasource: str) -> None:
    """What the timeline shows of an interval is the sum of its live segments."""
    wrong = house.sql(
        "SELECT i.start, i.segments, i.rows, i.size_bytes FROM segments_interval i"
        " JOIN datasources_datasource d ON d.id = i.datasource_id LEFT JOIN segments_segment s"
        " ON s.datasource_id = d.id AND s.used AND s.interval_start = i.start AND s.interval_end = i.end"
        " WHERE d.name = %s GROUP BY i.id"
        " HAVING (i.segments, i.rows, i.size_bytes)"
        " IS DISTINCT FROM (count(s.id), coalesce(sum(s.rows), 0)::bigint, coalesce(sum(s.size_bytes), 0)::bigint)",
        datasource,
    )
    assert not wrong, f"an interval's sums are not its segments': {wrong}"


_TORN = f"""
    SELECT k.partition, k.next_offset, (
        SELECT max(upper(r.span)) - (k.id << {KEY_BITS}) FROM publishing_settledrange r
        WHERE r.span && int8range(k.id << {KEY_BITS}, (k.id + 1) << {KEY_BITS})
    ) AS settled
    FROM publishing_progresskey k JOIN sources_source s ON s.id = k.source_id
    JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s
"""


@contextmanager
def always_whole(house: House, datasource: str) -> Iterator[None]:
    """I3 for whoever looks meanwhile: at no time is a stored offset elsewhere than the end of what is settled."""
    torn: list[Any] = []
    over = Event()

    def look() -> None:
        while not over.wait(0.1):
            torn.extend(row for row in house.sql(_TORN, datasource) if row[2] is not None and row[1] != row[2])

    looking = Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join(30)
    assert not torn, f"I3: partition, stored offset, end of what is settled: {torn[:10]}"


def receipts_of(house: House, datasource: str, partition: int) -> dict[str, list[offsets.Range]]:
    """Outcome → the offsets of the partition that ended so, of the topic as it is now."""
    keys = _keys(house, datasource).values()
    of = next(k for k in keys if k.partition == partition and k.current)
    return {name: offsets.merged(ranges) for name, ranges in of.by_outcome.items()}


def committed_in_kafka(house: House, group: str) -> dict[int, int]:
    """Partition → the offset that Kafka keeps for the consumer group."""
    asked = [ConsumerGroupTopicPartitions(group)]
    answer = house.admin.list_consumer_group_offsets(asked)[group].result(30)
    return {p.partition: p.offset for p in answer.topic_partitions or []}
