"""The decoder in a child process: records that kill or hang it stand alone, their neighbours are decoded."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psutil
import pytest

from ingestion.decode.errors import UnusableSchema
from ingestion.decode.isolated_decoder import IsolatedDecoder
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.rows import row_indexes
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.processes import command_lines
from tests.support.warm_decoder import warm, warm_python

__all__ = ["warm", "warm_python"]  # fixtures

pytestmark = pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
SCHEMA = DataSchema.model_validate(
    {
        "dataSource": "d",
        "timestampSpec": {"column": "t"},
        "dimensionsSpec": {"useSchemaDiscovery": True},
        "transformSpec": {"filter": {"type": "selector", "dimension": "drop", "value": None}},
    }
)
KILLER = b'{"t":0,"a":"KILL"}'


@pytest.fixture(scope="module")
def decoder() -> Iterator[IsolatedDecoder]:
    """Its child is the decoder's own, and serves all tests until one ends it."""
    with IsolatedDecoder(SCHEMA, crash_marker=b"KILL") as made:
        yield made


@pytest.fixture
def often(warm: None) -> Iterator[IsolatedDecoder]:
    """Its children, which die one after the other, are forks."""
    with IsolatedDecoder(SCHEMA, crash_marker=b"KILL") as made:
        yield made


def children() -> list[psutil.Process]:
    return [c for c, line in command_lines(psutil.Process().children()) if "ingestion.decode.child_process" in line]


def payload(**fields: Any) -> bytes:
    return json.dumps({"t": 0, **fields}).encode()


def test_it_decodes_as_the_decoder_in_the_process_does(decoder: IsolatedDecoder) -> None:
    payloads = [payload(a=1, b={"x": [1]}), b"?", None, payload(drop=1), b"\xff", payload(a=2), b'{"t":"2020"}']
    payloads.append(b'{"t":"2030-01-01","a":5}')
    window = MessageWindow(latest=datetime(2029, 1, 1, tzinfo=UTC))
    here = JsonDecoder(SCHEMA)
    expected = here.decode(payloads, window)
    here.close()
    assert decoder.decode(payloads, window) == expected
    assert expected.outside_window == [7]


def test_large_batches_pass_the_pipe(decoder: IsolatedDecoder) -> None:
    text = "x" * 3_000_000
    decoded = decoder.decode([payload(a=text)] * 2, MessageWindow())
    assert [len(a) for a in decoded.rows.column("a").to_pylist()] == [len(text)] * 2


def test_records_that_kill_stand_alone(often: IsolatedDecoder) -> None:
    payloads: list[bytes | None] = [payload(a=i) for i in range(50)]
    payloads[7] = payloads[31] = KILLER
    payloads[8] = b"?"
    payloads[49] = b"no JSON and yet KILL"
    payloads[0] = payload(drop=1)
    decoded = often.decode(payloads, MessageWindow())
    assert decoded.crashed == dict.fromkeys([7, 31, 49], "the decoder died: exit code 70")
    assert list(decoded.unparseable) == [8]
    assert decoded.filtered == [0]
    assert row_indexes(decoded.rows).tolist() == [i for i in range(50) if i not in (0, 7, 8, 31, 49)]
    assert decoded.rows.column("a").to_pylist() == row_indexes(decoded.rows).tolist()


def test_one_record_alone_and_only_killers(often: IsolatedDecoder) -> None:
    alone = often.decode([KILLER], MessageWindow())
    assert list(alone.crashed) == [0]
    both = often.decode([KILLER, KILLER], MessageWindow())
    assert list(both.crashed) == [0, 1]
    assert len(both.rows) == 0
    assert often.decode([], MessageWindow()).rows.column_names == ["__row", "__time"]


def test_the_child_is_used_again_and_replaced_when_it_was_killed(decoder: IsolatedDecoder) -> None:
    decoder.decode([payload(a=1)], MessageWindow())
    (first,) = children()
    decoder.decode([payload(a=2)], MessageWindow())
    assert children() == [first]
    os.kill(first.pid, signal.SIGKILL)
    first.wait(10)
    decoded = decoder.decode([payload(a=3)], MessageWindow())
    assert decoded.crashed == {}
    assert decoded.rows.column("a").to_pylist() == [3]


def test_no_child_is_left_when_it_is_closed(decoder: IsolatedDecoder) -> None:
    decoder.decode([payload(a=1)], MessageWindow())
    (child,) = children()
    decoder.close()
    assert not child.is_running()
    assert children() == []


def test_a_child_that_hangs_is_ended(decoder: IsolatedDecoder) -> None:
    """A stopped child stands for a record that keeps the decoder busy for ever; it is stopped only once."""
    decoder.close()  # no child but this test's
    with IsolatedDecoder(SCHEMA, timeout_s=1.0) as impatient:
        impatient.decode([payload(a=1)], MessageWindow())
        (child,) = children()
        os.kill(child.pid, signal.SIGSTOP)
        alone = impatient.decode([payload(a=1)], MessageWindow())
        assert alone.crashed == {0: "the decoder did not finish within 1 s"}
        assert not child.is_running()
        (child,) = children()
        os.kill(child.pid, signal.SIGSTOP)
        batch = impatient.decode([payload(a=1), payload(a=2)], MessageWindow())
        assert batch.crashed == {}
        assert batch.rows.column("a").to_pylist() == [1, 2]


@pytest.mark.usefixtures("warm")
def test_an_unusable_schema_is_told() -> None:
    schema = DataSchema.model_validate({"dataSource": "d", "timestampSpec": {"column": "t", "format": "%Q"}})
    with IsolatedDecoder(schema) as decoder, pytest.raises(UnusableSchema, match="%Q"):
        decoder.decode([b"{}"], MessageWindow())
