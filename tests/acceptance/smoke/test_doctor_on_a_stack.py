"""``manage.py doctor`` on a whole stack, as somebody runs it on the host of a worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from tests.support.house import PROJECT, House
from tests.support.waiting import PATIENCE, wait_for

PARTS = {
    *("settings", "PostgreSQL", "hosts", "Valkey", "web", "workers", "beat", "mail", "task folder", "deep storage"),
    *("Java", "Spark", "Python of executors"),
    *(f"PostgreSQL {part}" for part in ("recovery", "privileges", "migrations", "clock", "connections", "durability")),
}


def examined(house: House) -> tuple[int, dict[str, list[str]], str]:
    """The exit code, by check the states, and what is not well in full. Without the stack's own failpoints."""
    environment = {**os.environ, **house.environment}
    del environment["HEADGATE_FAILPOINTS"]
    command = [sys.executable, "manage.py", "doctor", "--json"]
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60 * PATIENCE, check=False
    )
    findings = json.loads(done.stdout)["findings"]
    states: dict[str, list[str]] = {}
    for finding in findings:
        states.setdefault(finding["check"], []).append(finding["state"])
    return done.returncode, states, json.dumps([f for f in findings if f["state"] != "ok"], indent=1)


@pytest.mark.timeout(600)
def test_every_part_of_a_stack_is_well_and_kafka_is_missed_when_it_goes(house: House) -> None:
    """Only a whole stack has workers, a beat and leases to find: all other tests see what is missing."""
    topic = house.topic()
    supervisor = house.supervise({**house.spec(topic, topic), "suspended": True})
    kafka = f"Kafka {house.bootstrap}"
    try:
        code, states, bad = examined(house)
        assert code == 0, bad
        assert states.keys() == PARTS | {kafka}
        assert all(found == ["ok"] for found in states.values()), bad
        house.kafka.kill()
        try:
            began = time.monotonic()
            code, states, bad = examined(house)
            assert time.monotonic() - began < 60 * PATIENCE
            assert code == 1
            assert states[kafka] == ["fail"], bad
            assert {name for name, found in states.items() if found != ["ok"]} == {kafka}, bad
        finally:
            house.kafka.restart()
        wait_for("doctor finds Kafka again", lambda: examined(house)[0] == 0, 90)
    finally:
        house.api("POST", f"/druid/indexer/v1/supervisor/{supervisor}/terminate")
