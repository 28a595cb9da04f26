"""Records that a header leaves out before they are decoded: by Druid's rule, in the loop and in a sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ingestion.sources.base import ACCEPT
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.specs.inputs.header_filter import HeaderBasedFilterConfig
from ingestion.specs.messages.sampler_spec import parse_sampler_spec
from ingestion.task.sampler.decoding import decode_records
from ingestion.task.sampler.records import Records
from tests.support.indexer import record, stored, total

WANTED = {"filter": {"type": "in", "dimension": "env", "values": ["prod", 7, True, "é"]}}


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ([("env", b"prod")], True),
        ([("env", b"test")], False),
        ([("env", b"")], False),
        ([("env", b"7")], True),
        ([("env", b"true")], True),
        ([("env", "é".encode())], True),
        ([("env", b"\xe9")], False),  # becomes U+FFFD, which is none of them
        ([], True),
        ([("other", b"test")], True),
        ([("ENV", b"test")], True),
        ([("env", None)], True),
        ([("env", b"prod"), ("env", b"test")], False),  # the last counts
        ([("env", b"test"), ("env", b"prod")], True),
        ([("env", b"test"), ("env", None)], True),
    ],
)
def test_which_records_are_taken(headers: Any, taken: bool) -> None:
    assert HeaderBasedFilterConfig.model_validate(WANTED).matches(headers) is taken


def test_headers_in_another_encoding() -> None:
    latin = HeaderBasedFilterConfig.model_validate({**WANTED, "encoding": "ISO-8859-1"})
    assert [latin.matches([("env", value)]) for value in (b"\xe9", "é".encode())] == [True, False]


def test_what_is_left_out_is_counted_as_filtered_and_not_decoded(run_indexer: Any, tmp_path: Path) -> None:
    payloads = {0: record(0), 1: b"{broken", 2: record(2), 3: None, 4: record(4), 5: b"{broken"}
    envs = {0: b"prod", 1: b"test", 2: b"test", 3: b"test", 5: b"prod"}
    extras = {(0, n): (None, None, [("env", env)]) for n, env in envs.items()}
    source = MemoryLeasedSource([(0, n, payload) for n, payload in payloads.items()], extras=extras)
    plane = run_indexer(source, kafka=True, io_config={"headerBasedFilterConfig": WANTED})
    assert stored(plane, tmp_path) == [0, 4]
    counted = total(plane)
    assert (counted.polled, counted.published, counted.filtered, counted.thrown_away) == (6, 2, 3, 3)
    assert (counted.unparseable, counted.tombstones) == (1, 0)
    assert [source.acknowledgements[(0, n)] == ACCEPT for n in range(6)] == [True] * 5 + [False]


def test_all_may_be_left_out(run_indexer: Any, tmp_path: Path) -> None:
    extras = {(0, n): (None, None, [("env", b"test")]) for n in range(3)}
    source = MemoryLeasedSource([(0, n, record(n)) for n in range(3)], extras=extras)
    plane = run_indexer(source, kafka=True, io_config={"headerBasedFilterConfig": WANTED})
    assert (stored(plane, tmp_path), total(plane).filtered) == ([], 3)


@pytest.mark.parametrize("envs", [[b"prod", b"test", None], [b"test", b"test", b"test"]])
def test_a_sample_leaves_them_out_too(envs: list[bytes | None]) -> None:
    spec = {
        "dataSchema": {"dataSource": "s", "dimensionsSpec": {"useSchemaDiscovery": True}},
        "ioConfig": {
            "type": "kafka",
            "topic": "t",
            "consumerProperties": {"bootstrap.servers": "localhost:1"},
            "inputFormat": {"type": "json"},
            "headerBasedFilterConfig": WANTED,
        },
    }
    order = parse_sampler_spec({"type": "kafka", "spec": spec}).order
    payloads: list[bytes | None] = [b'{"n": 0}', b"{broken", b'{"n": 2}']
    headers: Any = [[("env", env)] for env in envs]
    records = Records(payloads, [None] * 3, [0] * 3, headers, "t", [(0, n) for n in range(3)])
    told = decode_records(order, records).outcomes
    assert [told[n] for n in range(3)] == ["filtered" if env == b"test" else "stored" for env in envs]
