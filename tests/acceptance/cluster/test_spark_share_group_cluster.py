"""``kafka-sharegroup`` from a driver of its own, on a cluster, with its records in S3, and what is killed there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.house import House
from tests.support.records import numbered
from tests.support.s3 import s3_server
from tests.support.spark_cluster import SMALL, SparkCluster
from tests.support.spark_driver import application, kill, numbers
from tests.support.spark_session import committed
from tests.support.waiting import wait_for


@pytest.mark.timeout(900)
def test_on_a_cluster_with_s3_whatever_is_killed(house: House, cluster: SparkCluster, tmp_path: Path) -> None:
    """Two workers; an executor is killed, then the driver; what was polled is in S3, and each record is there once."""
    cluster.resize(*SMALL)
    topic = house.topic()
    house.configure_group(f"group-{topic}", share_record_lock_duration_ms=2000)
    options: dict[str, Any] = {
        "kafka.bootstrap.servers": house.bootstrap,
        "subscribe": topic,
        "shareGroupId": f"group-{topic}",
        "groupAutoOffsetReset": "earliest",
        "numReaders": "6",
    }
    with s3_server(tmp_path) as s3:
        options["bufferLocation"] = s3.location("checkpoint/kafka-sharegroup")
        conf = tmp_path / "conf"
        conf.mkdir()
        known = cluster.conf.joinpath("spark-defaults.conf").read_text()
        (conf / "spark-defaults.conf").write_text(f"{known}spark.authenticate.secret {cluster.secret}\n")
        house.produce(topic, numbered(0, 4_000))
        folder, queries = tmp_path / topic, {topic: options}
        with application(tmp_path, cluster.address, queries, SPARK_CONF_DIR=str(conf)) as driver:

            def told() -> str:
                return (tmp_path / "driver.log").read_text(errors="replace")[-3_000:] + cluster.logs()

            wait_for(
                "the first rows", lambda: driver.poll() is not None or committed(folder / "rows") >= 4_000, 120, told
            )
            assert driver.poll() is None, told()
            victims = cluster.executors()
            assert len(victims) == 2
            victims[0].kill()
            house.produce(topic, numbered(4_000, 8_000))
            wait_for("rows after an executor's death", lambda: committed(folder / "rows") >= 8_000, 120, told)
            house.produce(topic, numbered(8_000, 20_000))
            kill(driver)
        with application(tmp_path, "local[2]", queries):
            wait_for("all rows", lambda: committed(folder / "rows") >= 20_000, 120, told)
        assert numbers(folder) == list(range(20_000))
