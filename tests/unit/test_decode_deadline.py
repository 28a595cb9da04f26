"""Records that take too long, and specs that do: found, told, and no more than their own batch's time is lost."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

from ingestion.decode.decoded import Decoded
from ingestion.decode.errors import TooSlow
from ingestion.decode.isolated_decoder import IsolatedDecoder
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.watchdog import HUNG, Watchdog
from ingestion.rows import row_indexes
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.formats import ends

# The pattern has no shortcut: at each character a thousand places in it are possible.
SLOW = "regexp_matches(a, '(a?){500}(a){500}b')"
SCHEMA = DataSchema.model_validate(
    {
        "dataSource": "d",
        "timestampSpec": {"column": "t"},
        "dimensionsSpec": {"useSchemaDiscovery": True, "dimensions": [{"type": "auto", "name": "found"}]},
        "transformSpec": {
            "transforms": [{"type": "expression", "name": "found", "expression": SLOW, "language": "sql"}]
        },
    }
)
QUICK_ONE = b'{"t":0,"a":"x"}'
SLOW_ONE = json.dumps({"t": 0, "a": "a" * 40_000}).encode()


def slow_length(seconds: float) -> int:
    """How long a text must be to take so much processor time on this machine."""
    return int(len(SLOW_ONE) * seconds / _cost())


@pytest.fixture(scope="module")
def cost() -> float:
    """Processor time that the slow record takes on this machine."""
    return _cost()


def _cost() -> float:
    """The least of three: the first one also takes memory from the system, which may be most of the time."""
    decoder = JsonDecoder(SCHEMA, batch_s=1000)
    least = math.inf
    for _ in range(3):
        began = time.thread_time()
        decoded = decoder.decode([SLOW_ONE])
        least = min(least, time.thread_time() - began)
        assert decoded.rows.column("found").to_pylist() == [False]
    decoder.close()
    return least


def found_slow(decoded: Decoded, count: int) -> list[int]:
    assert ends(decoded) == list(range(count))
    assert all("it takes more than" in text for text in decoded.unparseable.values())
    return list(decoded.unparseable)


def test_a_record_that_takes_too_long_stands_alone(cost: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 17 of the security checklist: time has a bound, whatever the expression."""
    # It is computed twice, and may take half as long, or some times as long, as when it was measured: processor time
    # depends on what the machine does beside. How much all of a batch may take is the next test's.
    monkeypatch.setattr("ingestion.decode.json_decoder._BUDGET", 30.0)
    decoder = JsonDecoder(SCHEMA, batch_s=cost * 0.3)
    payloads = [QUICK_ONE] * 5 + [SLOW_ONE] + [QUICK_ONE] * 5
    decoded = decoder.decode(payloads)
    assert found_slow(decoded, 11) == [5]
    assert row_indexes(decoded.rows).tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert decoder.decode([QUICK_ONE] * 100).rows.num_rows == 100
    decoder.close()


def test_a_spec_that_takes_too_long_is_told(cost: float) -> None:
    decoder = JsonDecoder(SCHEMA, batch_s=cost * 0.2)
    with pytest.raises(TooSlow, match=r"records can't be decoded in time.*Simplify the spec's expressions") as caught:
        decoder.decode([SLOW_ONE] * 50)
    assert caught.value.permanent
    assert decoder.decode([QUICK_ONE]).rows.num_rows == 1  # nothing is left of it
    decoder.close()


def test_a_decoder_in_a_child_tells_the_same(cost: float) -> None:
    with IsolatedDecoder(SCHEMA, batch_s=cost * 0.2, timeout_s=600) as decoder:
        with pytest.raises(TooSlow, match="can't be decoded in time"):
            decoder.decode([SLOW_ONE] * 50)
        assert decoder.decode([QUICK_ONE]).rows.num_rows == 1


def busy_until(done: threading.Event, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not done.is_set() and time.monotonic() < until:
        sum(range(1000))


def test_the_watchdog_interrupts_a_busy_thread_until_it_is_told_otherwise() -> None:
    called, again = threading.Event(), threading.Event()
    watchdog = Watchdog(lambda: again.set() if called.is_set() else called.set())
    with watchdog.watching(0.05):
        busy_until(again)
    assert called.is_set()
    assert again.is_set()
    watchdog.close()


def test_the_watchdog_does_not_count_waiting() -> None:
    called, never = threading.Event(), threading.Event()
    watchdog = Watchdog(called.set)
    with watchdog.watching(0.2):
        assert not never.wait(1.0)  # this thread's processor stands still
    assert not called.is_set()
    watchdog.close()


def test_a_watchdog_that_nobody_closed_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    watchdog = Watchdog(lambda: None)
    with watchdog.watching(60):
        [thread] = set(threading.enumerate()) - before
    del watchdog
    thread.join(60)
    assert not thread.is_alive()


def test_a_process_that_can_not_be_interrupted_ends() -> None:
    script = """
        from ingestion.decode.watchdog import Watchdog
        with Watchdog(lambda: None, hang_s=0.3).watching(0.1):
            while True:
                pass
    """
    done: Any = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=120, check=False)
    assert done.returncode == HUNG
