"""Causes: what the decoder says of records becomes one cause where one mending mends all, and several where not."""

from __future__ import annotations

from typing import Any

import pytest

from ingestion.specs.causes import MAX_CHARACTERS, Cause, cause_of
from ingestion.specs.messages.protocol import QuarantinedRecord as Wire
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.task.quarantine import fit_records
from tests.support.decoders import decoder_of
from tests.support.formats import decoded

JSON = {"type": "json"}


def schema(**more: Any) -> DataSchema:
    return DataSchema.model_validate(
        {
            "dataSource": "d",
            "timestampSpec": {"column": "ts", "format": "auto"},
            "dimensionsSpec": {"dimensions": [{"name": n, "type": "long"} for n in ("amount", "amount2")]},
            **more,
        }
    )


def causes(*payloads: bytes, spec: dict[str, Any] = JSON, by: DataSchema | None = None) -> list[Cause]:
    found = decoded(spec, payloads, schema=by or schema())
    assert len(found.unparseable) == len(payloads), found.unparseable
    return [cause_of("unparseable", found.unparseable[i]) for i in range(len(payloads))]


SAME = {
    "no time": (
        [b'{"ts": "12 o\'clock: late"}', b'{"ts": "yesterday"}', b'{"ts": "a\\nb: \'c\' 5"}'],
        "'ts' has no time",
    ),
    "time is missing": ([b'{"x": 1}', b'{"ts": null}'], "missing or null"),
    "beyond the calendar": ([b'{"ts": 999999999999999}', b'{"ts": "999999999999998"}'], "is not between year"),
    "not JSON": ([b'{"ts": "2025-01-01", x}', b'{"ts": "2025-01-01T00:00:00Z", "long": 1, y}'], "not JSON"),
    "no object": ([b"17", b"-2.5e3"], "not a JSON object but a number"),
    "no UTF-8": ([b'{"a": "\xff"}', b'{"abc": "\xff\xff"}'], "not UTF-8"),
}


@pytest.mark.parametrize("name", SAME)
def test_one_cause_whatever_the_values(name: str) -> None:
    payloads, told = SAME[name]
    found = causes(*payloads)
    assert len({c.fingerprint for c in found}) == 1, found
    assert told in found[0].title


def test_other_causes_are_other_ones() -> None:
    every = [causes(payloads[0])[0].fingerprint for payloads, _ in SAME.values()]
    assert len(set(every)) == len(SAME)
    other = causes(b'{"at": "x"}', by=schema(timestampSpec={"column": "at", "format": "iso"}))[0]
    assert other.fingerprint not in every


def test_fields_keep_their_names_and_numbers_in_them() -> None:
    decoder = decoder_of(schema())
    payloads = [b'{"ts": 1, "amount": "%s"}' % text for text in (b"many", b"7 apples")] + [b'{"ts": 1, "amount2": "x"}']
    faults = decoder.decode(payloads).processed_with_error
    first, second, other = (cause_of("processed_with_error", faults[i]) for i in range(3))
    assert first == second
    assert "'amount'" in first.title
    assert "'amount2'" in other.title
    assert other.fingerprint != first.fingerprint


def test_formats_have_causes_too() -> None:
    schema_of = {"type": "record", "name": "R", "fields": [{"name": "ts", "type": "long"}]}
    spec = {"type": "avro_stream", "avroBytesDecoder": {"type": "schema_inline", "schema": schema_of}}
    found = causes(b"\x02\x01", b"\x02\x01\x01\x01", spec=spec)
    assert len(set(found)) == 1
    assert found[0].title == "not Avro of this schema: # bytes follow the record"


def test_what_is_cut_has_the_cause_of_what_is_whole() -> None:

    whole = Wire.model_construct(
        partition=0, offset=1, delivery_count=1, reason="unparseable", error="not JSON", key=None, payload=b"x" * 900
    )
    [cut] = fit_records([whole], most_bytes=500)
    assert cut.error != whole.error
    assert cause_of(cut.reason, cut.error) == cause_of(whole.reason, whole.error)


@pytest.mark.parametrize(
    ("error", "title"),
    [
        ("its publish was refused: file 3f2b8c1a-0000-4000-8000-123456789abc is not 'here' since 2025-01-01T00:00:00Z",
         "its publish was refused: file # is not … since #"),
        ("the decoder can't read 'x', isn't it", "the decoder can't read …, isn't it"),
        ("field 'it\\'s 5' has a fraction", "field 'it\\'s 5' has a fraction"),
        ("KeyError: b'\\x00abc' at 0xff\n  in line 3", "KeyError: … at # in line #"),
        ("UTF-8 and int64 stay, -1.5e3 goes", "UTF-8 and int64 stay, # goes"),
        ("x" * 5000, "x" * MAX_CHARACTERS),
        ("", ""),
    ],
)  # fmt: skip
def test_what_is_the_records_own_goes(error: str, title: str) -> None:
    assert cause_of("refused", error).title == title


def test_the_reason_tells_causes_apart() -> None:
    assert cause_of("refused", "x").fingerprint != cause_of("unparseable", "x").fingerprint
