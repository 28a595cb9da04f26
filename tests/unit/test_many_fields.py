"""Records with more fields than are discovered, alone and among others."""

from __future__ import annotations

import pytest

from ingestion.decode.fields import MAX_DISCOVERED
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.rows import row_indexes
from tests.support.decoded_fields import decode, schema_of


def many(prefix: str, count: int) -> str:
    return ",".join(f'"{prefix}{i}":1' for i in range(count))


@pytest.mark.parametrize("fields", [MAX_DISCOVERED + 1, 10_000])
def test_a_record_with_too_many_fields_falls_alone(fields: int) -> None:
    """Whatever is read with it, before it or after it; fields that are named or excluded don't count."""
    decoder = JsonDecoder(schema_of(dimensions=["id"], useSchemaDiscovery=True, dimensionExclusions=["never"]))
    wide = f'"id":"w",{many("f", fields)}'
    good = [f'"id":"{i}","a":1,"f{i}":1' for i in range(5)]
    for batch in ([wide], [*good, wide], [wide, *good], [good[0], wide, good[1], wide]):
        decoded = decode(decoder, *batch)
        faulty = [i for i, record in enumerate(batch) if record is wide]
        assert list(decoded.unparseable) == faulty
        assert f"has {fields:,} fields to discover, at most 1,000 are allowed" in decoded.unparseable[faulty[0]]
        assert row_indexes(decoded.rows).tolist() == [i for i in range(len(batch)) if i not in faulty]
    most = f'"id":"m","never":1,{many("f", MAX_DISCOVERED)}'
    assert len(decode(decoder, most, wide).rows) == 1
    decoder.close()


def test_records_with_many_fields_together_are_read_in_parts() -> None:
    """More than are read at once, each record having few enough."""
    decoder = JsonDecoder(schema_of(useSchemaDiscovery=True))
    one, other = many("a", MAX_DISCOVERED), many("b", MAX_DISCOVERED)
    for batch in ([one, other], [other, '"rare":1', other], ['"a":1', one, '"rare":1', one]):
        decoded = decode(decoder, *batch)
        assert decoded.unparseable == {}
        assert row_indexes(decoded.rows).tolist() == list(range(len(batch)))
    assert len(decode(decoder, one, other).rows.column_names) == 2 + 2 * MAX_DISCOVERED
    decoder.close()


def test_fields_that_the_stream_no_longer_holds_are_forgotten() -> None:
    decoder = JsonDecoder(schema_of(useSchemaDiscovery=True))
    decode(decoder, ",".join(f'"f{i}":1' for i in range(500)))
    for _ in range(2):
        rows = decode(decoder, '"a":1').rows
    assert rows.column_names == ["__row", "__time", "a"]
    assert len(decoder._parts._fields.names) < 10
    decoder.close()
