"""How large an expression's values can become, told from its tree before it has seen a record.

DuckDB's memory limit does not hold for texts that functions make, and a function that has begun can't be interrupted.
So every function that an expression may call takes time in proportion to its arguments (``scalar_functions`` has no
others), and the size of its result is bounded here: by so many bytes, and so many for each byte of a field. What could
take or make as much as two fields multiplied is refused: patterns and what ``replace`` puts in have to be constants.

Sizes are those of a value's text. A list has no more elements than its text has bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ingestion.decode.scalar_functions import SMALL

MAX_GROWTH = 100.0
MAX_FIXED_BYTES = 64 * 1024
MAX_PATTERN_BYTES = 1000
MAX_NODES = 2000
DEEPEST = 100
_REPEATED = re.compile(r"\{(\d{1,4})(?:,(\d{0,4}))?\}")
_SMALL = 64.0  # any number, boolean, time or interval
Node = Mapping[str, Any]


class TooLarge(ValueError):
    """The expression could make too much out of a record; the message says of what."""


@dataclass(frozen=True)
class Size:
    """At most ``fixed`` bytes, and ``per_byte[column]`` more for each byte of that column."""

    fixed: float = 0.0
    per_byte: Mapping[str, float] = field(default_factory=dict)

    def bytes_of(self, records: pa.Table) -> float:
        """For all of these records' fields together, in bytes."""
        return float(self.growth * records.nbytes + self.fixed * len(records))

    @property
    def is_constant(self) -> bool:
        return not self.per_byte

    @property
    def growth(self) -> float:
        return max(self.per_byte.values(), default=0.0)

    def __add__(self, other: Size) -> Size:
        names = {*self.per_byte, *other.per_byte}
        return Size(
            self.fixed + other.fixed, {n: self.per_byte.get(n, 0.0) + other.per_byte.get(n, 0.0) for n in names}
        )

    def __mul__(self, factor: float) -> Size:
        return Size(self.fixed * factor, {n: part * factor for n, part in self.per_byte.items()})

    def __or__(self, other: Size) -> Size:
        """Of either of the two."""
        names = {*self.per_byte, *other.per_byte}
        return Size(
            max(self.fixed, other.fixed),
            {n: max(self.per_byte.get(n, 0.0), other.per_byte.get(n, 0.0)) for n in names},
        )


