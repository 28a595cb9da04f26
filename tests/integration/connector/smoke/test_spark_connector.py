"""The data source ``kafka-sharegroup`` on a real broker, with nothing killed: Spark reads it as its reference says."""

from __future__ import annotations

import re
from typing import Any

from controlplane.embedded.home import PROJECT
from headgate.sharegroup.options import NAMES
from tests.support.records import numbered
from tests.support.spark_session import Desk, metrics_of, stopped
from tests.support.waiting import wait_for


def test_readers_beyond_partitions_all_get_records(desk: Desk) -> None:
    topic = desk.broker.topic(partitions=1)
    desk.broker.produce(topic, numbered(0, 6_000))
    with stopped(desk.start(topic, "many", numReaders=3, readerProcesses=1, includeHeaders="true")) as query:
        desk.await_numbers(query, "many", range(6_000))
        desk.broker.produce(topic, numbered(6_000, 12_000))
        desk.await_numbers(query, "many", range(12_000))
        wait_for("three readers have had records", lambda: metrics_of(query)["readersWithRecords"] == 3, 30)
        told = metrics_of(query)
    assert (told["polled"], told["duplicatesDropped"], told["rejected"]) == (12_000, 0, 0)
    (one,) = [row for row in desk.rows("many") if row["offset"] == 7]
    expected = {"key": None, "topic": topic, "partition": 0, "offset": 7, "timestampType": 0, "delivery_count": 1}
    assert {name: one[name] for name in one if name not in ("value", "timestamp")} == {**expected, "headers": None}


def test_the_examples_of_the_reference_run(desk: Desk) -> None:
    topic = desk.broker.topic("orders")
    desk.broker.produce(topic, numbered(0, 40))
    page = (PROJECT / "docs" / "reference" / "spark-connector.md").read_text()
    own = {"localhost:9092": desk.broker.bootstrap, "/data/": f"{desk.folder}/docs/", '"orders"': f'"{topic}"'}
    own |= {"'orders'": f"'{topic}'", "invoices": f"invoices-{topic}", "audit": f"audit-{topic}"}
    names: dict[str, Any] = {"spark": desk.spark}
    for example in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for theirs, ours in own.items():
            example = example.replace(theirs, ours)
        exec(example, names)
    assert len(desk.rows(f"docs/invoices-{topic}")) == 40
    assert desk.spark.sql("SELECT sum(records) s FROM (SELECT count(*) records FROM orders_now)").collect()[0].s == 40
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert set(NAMES.values()) <= documented
