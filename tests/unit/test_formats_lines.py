"""``lines``, by the reference of Druid 34."""

from __future__ import annotations

from ingestion.specs import DataSchema
from tests.support.formats import decoded

SCHEMA = DataSchema.model_validate(
    {
        "dataSource": "d",
        "timestampSpec": {"column": "t", "missingValue": "2025-06-01T00:00:00Z"},
        "dimensionsSpec": {"useSchemaDiscovery": True},
        "granularitySpec": {"rollup": False},
    }
)


def test_a_record_is_one_line_and_kept_as_it_stands() -> None:
    lines = [b"a, b", b' {"c": 1} ', b"end\n", b"end\r\n", "é".encode()]
    found = decoded({"type": "lines"}, lines, schema=SCHEMA)
    assert not found.unparseable
    assert found.rows.column("line").to_pylist() == ["a, b", ' {"c": 1} ', "end", "end", "é"]


def test_what_is_not_one_line_is_unparseable() -> None:
    found = decoded({"type": "lines"}, [b"a\nb", b"a\rb", b"\xff", b"c"], schema=SCHEMA)
    assert set(found.unparseable) == {0, 1, 2}
    assert found.unparseable[0] == "there are several lines, and not one"
    assert found.rows.column("line").to_pylist() == ["c"]


def test_a_line_is_taken_apart_by_expressions() -> None:
    """Druid's documents show it so."""
    parsed = {"type": "expression", "name": "o", "expression": "try_parse_json(line)"}
    schema = SCHEMA.model_dump() | {"transformSpec": {"transforms": [parsed]}}
    schema["dimensionsSpec"] = {"dimensions": [{"type": "json", "name": "o"}]}
    found = decoded({"type": "lines"}, [b'{"c": 1}', b"no"], schema=DataSchema.model_validate(schema))
    assert found.rows.column("o").to_pylist() == ['{"c": 1}', None]
