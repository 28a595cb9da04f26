"""A share group's position is Kafka's: what a new checkpoint finds of it, and one that goes on. Without Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headgate.sharegroup.options import read_options
from headgate.sharegroup.session import Session
from tests.support.broker import Broker
from tests.support.records import numbered

RECORDS = 40


def begun(broker: Broker, topic: str, folder: Path, idle_ms: int) -> Session:
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "shareGroupId": f"group-{topic}",
        "groupAutoOffsetReset": "earliest",
        "bufferLocation": str(folder),
        "numReaders": "1",
        "readerProcesses": "0",
        "idleTimeoutMs": str(idle_ms),
    }
    session = Session(read_options(options))
    session.end_at_current_offsets()
    return session


def test_what_is_said_when_the_group_has_its_position_already(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic, folder = broker.topic("position"), tmp_path / "buffer"
    broker.produce(topic, numbered(0, RECORDS))
    session = begun(broker, topic, folder, 30_000)
    session.await_end(lambda: False)
    assert (session.metrics()["polled"], session.ledger.ready > 0) == (RECORDS, True)
    session.close()
    again = begun(broker, topic, folder, 2_000)  # its micro-batch runs again, of the files that are there
    assert sum(file.rows for file in again.files(0, again.ledger.ready)) == again.metrics()["polled"] == RECORDS
    again.close()
    assert caplog.messages == []
    shutil.rmtree(folder)
    new = begun(broker, topic, folder, 2_000)
    new.await_end(lambda: False)
    assert new.metrics()["polled"] == 0
    new.close()
    [said] = caplog.messages
    assert f"share group 'group-{topic}'" in said
    assert "a new checkpoint do not move it" in said