_ZERO_SIZE = Size()
_SMALL_SIZE = Size(_SMALL)
_LISTS = 6.0  # quotes and escapes around each of many short elements
_FACTORS = {
    **dict.fromkeys(("upper", "ucase", "lower", "lcase", "base64", "to_base64"), 1.5),
    **dict.fromkeys(("hex", "to_hex", "regexp_escape"), 2.0),
    **dict.fromkeys(("json_extract", "json_extract_path", "json_value", "->"), 2.0),
    **dict.fromkeys(("url_encode", "nfc_normalize", "strip_accents", "from_json"), 3.0),
    # Bytes are shown as four characters each.
    **dict.fromkeys(("encode", "unhex", "from_hex", "from_base64", "translate"), 4.0),
    **dict.fromkeys(("string_split", "str_split", "split", "string_to_array", "string_split_regex"), _LISTS),
    **dict.fromkeys(("str_split_regex", "regexp_split_to_array", "regexp_extract_all", "parse_path"), _LISTS),
    **dict.fromkeys(("json", "json_array", "json_keys", "json_object", "json_quote", "to_json"), _LISTS),
    **dict.fromkeys(("list_value", "list_pack", "array_value"), 2.0),
    **dict.fromkeys(("row_to_json", "map", "map_from_entries", "row", "struct_pack"), _LISTS),
}
_CONSTANTS = {  # function → which argument has to be constant: a pattern, whose length each byte of a text costs
    "timezone": 0,  # DuckDB compares an unknown name with all it knows
    **dict.fromkeys(("~~", "!~~", "~~*", "!~~*", "~~~", "like_escape", "ilike_escape"), 1),
    **dict.fromkeys(("not_like_escape", "not_ilike_escape", "regexp_extract", "regexp_extract_all"), 1),
    **dict.fromkeys(("regexp_full_match", "regexp_matches", "regexp_replace", "regexp_split_to_array"), 1),
    **dict.fromkeys(("str_split_regex", "string_split_regex"), 1),
}
_TYPES = {  # what a cast to a type makes of a text's length; of all others here it is a small value
    **dict.fromkeys(("VARCHAR", "TEXT", "STRING", "CHAR", "BPCHAR", "NVARCHAR"), 1.0),
    **dict.fromkeys(("BLOB", "BYTEA", "BINARY", "VARBINARY"), 4.0),
    **dict.fromkeys(("JSON", "LIST", "STRUCT", "ROW", "MAP", "UNION"), _LISTS),
    **dict.fromkeys(("BIT", "BITSTRING"), 8.0),
}
_SMALL_TYPE_NAMES = """
BIGINT BOOL BOOLEAN DATE DATETIME DEC DECIMAL DOUBLE FLOAT FLOAT4 FLOAT8 HUGEINT INT INT1 INT128 INT16 INT2 INT32 INT4
INT64 INT8 INTEGER INTERVAL LOGICAL LONG NUMERIC OID REAL SHORT SIGNED SMALLINT TIME TIMESTAMP TIMESTAMPTZ TIMESTAMP_MS
TIMESTAMP_NS TIMESTAMP_S TIMESTAMP_US TIMETZ TINYINT UBIGINT UHUGEINT UINT128 UINT16 UINT32 UINT64 UINT8 UINTEGER
USMALLINT UTINYINT UUID
"""
_SMALL_TYPES = frozenset(_SMALL_TYPE_NAMES.split()) | {"TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE"}


@dataclass(frozen=True)
class ExpressionCost:
    """What an expression costs: bytes that it makes, and bytes that it goes through."""

    made: Size  # all that is made on the way to a result, together with it
    read: Size  # all that is gone through; a byte takes some nanoseconds


def measure(tree: Node) -> ExpressionCost:
    """Bound an expression of DuckDB's own tree. Raises ``TooLarge``."""
    measurer = _Measurer()
    result = measurer.size(tree)
    return ExpressionCost(measurer.made + result, measurer.read + result)


def _check(size: Size) -> None:
    if size.growth > MAX_GROWTH:
        raise TooLarge(
            f"its result could be up to {size.growth:,.0f} times as long as a field; at most {MAX_GROWTH:.0f} times is "
            "allowed"
        )
    if size.fixed > MAX_FIXED_BYTES:
        raise TooLarge(
            f"its result could have {size.fixed:,.0f} bytes for empty fields; at most {MAX_FIXED_BYTES:,} are allowed"
        )


