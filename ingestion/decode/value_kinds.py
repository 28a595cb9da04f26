"""Of which kind a field's value is in a record, and how expressions get it: ``{0}`` is the field's JSON text."""

from __future__ import annotations

NULL, LONG, DOUBLE, STRING, BOOLEAN, JSON, BEYOND = range(7)  # BEYOND: a number that a double does not hold
TYPED = {
    NULL: "NULL",
    LONG: "CAST({0} AS BIGINT)",
    DOUBLE: "CAST({0} AS DOUBLE)",
    STRING: "json_extract_string({0}, '$')",
    BOOLEAN: "{0} = 'true'",
    JSON: "CAST({0} AS JSON)",
}
