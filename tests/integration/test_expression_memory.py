"""What expressions make of records stays within the memory that they may have: of a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

MB = 1024 * 1024

_SCRIPT = """
import json, os, resource, sys
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.without_pandas import keep_pandas_out

keep_pandas_out()
# Loaded once, and with no thread as yet. Each line is for a fork, whose memory is its own.
for line in sys.stdin:
    if os.fork() == 0:
        break
    if os.waitstatus_to_exitcode(os.wait()[1]):
        print("null", flush=True)
else:
    sys.exit()

transforms, kinds = json.loads(line)
schema = DataSchema.model_validate({
    "dataSource": "d",
    "timestampSpec": {"column": "t"},
    "dimensionsSpec": {"useSchemaDiscovery": True},
    "transformSpec": {"transforms": [{"type": "expression", "name": f"m{i}", "expression": e, "language": "sql"}
                                     for i, e in enumerate(transforms)]},
})
decoder = JsonDecoder(schema, memory_limit_bytes=256 * 1024 * 1024)
payloads = [json.dumps({"t": 0, "a": a * n}).encode() for a, n, count in kinds for _ in range(count)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
decoded = decoder.decode(payloads)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([(after - before) * 1024, len(decoded.rows), sorted(set(decoded.unparseable.values()))]), flush=True)
os._exit(0)
"""
Peak = Callable[..., tuple[int, int, list[str]]]


@pytest.fixture(scope="module")
def peak() -> Iterator[Peak]:
    """(bytes more than before, rows, faults) of a process that decodes ``count`` records with a field ``a`` each."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads is not to be forked
    command = [sys.executable, "-c", _SCRIPT]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        given, told = process.stdin, process.stdout
        assert given is not None and told is not None

        def ask(transforms: list[str], *kinds: tuple[str, int, int]) -> tuple[int, int, list[str]]:
            given.write(json.dumps([transforms, kinds]) + "\n")
            given.flush()
            answer = json.loads(told.readline())
            assert answer is not None, "the process died"
            memory, rows, faults = answer
            return memory, rows, faults

        yield ask


def test_a_record_of_which_too_much_is_made_is_told_and_memory_stays_bounded(peak: Peak) -> None:
    """1,000 records of 5,000 bytes, which become 450,000 bytes each: 450 MB if they were kept."""
    blow_up = "replace(replace(a, '&', '&&&&&&&&&'), '&', '##########')"
    memory, rows, faults = peak([blow_up], ("&", 5000, 1000), ("x", 5000, 10))
    assert rows == 10
    assert faults == ["its transforms produce more than 10 times its length, and more than 16,384 bytes"]
    assert memory < 400 * MB


def test_many_transforms_together_keep_no_more(peak: Peak) -> None:
    """100 of 220 records of 20,000 bytes: 440 MB if they were kept."""
    memory, rows, _ = peak([f"upper(a) || '{n}'" for n in range(100)], ("x", 20_000, 220))
    assert rows == 0
    assert memory < 400 * MB


def test_records_whose_work_needs_more_than_the_memory_are_unparseable(peak: Peak) -> None:
    chain = "replace(replace(replace(a, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')"
    memory, rows, faults = peak([chain], ("&", 5_000_000, 1), ("&", 100, 50))
    assert rows == 50
    assert len(faults) == 1
    assert "may need" in faults[0]
    assert memory < 400 * MB
