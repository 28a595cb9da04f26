"""Where the fields of an expression of Druid's stand for lists, and where for plain values."""

from __future__ import annotations

from collections.abc import Iterator

from ingestion.decode.druid_parser import Call, Field, Lambda, Node

# Which arguments of these functions are lists; of others with a function as their first argument all further ones are.
_LISTS = {
    **dict.fromkeys(("array_concat", "array_overlap", "array_set_add_all"), (0, 1)),
    **dict.fromkeys(("array_append", "array_length", "array_offset", "array_offset_of", "array_ordinal"), (0,)),
    **dict.fromkeys(("array_ordinal_of", "array_set_add", "array_slice", "array_to_string", "array_contains"), (0,)),
    **dict.fromkeys(("array_prepend", "scalar_in_array"), (1,)),
    **dict.fromkeys(("mv_to_array", "array_to_mv", "mv_harmonize_nulls"), (0,)),
}


def field_uses(node: Node, listed: bool = False) -> Iterator[tuple[str, bool]]:
    """Each use of a field, and whether it means a list there."""
    if isinstance(node, Field):
        yield node.name, listed
    elif isinstance(node, Lambda):
        yield from ((name, listed) for name, listed in field_uses(node.body) if name not in node.names)
    elif isinstance(node, Call):
        applied = bool(node.arguments) and isinstance(node.arguments[0], Lambda)
        for number, argument in enumerate(node.arguments):
            yield from field_uses(argument, applied or number in _LISTS.get(node.name, ()))


def plain_fields(tree: Node) -> frozenset[str]:
    """The fields that stand for plain values alone."""
    all_uses = [*field_uses(tree)]
    return frozenset(n for n, _ in all_uses) - {n for n, listed in all_uses if listed}
