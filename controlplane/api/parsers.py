"""Request bodies: JSON that can be stored, of bounded size and depth."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from controlplane.common.text import storable

MOST_BYTES = 1024 * 1024
MOST_DEPTH = 64
_BIGGEST_NUMBER = 2**63 - 1


class TooLarge(APIException):
    """The body is larger than any spec."""

    status_code = 413
    default_detail = f"The body is larger than {MOST_BYTES} bytes."
    default_code = "too_large"


class StrictJSONParser(BaseParser):
    """UTF-8 JSON as RFC 8259 has it: no NaN, no double keys; and no NUL characters, which the store refuses."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        body = stream.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise TooLarge
        try:
            document = json.loads(body.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_object)
        except UnicodeDecodeError:
            raise ParseError("The body is not UTF-8.") from None
        except (ValueError, RecursionError) as error:
            raise ParseError(f"The body is not JSON: {error}"[:500]) from None
        _check(document, 0)
        return document


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} stands twice in one object")
    return found


def _check(value: Any, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise ParseError(f"The body is nested deeper than {MOST_DEPTH} levels.")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check(name, depth)
            _check(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, depth + 1)
    elif isinstance(value, str):
        if not storable(value):
            raise ParseError("The body holds a NUL character or half a surrogate pair.")
    elif _beyond(value):
        raise ParseError("The body holds a number that is out of range.")


def _beyond(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)  # 1e999 parses as infinity
    return isinstance(value, int) and abs(value) > _BIGGEST_NUMBER
