"""What expressions make of records stays within the memory that they may have: of a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

MB = 1024 * 1024

_SCRIPT = """
import json, resource, sys
from ingestion.decode import JsonDecoder
from ingestion.specs import DataSchema

transforms, kinds = json.loads(sys.stdin.readline())
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
json.dump([(after - before) * 1024, len(decoded.rows), sorted(set(decoded.unparseable.values()))], sys.stdout)
"""


def peak(transforms: list[str], *kinds: tuple[str, int, int]) -> tuple[int, int, list[str]]:
    """(bytes more than before, rows, faults) of a process that decodes ``count`` records with a field ``a`` each."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        input=json.dumps([transforms, kinds]),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    memory, rows, faults = json.loads(done.stdout)
    return memory, rows, faults


def test_a_record_of_which_too_much_is_made_is_told_and_memory_stays_bounded() -> None:
    """1,500 records of 5,000 bytes, which become 450,000 bytes each: 675 MB if they were kept."""
    blow_up = "replace(replace(a, '&', '&&&&&&&&&'), '&', '##########')"
    memory, rows, faults = peak([blow_up], ("&", 5000, 1500), ("x", 5000, 10))
    assert rows == 10
    assert faults == ["its transforms make of it more than 10 times its length and 16,384 bytes"]
    assert memory < 400 * MB


def test_many_transforms_together_keep_no_more() -> None:
    memory, rows, _ = peak([f"upper(a) || '{n}'" for n in range(100)], ("x", 20_000, 300))
    assert rows == 0
    assert memory < 400 * MB


def test_records_whose_work_needs_more_than_the_memory_are_unparseable() -> None:
    chain = "replace(replace(replace(a, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')"
    memory, rows, faults = peak([chain], ("&", 5_000_000, 1), ("&", 100, 50))
    assert rows == 50
    assert len(faults) == 1
    assert "may need" in faults[0]
    assert memory < 400 * MB
