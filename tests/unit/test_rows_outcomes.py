"""Every record has one outcome, whatever the spec; those with a faulty field are told beside it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestion.decode.decoded import Decoded
from ingestion.decode.isolated_decoder import IsolatedDecoder
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.message_window import MessageWindow
from ingestion.rows import row_indexes
from ingestion.sources.base import Batch
from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import ParseExceptionTotals
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.specs.tasks.ingestion_spec import TuningConfig
from ingestion.task.errors import TooManyParseExceptions
from ingestion.task.ledger import DUPLICATE, STORED, Ledger
from ingestion.task.parse_exceptions import ParseExceptions

EVERYTHING = {
    "dataSource": "d",
    "timestampSpec": {"column": "t", "format": "auto"},
    "dimensionsSpec": {"dimensions": ["s", {"name": "n", "type": "long"}], "useSchemaDiscovery": True},
    "metricsSpec": [
        {"type": "count", "name": "count"},
        {"type": "doubleSum", "name": "sum", "fieldName": "v"},
        {"type": "stringLast", "name": "last", "fieldName": "s"},
    ],
    "granularitySpec": {
        "queryGranularity": {"type": "period", "period": "P1D", "timeZone": "Europe/Zurich"},
        "rollup": True,
    },
    "transformSpec": {
        "transforms": [{"type": "expression", "name": "x", "expression": "a / b + length(s)", "language": "sql"}],
        "filter": {"type": "expression", "expression": "a IS NULL OR a::VARCHAR <> '7'", "language": "sql"},
    },
}
SCHEMA = DataSchema.model_validate(EVERYTHING)


@pytest.fixture(scope="module")
def decoder() -> Any:
    made = JsonDecoder(SCHEMA)
    yield made
    made.close()


def check(decoded: Decoded, payloads: list[Any]) -> None:
    rows = row_indexes(decoded.rows).tolist()
    ends = [*rows, *decoded.unparseable, *decoded.filtered, *decoded.outside_window, *decoded.crashed]
    ends += decoded.tombstones
    assert sorted(ends) == list(range(len(payloads)))
    assert rows == sorted(rows)
    assert set(decoded.processed_with_error) <= set(rows)


VALUE = (
    st.none() | st.booleans() | st.integers(-10, 10) | st.floats() | st.text(max_size=3) | st.lists(st.text(max_size=2))
)
RECORD = st.dictionaries(st.sampled_from(["s", "n", "v", "a", "b", "z", "t"]), VALUE | st.just(7), max_size=7).map(
    lambda r: json.dumps({"t": 0, **r}).encode()
)


@settings(max_examples=100)
@given(payloads=st.lists(RECORD | st.binary(max_size=20) | st.none(), max_size=8), late=st.booleans())
def test_every_index_has_one_outcome(decoder: JsonDecoder, payloads: list[bytes | None], late: bool) -> None:
    window = MessageWindow(earliest=datetime(2000, 1, 1, tzinfo=UTC)) if late else MessageWindow()
    check(decoder.decode(payloads, window), payloads)


def test_the_kinds_are_told_apart() -> None:
    records: list[bytes | None] = [
        b'{"t":0,"n":1,"s":"fine","a":1,"b":2}',
        b'{"t":0,"n":"text"}',
        b'{"t":0,"a":"x","b":1,"s":""}',
        b'{"t":0,"a":7}',
        b'{"t":null}',
        b'{"t":"never"}',
        b"not JSON",
        None,
    ]
    for made in (JsonDecoder(SCHEMA), IsolatedDecoder(SCHEMA)):
        decoded = made.decode(records, MessageWindow())
        made.close()
        check(decoded, records)
        assert row_indexes(decoded.rows).tolist() == [0, 1, 2]
        assert decoded.processed_with_error[1] == "field 'n' is not a whole number"
        assert decoded.processed_with_error[2] == "transform 'x' fails on this record"
        assert 0 not in decoded.processed_with_error
        assert decoded.filtered == [3]
        assert sorted(decoded.unparseable) == [4, 5, 6]
        assert decoded.tombstones == [7]


def test_records_without_a_time_can_be_thrown_away() -> None:
    """The reference says how; those that have an unreadable one stay unparseable."""
    unwanted = {"type": "not", "field": {"type": "selector", "dimension": "__time", "value": 0}}
    schema = DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "t", "missingValue": "1970-01-01"},
            "transformSpec": {"filter": unwanted},
        }
    )
    made = JsonDecoder(schema)
    decoded = made.decode([b'{"t":1}', b'{"t":null}', b'{"n":1}', b'{"t":"never"}'], MessageWindow())
    made.close()
    assert decoded.filtered == [1, 2]
    assert list(decoded.unparseable) == [3]


def test_moved_results_keep_their_faults() -> None:
    made = JsonDecoder(SCHEMA)
    decoded = made.decode([b'{"t":0,"n":"text","a":1,"b":1,"s":"x"}'], MessageWindow()).moved([5])
    made.close()
    assert decoded.processed_with_error == {5: "field 'n' is not a whole number"}


def stored(count: int) -> Ledger:
    batch = Batch(
        partitions=np.full(count, 3),
        offsets=np.arange(count) + 10,
        delivery_counts=np.ones(count, np.int64),
        timestamps_ms=[None] * count,
        keys=[None] * count,
        payloads=[b"x"] * count,
        deadline=0.0,
    )
    ledger = Ledger(batch)
    ledger.mark(range(count), STORED)
    return ledger


def test_the_ledger_counts_faulty_records_that_are_stored() -> None:
    """A record that turns out to be settled already is a duplicate and no longer counted."""
    ledger = stored(4)
    ledger.faults.update({1: "a", 2: "b"})
    assert ledger.counters(3).processed_with_error == 2
    assert ledger.counters(3).rolled_up == 1
    ledger.mark([2], DUPLICATE)
    assert ledger.counters(3).processed_with_error == 1


def test_faults_are_in_no_sum() -> None:
    counters = Counters(polled=3, published=2, rolled_up=1, processed_with_error=3)
    assert counters.ended == 3
    assert (counters + counters).processed_with_error == 6


# What a tuningConfig says of them


def parse_exceptions(**tuning: Any) -> tuple[ParseExceptions, list[Any]]:
    logger: Any = structlog.testing.CapturingLogger()
    return ParseExceptions(TuningConfig.model_validate(tuning), logger), logger.calls


def faulty(unread: int, partly: int) -> Ledger:
    ledger = stored(unread + partly + 1)
    ledger.mark_unparseable({i: f"unread {i}" for i in range(unread)}, "unparseable")
    ledger.faults.update({i: f"partly {i}" for i in range(unread, unread + partly)})
    return ledger


def test_both_kinds_count_towards_the_limit_over_all_batches() -> None:
    """Druid: the task fails when there are more parse exceptions than maxParseExceptions."""
    seen, _ = parse_exceptions(maxParseExceptions=4)
    for ledger, total in ((faulty(1, 1), 2), (faulty(0, 0), None), (faulty(1, 1), 4)):
        seen.check(ledger)
        seen.set_totals(None if total is None else ParseExceptionTotals(seen=total))
    with pytest.raises(TooManyParseExceptions) as caught:
        seen.check(faulty(0, 1))
    assert str(caught.value) == (
        "There are 5 parse exceptions, more than tuningConfig.maxParseExceptions (4) allows. "
        "The first of the last batch, at partition 3, offset 10: partly 0"
    )


def test_a_batch_that_was_given_up_is_not_counted_twice() -> None:
    seen, _ = parse_exceptions(maxParseExceptions=2)
    seen.check(faulty(1, 1))
    seen.check(faulty(1, 1))


def test_what_other_indexers_have_found_counts_too() -> None:
    seen, _ = parse_exceptions(maxParseExceptions=4)
    seen.set_totals(ParseExceptionTotals(seen=4))
    seen.check(faulty(0, 0))
    with pytest.raises(TooManyParseExceptions, match="There are 5 parse exceptions"):
        seen.check(faulty(1, 0))


def test_as_many_with_a_faulty_field_are_saved_as_the_report_shows() -> None:
    seen, _ = parse_exceptions(maxSavedParseExceptions=3)
    ledger = faulty(1, 5)
    saved = ledger.faulty(seen.room_to_save)
    assert [(r.offset, r.error, r.payload_size) for r in saved] == [
        (int(ledger.batch.offsets[i]), f"partly {i}", len(ledger.batch.payloads[i] or b"")) for i in (1, 2, 3)
    ]
    seen.set_totals(ParseExceptionTotals(seen=6, saved=3))
    assert seen.room_to_save == 0
    assert parse_exceptions(reportParseExceptions=True)[0].room_to_save == 1


def test_without_a_limit_nothing_fails_and_nothing_is_logged() -> None:
    seen, lines = parse_exceptions()
    seen.check(faulty(50, 50))
    assert lines == []


def test_to_report_parse_exceptions_is_to_allow_none() -> None:
    seen, _ = parse_exceptions(reportParseExceptions=True, maxParseExceptions=100)
    seen.check(faulty(0, 0))
    with pytest.raises(TooManyParseExceptions):
        seen.check(faulty(1, 0))


def test_each_is_logged_if_asked_for() -> None:
    seen, lines = parse_exceptions(logParseExceptions=True)
    seen.check(faulty(1, 1))
    assert [call.kwargs for call in lines] == [
        {"partition": 3, "offset": 10, "error": "unread 0"},
        {"partition": 3, "offset": 11, "error": "partly 1"},
    ]
