"""The book of settled offsets, the store under it, and how a micro-batch is cut: without Kafka and without Spark."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import InUse, OptionError
from headgate.folders import LocalFolder, open_folder
from headgate.sharegroup.buffer_store import BufferFile, Store, claim_location, empty_state, file_name
from headgate.sharegroup.columns import as_file, schema
from headgate.sharegroup.ledger import Ledger, Part
from headgate.sharegroup.options import read_options
from headgate.sharegroup.pacing import COMPLETE_S, SETTLE_S, Backlog, is_batch_due
from headgate.sharegroup.properties import client_config, consumer_config
from headgate.sharegroup.slices import slices
from ingestion.specs.offsets import RangeSet, ranges_of

OFFSETS = st.sets(st.integers(0, 60))
GIVEN = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "shareGroupId": "g", "checkpointLocation": "/c"}


@given(st.lists(OFFSETS), OFFSETS)
def test_ranges_are_the_set_of_their_offsets(added: list[set[int]], asked: set[int]) -> None:
    known, plain = RangeSet(), set[int]()
    for offsets in added:
        for start, end in ranges_of(sorted(offsets)):
            known.add(start, end)
        plain |= offsets
    assert known.ranges() == ranges_of(sorted(plain))
    overlap = {o for start, end in ranges_of(sorted(asked)) for a, b in known.overlap(start, end) for o in range(a, b)}
    assert overlap == plain & asked


def test_old_ranges_are_forgotten_from_the_lowest_up() -> None:
    known = RangeSet((n * 10, n * 10 + 5) for n in range(10))
    known.forget_below(52, keep=3)
    assert known.ranges()[0] == (50, 55)  # what ends above is kept, however many there are
    known.forget_below(1000, keep=3)
    assert [start for start, _ in known.ranges()] == [70, 80, 90]


def test_an_offset_is_settled_by_one_file() -> None:
    ledger = Ledger(empty_state(), "c")
    first = ledger.propose(1, [Part("t/0", [(0, 10)])])
    assert (first.number, first.dropped, ledger.ready) == (0, [[]], 0)
    answers = []
    other = threading.Thread(
        target=lambda: answers.append(ledger.propose(2, [Part("t/0", [(5, 15)]), Part("t/1", [(5, 6)])]))
    )
    other.start()
    third = ledger.propose(3, [Part("t/0", [(100, 110)])])
    assert third.number == 1 and not answers  # the other waits to hear what comes of the first
    ledger.stored(BufferFile(0, "a", 10, 100))
    other.join(10)
    assert [(v.number, v.dropped) for v in answers] == [(2, [[(5, 10)], []])]
    assert ledger.settles(2) == {"t/0": [(10, 15)], "t/1": [(5, 6)]}
    assert ledger.propose(4, [Part("t/0", [(2, 4)])]).number is None
    ledger.stored(BufferFile(2, "c", 6, 60))
    assert (ledger.ready, [f.number for f in ledger.between(0, 9)]) == (1, [0, 2])
    ledger.void(1)
    assert (ledger.ready, ledger.state().voids) == (1, [1])
    ledger.forget(1)
    assert ledger.ready == 3
    assert ledger.propose(5, [Part("t/0", [(100, 110)])]).number == 3  # a void settles nothing
    ledger.commit(2)
    assert ([f.number for f in ledger.between(0, 9)], ledger.state().done) == ([2], 2)


def write(store: Store, number: int, settles: dict[str, list[tuple[int, int]]]) -> None:
    batch = pa.RecordBatch.from_pylist([], schema=schema(False))
    store.place.write(
        f"files/{file_name(number, store.claim)}", as_file(batch, {"settles": json.dumps(settles), "rows": "0"})
    )


def keep_beating(store: Store) -> None:
    for _ in range(100):
        store.beat()
        time.sleep(0.05)


def test_the_next_owner_finds_what_the_one_before_has_written(tmp_path: Path) -> None:
    place = LocalFolder(tmp_path)
    first, state = claim_location(place)
    write(first, 0, {"t/0": [(0, 5)]})
    write(first, 2, {"t/0": [(5, 9)]})
    place.write(f"files/{file_name(3, first.claim)}", b"half a fi")
    beating = threading.Thread(target=keep_beating, args=(first,))
    beating.start()
    with pytest.raises(InUse, match="in use by another query"):
        claim_location(place, patience_s=1.0)
    beating.join()
    first.leave()
    second, found = claim_location(place)
    assert (found.store, [f.number for f in found.files], found.next) == (state.store, [0, 2], 3)
    assert found.settled == {"t/0": [(0, 5), (5, 9)]}
    assert second.is_owned() and not first.is_owned()
    write(first, 4, {"t/0": [(9, 20)]})  # it sees the claim before it acknowledges: this is nobody's
    write(second, 3, {"t/0": [(9, 12)]})
    second.leave()
    _, found = claim_location(place)
    assert ([f.number for f in found.files], found.settled) == ([0, 2, 3], {"t/0": [(0, 5), (5, 9), (9, 12)]})
    assert set(place.sizes("files")) == {f.name for f in found.files}


@given(st.lists(st.integers(0, 3_000), max_size=20), st.integers(1, 9))
def test_tasks_have_each_row_once_and_as_many(rows: list[int], tasks: int) -> None:
    files = [BufferFile(n, str(n), many, 1) for n, many in enumerate(rows)]
    found = slices(files, tasks)
    assert len(found) <= tasks and all(found)
    sizes = [sum(s.end - s.first for s in some) for some in found]
    assert sum(sizes) == sum(rows) and (not sizes or max(sizes) - min(sizes) <= 1)
    cut = [(s.name, s.first, s.end) for some in found for s in some]
    assert [(name, n) for name, a, b in cut for n in range(a, b)] == [(f.name, n) for f in files for n in range(f.rows)]


@pytest.mark.parametrize(
    ("rows", "size_bytes", "quiet_s", "complete", "enough"),
    [
        (0, 0, 60.0, True, False),  # nothing is there
        (999, 999, 0.0, False, False),  # more comes
        (1_000, 1_000, 0.0, False, True),  # as many rows as a micro-batch may have
        (999, 25_000, 0.0, False, True),  # a quarter of the bytes that may wait
        (999, 24_999, SETTLE_S, False, True),  # nothing has come for a while: others have the rest
        (999, 24_999, COMPLETE_S, False, False),
        (999, 24_999, COMPLETE_S, True, True),  # that is all
        (999, 24_999, 0.0, True, False),  # another reader may still write what it polled
    ],
)
def test_a_query_that_ends_by_itself_gathers(
    rows: int, size_bytes: int, quiet_s: float, complete: bool, enough: bool
) -> None:
    assert is_batch_due(Backlog(rows, size_bytes, quiet_s, complete), 1_000, 100_000) is enough


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"subscribe": ""}, "option subscribe is missing"),
        ({"subscribe": "a,,b"}, "empty name"),
        ({"numReaders": "0"}, "numReaders is '0'"),
        ({"maxUncommittedBytes": "much"}, "write bytes"),
        ({"minRecordsPerTrigger": "-1"}, "minRecordsPerTrigger is '-1'"),
        ({"minRecordsPerTrigger": "9", "maxRecordsPerTrigger": "8"}, "is more than maxRecordsPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay is 'soon': write a time"),
        ({"minOffsetsPerTrigger": "9"}, "write minRecordsPerTrigger"),
        ({"onPoison": "ignore"}, "reject or fail"),
        ({"numReader": "3"}, "unknown option numreader"),
        ({"endingOffsets": "latest"}, "does not go with a share group"),
        ({"startingOffsets": "earliest"}, "one position for all its members"),
        ({"kafka.group.id": "g"}, "write shareGroupId"),
        ({"minPartitions": "8"}, "write numTasks"),
        ({"checkpointLocation": ""}, "give the reader the query's checkpoint"),
        ({"kafka.security.protocol": "SASL_SSL"}, "kafka.sasl.* is missing"),
        ({"kafka.plugin.library.paths": "/x.so"}, "not one of those that may be set"),
        ({"kafka.interceptor.classes": "a.B"}, "not one of those that may be set"),
    ],
)
def test_options_that_make_no_sense_are_named(more: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why.replace("*", ".*")):
        client_config(read_options({**GIVEN, **more}))


def test_the_group_and_the_size_of_a_poll_are_the_consumers_alone() -> None:
    options = read_options({**GIVEN, "kafka.max.poll.records": "500"})
    consumer, client = consumer_config(options), client_config(options)
    assert (consumer["group.id"], consumer["max.poll.records"]) == (options.group, "500")
    assert {name: consumer[name] for name in consumer.keys() & client.keys()} == client
    assert not client.keys() & {"group.id", "max.poll.records"}


def test_options_hold_their_secrets_back() -> None:
    options = read_options({**GIVEN, "kafka.sasl.password": "canary"})
    assert "canary" not in repr(options)
    assert (options.location, options.max_bytes, options.tasks) == ("/c/kafka-sharegroup", 1024**3, 4)


@pytest.mark.parametrize("location", ["relative/path", "file://host/x", "nothing://x/y"])
def test_locations_that_can_t_be_are_refused(location: str) -> None:
    with pytest.raises(OptionError):
        open_folder(location)
