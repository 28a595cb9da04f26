"""The soak's verdict finds what is lost, doubled or in the wrong place, and names it."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.soak.lanes import PARTITIONS, Lane, published
from benchmarks.soak.producers import Producing
from benchmarks.soak.verdict import judge, read_log, settled
from tests.support.house import House
from tests.support.waiting import wait_for
from tests.support.workers import Workers


def test_the_verdict_finds_what_is_wrong(house: House, make_workers: Callable[..., Workers]) -> None:
    lane = Lane("offset_range", house.topic("verdict", PARTITIONS))
    workers = make_workers({name: part for name, part in lane.spec(house).items() if name != "suspended"})
    workers.start(0)
    stream = Producing(house.bootstrap, lane.topic, 2_000, "seed")
    wait_for("plain records and transactions, some aborted", lambda: stream.ledger.aborted, 60)
    stream.finish()
    log = read_log(house.bootstrap, lane.topic, PARTITIONS)
    wait_for("all is published", lambda: settled(house, lane, stream.ledger, log), 60, lambda: published(house, lane))
    workers.finish(0)
    assert log.present(stream.ledger.poison)
    assert log.present(stream.ledger.too_late)
    clean = judge(house, lane, stream.ledger, log)
    assert (clean.lost, clean.duplicated, clean.faults) == (0, 0, [])
    assert clean.stored == len(log.present(stream.ledger.valid))

    phantom = max(log.places) + max(log.aborted) + 1
    undone = max(stream.ledger.aborted)
    stream.ledger.acknowledged |= {phantom, undone}
    ((partition, offset),) = house.sql(
        "DELETE FROM quarantine_quarantinedrecord WHERE id = (SELECT min(q.id) FROM quarantine_quarantinedrecord q"
        ' JOIN datasources_datasource d ON d.id = q.datasource_id WHERE d.name = %s) RETURNING partition, "offset"',
        lane.datasource,
    )
    ((rows,),) = house.sql(
        "UPDATE segments_segment SET used = false WHERE id = (SELECT s.id FROM segments_segment s"
        " JOIN datasources_datasource d ON d.id = s.datasource_id WHERE d.name = %s LIMIT 1) RETURNING rows",
        lane.datasource,
    )
    found = judge(house, lane, stream.ledger, log)
    assert (found.lost, found.duplicated) == (rows, 0)
    lost, poison, not_there, *_ = found.faults
    assert lost.startswith(f"lost: {rows} ids: ")
    assert "(stored ×1)" in lost, "with what the receipts say of it"
    assert poison.startswith("poison that is not in quarantine once: 1 ids: ")
    assert f"at {partition}/{offset} (unparseable ×1)" in poison
    ((at_partition, at_offset),) = log.aborted[undone]
    assert not_there == (
        "acknowledged by the broker, and not in the log: 2 ids: "
        f"{undone} at {at_partition}/{at_offset} (not committed); "
        f"{phantom} at no place in the log"
    )
