"""One way through each part on Spark, with nothing killed.

An indexer without Spark shows neither how an application starts nor how it ends.
"""

from __future__ import annotations

import json
import os

import pandas as pd

from tests.acceptance.test_batch import same, spec, stored, table, write
from tests.support.house import House
from tests.support.invariants import check_exactly_once
from tests.support.records import numbered, published
from tests.support.waiting import wait_for

_USED = """
    SELECT count(*) FROM segments_segment s JOIN datasources_datasource d ON d.id = s.datasource_id
    WHERE d.name = %s AND s.used
"""


def test_the_seed_as_it_stands(house: House) -> None:
    """The share-group document's spec and records; only the bootstrap servers and names are this test's.

    Under Spark, as everybody runs it.
    """
    topic = house.topic("druid-share-test")
    items = [("widget_a", 100), ("widget_b", 250), ("widget_c", 50), ("widget_d", 175), ("widget_e", 320)]
    records = [
        {"__time": f"2025-06-01T0{hour}:00:00.000Z", "item": item, "value": value}
        for hour, (item, value) in enumerate(items)
    ]
    house.produce(topic, [json.dumps(r).encode() for r in records])
    spec = house.spec(topic)
    spec["dataSchema"]["timestampSpec"] = {"column": "__time", "format": "auto"}
    spec["tuningConfig"] = {"type": "KafkaTuningConfig", "maxRowsPerSegment": 5000000}
    task = house.submit(spec)
    wait_for("the task succeeds", lambda: house.status(task) == "SUCCESS", 120, lambda: house.logs(topic))
    totals = house.totals(topic)
    assert (totals["polled"], totals["published"]) == (5, 5)
    wait_for("the application has ended", lambda: house.application_pid(task) is None, 30)


def test_offset_ranges(house: House) -> None:
    """A supervisor's task reads all records, once, and publishes what it holds when the supervisor ends.

    Under Spark, as everybody runs it.
    """
    topic = house.topic()
    house.produce(topic, numbered(0, 2_000))
    supervisor = house.supervise(house.kafka_spec(topic, taskCount=2))
    published(house, topic, 2_000)
    check_exactly_once(house, topic, range(2_000))
    house.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/terminate")


def test_files_become_segments_which_become_one_a_day(house: House) -> None:
    """A batch task, then a compact task over what it stored. Under Spark, as everybody runs it."""
    name = house.make_topic(f"files-{os.getpid()}")
    frames = [table(seed, 15_000) for seed in (1, 2)]
    for seed, rows in enumerate(frames):
        write(house, name, f"{seed}.csv", rows)
    house.ended(house.submit(spec(house, name)))
    assert same(stored(house, name), pd.concat(frames))
    [(before,)] = house.sql(_USED, name)
    everything = {"type": "interval", "interval": "2000-01-01/2100-01-01"}
    house.ended(
        house.submit({"type": "compact", "dataSource": name, "ioConfig": {"type": "compact", "inputSpec": everything}})
    )
    assert same(stored(house, name), pd.concat(frames))
    [(after,)] = house.sql(_USED, name)
    assert after == 3 < before
