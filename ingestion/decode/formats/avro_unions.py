"""``extractUnionsByType``: the value of a union with several types becomes an object with its type's name as key.

Druid's rules: a named type goes by its own name, any other by its type's (``int``, ``string``, ``array``, …); null
stays null; a union of null and one type more is that type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ingestion.decode.exact_numbers import NumberToken

Expand = Callable[[Any], Any]
_NAMED = ("record", "error", "enum", "fixed")
_INT = range(-(2**31), 2**31)


def type_expander(schema: Any, named: dict[str, Any]) -> Expand:
    """What expands a record that fastavro has read with ``return_named_type``. ``named``: types defined elsewhere."""
    return _Compiler(named).expander(schema)


def record_expander(members: list[Any], named: dict[str, Any]) -> Expand:
    """For a union of records at the top level, whose type is not added."""
    compiler = _Compiler(named)
    expanders = {_member_key(m): compiler.expander(m) for m in members if m != "null"}

    def expand(value: Any) -> Any:
        name, inner = value if isinstance(value, tuple) else (next(iter(expanders)), value)
        return expanders[name](inner)

    return expand


class _Compiler:
    def __init__(self, named: dict[str, Any]) -> None:
        self._named_schemas = dict(named)
        self._expanders: dict[str, Expand] = {}

    def expander(self, schema: Any) -> Expand:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return self._by_name(schema) if schema in self._named_schemas else _identity
        kind = schema["type"]
        if kind in _NAMED:
            self._named_schemas[schema["name"]] = schema
            return self._by_name(schema["name"])
        if kind == "array":
            items = self.expander(schema["items"])
            return lambda value: [items(v) for v in value]
        if kind == "map":
            values = self.expander(schema["values"])
            return lambda value: {k: values(v) for k, v in value.items()}
        return self.expander(kind) if isinstance(kind, dict | list) else _identity

    def _by_name(self, name: str) -> Expand:
        """By name only when it is called: a type may hold itself."""
        if name not in self._expanders:
            self._expanders[name] = lambda value: self._expanders[name](value)
            schema = self._named_schemas[name]
            self._expanders[name] = self._record(schema) if schema["type"] in ("record", "error") else _identity
        return lambda value: self._expanders[name](value)

    def _record(self, schema: dict[str, Any]) -> Expand:
        fields = [(f["name"], self.expander(f["type"])) for f in schema["fields"]]
        return lambda value: {name: expand(value[name]) for name, expand in fields}

    def _union(self, members: list[Any]) -> Expand:
        types = [m for m in members if m != "null"]
        expanders = {_member_key(m): self.expander(m) for m in types}
        single = next(iter(expanders.values())) if len(types) == 1 else None

        def expand(value: Any) -> Any:
            if value is None:
                return None
            name, inner = value if isinstance(value, tuple) else (_type_name(value, expanders), value)
            if single is not None:
                return single(inner)
            return {name.rpartition(".")[2]: expanders.get(name, _identity)(inner)}

        return expand


def _identity(value: Any) -> Any:
    return value


def _member_key(member: Any) -> str:
    if isinstance(member, str):
        return member
    return str(member["name"] if member["type"] in _NAMED else member["type"])


def _type_name(value: Any, expanders: dict[str, Expand]) -> str:
    """The unnamed type that a value has; fastavro does not say which one it read."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "int" if "int" in expanders and ("long" not in expanders or value in _INT) else "long"
    if isinstance(value, float):
        return "double" if "double" in expanders else "float"
    if isinstance(value, NumberToken):
        return "float"
    kinds: dict[type, str] = {str: "string", bytes: "bytes", list: "array", dict: "map"}
    return kinds.get(type(value), "bytes")
