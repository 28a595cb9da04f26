"""JSON from outside, strictly: what would be read differently by others, or could not be stored, is refused."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from controlplane.common.text import storable
from ingestion.specs.limits import duplicates

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
_MAX_NUMBER = 2**63 - 1


def strict_json(text: str) -> Any:
    """Reads JSON by RFC 8259: no NaN, no double keys; and no NUL characters, which the store refuses.

    Raises ``ValueError`` with what is wrong; where it is no JSON at all, ``json.JSONDecodeError``.
    """
    try:
        document = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_checked_object)
    except RecursionError:
        raise _too_deep() from None
    _check(document, 0)
    return document


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _checked_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError(f"the name {duplicates(name for name, _ in pairs)[0][:200]!r} occurs twice in one object")
    return document


def _too_deep() -> ValueError:
    return ValueError(f"it is nested deeper than {MAX_DEPTH} levels")


def _check(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep()
    if isinstance(value, dict):
        for name, inner in value.items():
            _check(name, depth)
            _check(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, depth + 1)
    elif isinstance(value, str):
        if not storable(value):
            raise ValueError("it contains a NUL character or half a surrogate pair")
    elif _is_out_of_range(value):
        raise ValueError("it contains a number that is out of range")


def _is_out_of_range(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)  # 1e999 parses as infinity
    return isinstance(value, int) and abs(value) > _MAX_NUMBER
