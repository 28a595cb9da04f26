"""Where many indexers share a process, few of them have a decoding child at once, and none keeps it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from ingestion.decode.isolated_decoder import IsolatedDecoder
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.task import decoding

SCHEMA = DataSchema.model_validate({"dataSource": "d", "timestampSpec": {"column": "time", "format": "millis"}})
PAYLOADS = [b'{"time": 1, "x": "a"}', b"{broken"]


@pytest.fixture
def decoder() -> Iterator[IsolatedDecoder]:
    with closing(decoding._PoliteDecoder(SCHEMA, child_module=decoding.CHILD)) as polite:
        yield polite


def check(decoder: IsolatedDecoder) -> None:
    decoded = decoder.decode(PAYLOADS)
    assert decoded.rows.num_rows == 1 and list(decoded.unparseable) == [1]


def test_alone_in_its_process_an_indexer_keeps_the_child(decoder: IsolatedDecoder) -> None:
    check(decoder)
    assert decoder._child is not None


def test_beside_others_it_waits_for_its_turn_and_lets_the_child_go(
    decoder: IsolatedDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "_turns", None)  # is put back
    decoding.take_turns(1)
    turns = decoding._turns
    assert isinstance(turns, threading.BoundedSemaphore)
    with ThreadPoolExecutor(1) as pool:
        with turns:  # another indexer of the process has its turn
            waiting = pool.submit(check, decoder)
            with pytest.raises(TimeoutError):
                waiting.result(0.5)
            assert decoder._child is None
        waiting.result(60)
    assert decoder._child is None