class _Measurer:
    def __init__(self) -> None:
        self.made = self.read = _ZERO_SIZE
        self._nodes = 0
        self._depth = 0

    def size(self, node: Node) -> Size:
        """Of the value of ``node``."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise TooLarge(f"it has more than {MAX_NODES:,} parts")
        if self._depth == DEEPEST:
            raise TooLarge(f"it is nested more than {DEEPEST} levels deep")
        self._depth += 1
        size = self._BY_CLASS[node["class"]](self, node)
        self._depth -= 1
        _check(size)
        return size

    def _add(self, size: Size) -> Size:
        self.made += size
        return size

    def _column(self, node: Node) -> Size:
        return Size(_SMALL, {node["column_names"][0]: 1.0})

    def _constant(self, node: Node) -> Size:
        return Size(4.0 * len(node["literal"].get("text", "").encode()) + 4.0)

    def _case(self, node: Node) -> Size:
        size = self.size(node["else_expr"])
        for check in node["case_checks"]:
            self.size(check["when_expr"])
            size |= self.size(check["then_expr"])
        return self._add(size)

    def _cast(self, node: Node) -> Size:
        child = self.size(node["child"])
        self.read += child
        return self._add(_cast_to(node["type_expr"], child))

    def _condition(self, node: Node) -> Size:
        for child in _children(node):
            self.read += self.size(child)
        return _SMALL_SIZE

    def _operator(self, node: Node) -> Size:
        sizes = [self.size(child) for child in node["children"]]
        kind = node["type"]
        if kind in ("OPERATOR_COALESCE", "ARRAY_CONSTRUCTOR"):
            return self._add(_sum(sizes))
        if kind in ("OPERATOR_NULLIF", "OPERATOR_TRY", "ARRAY_EXTRACT", "ARRAY_SLICE", "STRUCT_EXTRACT"):
            return self._add(sizes[0])
        self.read += _sum(sizes)
        return _SMALL_SIZE

    def _function(self, node: Node) -> Size:
        name = str(node["function_name"]).lower()
        arguments = [a["expression"] for a in node["arguments"]]
        sizes = [self.size(a) for a in arguments]
        self.read += _sum(sizes) * _scan_count(name, sizes, arguments)
        rule = _RULES.get(name)
        if rule is not None:
            return self._add(rule(sizes, arguments))
        if name in SMALL:
            return _SMALL_SIZE
        return self._add(_sum(sizes) * _FACTORS.get(name, 1.0) + _SMALL_SIZE)

    _BY_CLASS: Mapping[str, Callable[[_Measurer, Node], Size]] = {
        "COLUMN_REF": _column,
        "CONSTANT": _constant,
        "CASE": _case,
        "CAST": _cast,
        "COMPARISON": _condition,
        "CONJUNCTION": _condition,
        "BETWEEN": _condition,
        "OPERATOR": _operator,
        "FUNCTION": _function,
    }


def _children(node: Node) -> Iterator[Node]:
    """Of a comparison, a conjunction or BETWEEN."""
    for name in ("left", "right", "input", "lower", "upper"):
        if name in node:
            yield node[name]
    yield from node.get("children", ())


def _sum(sizes: Sequence[Size]) -> Size:
    return sum(sizes, _ZERO_SIZE)


def _cast_to(type_node: Node, child: Size) -> Size:
    name = str(type_node["type_name"]).upper()
    if name in _TYPES:
        for inner in type_node["children"]:
            if inner["class"] == "TYPE":
                _cast_to(inner, child)
        return child * _TYPES[name] + _SMALL_SIZE
    if name not in _SMALL_TYPES:
        raise TooLarge(f"it can't cast to {name.lower()}")  # an array's length is memory whatever is in it
    return _SMALL_SIZE


def _scan_count(name: str, sizes: Sequence[Size], arguments: Sequence[Node]) -> float:
    """How often a text is gone through, at worst: for a pattern as often as that has parts, repetitions written out."""
    place = _CONSTANTS.get(name)
    if place is None or place >= len(sizes):
        return 1.0
    length = _constant(sizes[place], f"argument {place + 1} of {name!r}")
    if length > 4 * MAX_PATTERN_BYTES + 4:
        raise TooLarge(f"argument {place + 1} of {name!r} is longer than {MAX_PATTERN_BYTES:,} bytes")
    repeated = _REPEATED.findall(_literal(arguments[place]))
    return length / 4 + sum(max(int(least), int(most or 0)) for least, most in repeated)


def _constant(size: Size, subject: str) -> float:
    if not size.is_constant:
        raise TooLarge(f"{subject} must be a constant text, without fields of the record")
    return size.fixed


def _size_of_replace(sizes: Sequence[Size], arguments: Sequence[Node]) -> Size:
    """``replace(text, what, by)``."""
    by = _constant(sizes[2], "the replacement in 'replace'") if len(sizes) > 2 else 0.0
    length = len(_literal(arguments[1]).encode()) if len(sizes) > 1 else 1
    bytes_put_in = len(_literal(arguments[2]).encode()) if len(sizes) > 2 and _is_text(arguments[2]) else by
    return sizes[0] * max(1.0, bytes_put_in / max(1, length)) + _SMALL_SIZE


def _size_of_pattern_replace(sizes: Sequence[Size], arguments: Sequence[Node]) -> Size:
    """``regexp_replace(text, pattern, by)``: what is put in also where nothing was, and with what was found."""
    by = _constant(sizes[2], "the replacement in 'regexp_replace'") if len(sizes) > 2 else 0.0
    if len(arguments) > 2 and _is_text(arguments[2]):
        text = _literal(arguments[2])
        by = len(text.encode()) + text.count("\\")
    return sizes[0] * (1.0 + by) + Size(by + _SMALL)


def _size_of_extract(sizes: Sequence[Size], arguments: Sequence[Node]) -> Size:
    """``regexp_extract(text, pattern, names)``: each name's group may hold all of the text."""
    groups = len(arguments[2].get("arguments", ())) if len(arguments) > 2 else 0
    return sizes[0] * (1.0 + groups) + _sum(sizes[2:]) + _SMALL_SIZE


