"""What the sampler takes records for, as tables: usual ones, mixed ones, broken ones, none."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from ingestion.specs.messages.sampling import FormatGuess
from ingestion.task.sampler.format_guess import MAX_SCHEMAS, format_guesses

JSON = {"type": "json"}
NESTED = b'{"a":' * 5000 + b"1" + b"}" * 5000


def best(*payloads: bytes | None) -> FormatGuess:
    return format_guesses(payloads)[0]


@pytest.mark.parametrize(
    "payloads", [[], [None, None], [b""], [b"\xff\xfe\x01"], [b"one word"], [b"\x00\x01"], [NESTED]]
)
def test_what_says_nothing_is_not_guessed_at(payloads: list[bytes | None]) -> None:
    assert format_guesses(payloads) == []


@pytest.mark.parametrize(
    ("payloads", "share", "why"),
    [
        ([b'{"a": 1}'], 1.0, "all 1 are JSON objects"),
        ([b'{"a": 1}', None, b'{"b": 2}'], 1.0, "all 2"),
        ([b'{"a": 1}', b'{"a": '], 0.5, "1 broken JSON"),
        ([b'{"a": 1}', b"[1]", b"7", b"no"], 0.25, "2 JSON but not an object, 1 not JSON"),
        (
            [b'{"a": 1}', b'{"a": 1}\n{"a": 2} '],
            1.0,
            "all 2 are JSON objects, 1 of 2 of them have several in one record",
        ),
        ([b'{"a": 1}', b'{"a": 1}{"a": 2}', b'{"a": 1} 2'], 2 / 3, "1 broken JSON"),
        ([b'{"a": 1}', NESTED], 0.5, "1 nested too deeply"),
        ([json.dumps({f"f{i}": i for i in range(10_000)}).encode()], 1.0, "JSON objects"),
        ([b'{"a": 1}', b'{"huge": "' + b"x" * 1_000_000 + b'"}'], 1.0, "all 1"),
        ([b'{"huge": "' + b"x" * 1_000_000 + b'"}'], 1.0, "all 1"),
    ],
)
def test_json(payloads: list[bytes | None], share: float, why: str) -> None:
    guess = best(*payloads)
    assert (guess.input_format, guess.share) == (JSON, share)
    assert why in guess.why


@pytest.mark.parametrize(
    ("payloads", "form"),
    [
        ([b"1,a,2.5", b"2,b,3.5"], {"type": "csv", "columns": ["column_1", "column_2", "column_3"]}),
        ([b"id,name", b"1,a"], {"type": "csv", "columns": ["id", "name"]}),
        ([b"id,name\n1,a", b"id,name\n2,b\n3,c"], {"type": "csv", "findColumnsFromHeader": True}),
        ([b"1,a\n2,b", b"1,a\n3,b\n4,c"], {"type": "csv", "columns": ["column_1", "column_2"]}),
        ([b'1,"a,b"', b"2,c"], {"type": "csv", "columns": ["column_1", "column_2"]}),
        ([b"1\ta", b"2\tb"], {"type": "tsv", "delimiter": "\t", "columns": ["column_1", "column_2"]}),
        ([b"1;a", b"2;b"], {"type": "tsv", "delimiter": ";", "columns": ["column_1", "column_2"]}),
        ([b"1|a", b"2|b"], {"type": "tsv", "delimiter": "|", "columns": ["column_1", "column_2"]}),
    ],
)
def test_lines_of_values(payloads: list[bytes], form: dict[str, Any]) -> None:
    assert best(*payloads).input_format == form


def test_one_comma_in_some_sentences_is_no_csv() -> None:
    assert format_guesses([b"Well, yes", b"no"]) == []


def framed(schema: int, rest: bytes) -> bytes:
    return b"\x00" + schema.to_bytes(4, "big") + rest


def test_a_schema_registry_s_records() -> None:
    # Confluent's framing; a Protobuf message has the path of its type (0: the first one) before its fields.
    proto = best(framed(7, b"\x00" + b"\x08\x96\x01"), framed(7, b"\x00" + b"\x12\x07testing"))
    assert proto.input_format["type"] == "protobuf"
    avro = best(framed(7, b"\x06foo\x02"), framed(8, b"\x06bar\x04"))
    assert (avro.input_format["type"], avro.share) == ("avro_stream", 1.0)
    assert avro.lacks
    assert "7, 8" in avro.why
    assert "Protobuf" in format_guesses([framed(7, b"\x06foo\x02")])[1].input_format["type"].capitalize()


@pytest.mark.parametrize(
    ("payload", "form", "why"),
    [
        (framed(7, b'{"a": 1}'), "json", "are JSON after a byte 0 and a schema id"),
        (b"\0" + (7).to_bytes(8, "big") + b"\x06foo", "avro_stream", "begin with a byte 0 and the eight bytes"),
        ('{"a": 1}'.encode("utf-16"), "json", "are text in UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "json", "are text in UTF-16"),
        ('{"a": 1}'.encode("utf-16-be"), "json", "are text in UTF-16"),
        (gzip.compress(b'{"a": 1}', mtime=0), "json", "are compressed with gzip"),
        (gzip.compress(b"1,2", mtime=0), "lines", "are compressed with gzip"),
    ],
)
def test_what_no_format_reads_is_named(payload: bytes, form: str, why: str) -> None:
    (guess,) = format_guesses([payload] * 3)
    assert (guess.input_format["type"], guess.share) == (form, 0.0)
    assert guess.why.startswith(f"all 3 {why}")
    assert guess.lacks
    both = format_guesses([payload, b'{"a": 1}'])
    assert [(g.input_format["type"], g.share) for g in both] == [("json", 0.5), (form, 0.0)]


def test_bytes_that_only_look_like_a_registry_s_are_none() -> None:
    assert format_guesses([framed(n, b"\x06") for n in range(MAX_SCHEMAS + 1)]) == []


def test_of_mixed_records_the_most_common_kind_comes_first() -> None:
    guesses = format_guesses([b'{"a": 1}', b"1,2", b"3,4", b"5,6"])
    assert [g.input_format["type"] for g in guesses] == ["csv", "json"]
