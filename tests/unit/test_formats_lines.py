"""``lines``, by the reference of Druid 34."""

from __future__ import annotations

from ingestion.rows import row_indexes
from ingestion.specs.schema.data_schema import DataSchema
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


def test_each_line_of_a_record_is_a_row() -> None:
    found = decoded({"type": "lines"}, [b"a\n\nb\r\n", b"a\n\xff", b"c"], schema=SCHEMA)
    assert row_indexes(found.rows).tolist() == [0, 0, 0, 2]
    assert found.rows.column("line").to_pylist() == ["a", "", "b", "c"]
    assert list(found.unparseable) == [1]


def test_where_a_record_is_one_row_several_lines_are_unparseable() -> None:
    found = decoded({"type": "lines", "rowsPerRecord": 1}, [b"a\nb", b"a\rb", b"c"], schema=SCHEMA)
    assert found.unparseable == dict.fromkeys([0, 1], "there are several lines instead of one")
    assert found.rows.column("line").to_pylist() == ["c"]


def test_a_line_is_taken_apart_by_expressions() -> None:
    """Druid's documents show it so."""
    parsed = {"type": "expression", "name": "o", "expression": "try_parse_json(line)"}
    schema = SCHEMA.model_dump() | {"transformSpec": {"transforms": [parsed]}}
    schema["dimensionsSpec"] = {"dimensions": [{"type": "json", "name": "o"}]}
    found = decoded({"type": "lines"}, [b'{"c": 1}', b"no"], schema=DataSchema.model_validate(schema))
    assert found.rows.column("o").to_pylist() == ['{"c": 1}', None]
