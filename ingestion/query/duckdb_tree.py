"""The second check: of DuckDB's own tree of the SQL that is to run. It knows all nodes, and allows all functions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ingestion.query.functions import FUNCTIONS, TABLE_FUNCTIONS
from ingestion.query.statement import RESERVED, Refused

_QUERIES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_SOURCES = {"BASE_TABLE", "TABLE_FUNCTION", "JOIN", "SUBQUERY", "EMPTY", "EXPRESSION_LIST"}
_CLASSES = {"COLUMN_REF", "CONSTANT", "FUNCTION", "CASE", "CAST", "COMPARISON", "CONJUNCTION", "OPERATOR", "BETWEEN"}
_CLASSES |= {"TYPE", "SUBQUERY", "STAR", "WINDOW", "LAMBDA", "LAMBDA_REF", "COLLATE", "POSITIONAL_REFERENCE"}


def check_tree(answer: str) -> None:
    """``answer``: that of ``json_serialize_sql``. Raises ``Refused``."""
    read = json.loads(answer)
    if read["error"]:
        raise Refused(f"The statement can't be read: {read.get('error_message', '')}")
    if len(read["statements"]) != 1:
        raise Refused("Send one statement.")
    for node in _objects(read["statements"][0]["node"]):
        _check(node)


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _check(node: dict[str, Any]) -> None:
    if "class" in node:
        if node["class"] not in _CLASSES:
            raise _refused_part(node["class"])
        if "function_name" in node:
            _check_function(node)
    elif "sample" in node:  # a query or what it reads from
        _check_source(node)
    elif "modifiers" in node and node["type"] not in _QUERIES:
        raise _refused_part(node["type"])


def _check_source(node: dict[str, Any]) -> None:
    kind = node["type"]
    if node["sample"] is not None:
        raise Refused("SAMPLE is not allowed.")
    if kind not in _QUERIES | _SOURCES:
        raise _refused_part(kind)
    if kind == "BASE_TABLE":
        is_ours = str(node["table_name"]).startswith(RESERVED) and not node["schema_name"] and not node["catalog_name"]
        if not is_ours or node["at_clause"] is not None:
            raise Refused(f"Only datasources can be read, not {node['table_name']}.")
    if kind == "TABLE_FUNCTION" and str(node["function"].get("function_name")).lower() not in TABLE_FUNCTIONS:
        raise Refused(f"Only datasources can be read, not {node['function'].get('function_name')}().")


def _check_function(node: dict[str, Any]) -> None:
    name = str(node["function_name"]).lower()
    if name not in FUNCTIONS or node.get("schema") or node.get("catalog"):
        raise Refused(f"The function {name}() is not allowed.")


def _refused_part(kind: str) -> Refused:
    """``kind``: DuckDB's name of a node."""
    return Refused(f"The statement has a part that is not allowed: {kind.replace('_', ' ').lower()}.")