def _size_of_join(sizes: Sequence[Size], arguments: Sequence[Node]) -> Size:
    """``array_to_string(list, between)``."""
    return _size_with_separator(sizes[:1], sizes[1:2], arguments[1:2], "array_to_string")


def _size_of_concat_ws(sizes: Sequence[Size], arguments: Sequence[Node]) -> Size:
    """``concat_ws(between, …)``: a list among the others is joined too."""
    joined = _size_with_separator(sizes[1:], sizes[:1], arguments[:1], "concat_ws")
    return joined + _sum(sizes[:1]) * len(sizes)


def _size_with_separator(
    sizes: Sequence[Size], between: Sequence[Size], arguments: Sequence[Node], function: str
) -> Size:
    """Texts and lists with a text between all that is in them; each element of a list takes it two bytes at least."""
    length = sum(_constant(size, f"the separator of {function!r}") for size in between)
    if arguments and _is_text(arguments[0]):
        length = len(_literal(arguments[0]).encode())
    return _sum(sizes) * (1.0 + length / 2) + _SMALL_SIZE


def _size_of_strftime(sizes: Sequence[Size], arguments: Sequence[Node]) -> Size:
    """``strftime``: every two characters of the pattern may become a whole time."""
    return _sum(sizes) * 16.0


def _size_of_path_extract(sizes: Sequence[Size], arguments: Sequence[Node]) -> Size:
    """A list of paths gives a value for each."""
    paths = len(arguments[1].get("arguments", ())) if len(arguments) > 1 else 0
    return _sum(sizes[:1]) * (2.0 * max(1, paths)) + _SMALL_SIZE


def _size_of_first(sizes: Sequence[Size], arguments: Sequence[Node]) -> Size:
    return _sum(sizes[:1])


def _size_of_either(sizes: Sequence[Size], arguments: Sequence[Node]) -> Size:
    largest = _ZERO_SIZE
    for size in sizes:
        largest |= size
    return largest


def _literal(node: Node) -> str:
    return str(node["literal"].get("text", "")) if _is_text(node) else ""


def _is_text(node: Node) -> bool:
    return bool(node["class"] == "CONSTANT" and node["literal"].get("kind") == "STRING")


_RULES: Mapping[str, Callable[[Sequence[Size], Sequence[Node]], Size]] = {
    "replace": _size_of_replace,
    "regexp_replace": _size_of_pattern_replace,
    "regexp_extract": _size_of_extract,
    "array_to_string": _size_of_join,
    "concat_ws": _size_of_concat_ws,
    "strftime": _size_of_strftime,
    **dict.fromkeys(("json_extract", "json_extract_path", "json_extract_string", "->", "->>"), _size_of_path_extract),
    **dict.fromkeys(("json_extract_path_text", "json_value"), _size_of_path_extract),
    **dict.fromkeys(("if", "ifnull", "greatest", "least"), _size_of_either),
    **dict.fromkeys(("left", "right", "left_grapheme", "right_grapheme", "substr", "substring"), _size_of_first),
    **dict.fromkeys(
        ("substring_grapheme", "split_part", "trim", "ltrim", "rtrim", "reverse", "nullif"), _size_of_first
    ),
}
