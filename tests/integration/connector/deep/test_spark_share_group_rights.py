"""``kafka-sharegroup`` with a login that may not read: the query ends and says so."""

from __future__ import annotations

from pathlib import Path

from tests.support.guarded_kafka import Guarded, guarded
from tests.support.spark_session import spark_session, stopped
from tests.support.waiting import wait_for

__all__ = ["guarded"]  # a fixture


def test_a_group_that_the_login_may_not_read_ends_the_query(guarded: Guarded, tmp_path: Path) -> None:
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "READ")
    login = {name.replace("mechanisms", "mechanism"): value for name, value in guarded.client.items()}
    options = {
        **{f"kafka.{name}": value for name, value in login.items()},
        "subscribe": topic,
        "shareGroupId": "readers",
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }
    with spark_session(tmp_path) as spark:
        rows = spark.readStream.format("kafka-sharegroup").options(**options).load()
        writer = rows.writeStream.format("noop").option("checkpointLocation", options["checkpointLocation"])
        with stopped(writer.start()) as query:
            wait_for("the query has ended", query.exception, 60, lambda: query.lastProgress)
            assert "this login may not read the share group" in str(query.exception())
