"""The types that ``castToType`` of a dimension may name, as Druid reads them."""

from __future__ import annotations

from typing import Literal, cast

CastType = Literal["LONG", "DOUBLE", "STRING", "ARRAY<LONG>", "ARRAY<DOUBLE>", "ARRAY<STRING>"]
PLAIN = {"LONG": "LONG", "DOUBLE": "DOUBLE", "FLOAT": "DOUBLE", "STRING": "STRING"}  # a float is a double
_ARRAY, _COMPLEX, _JSON = "ARRAY<", "COMPLEX<", "COMPLEX<json>"


def cast_type(name: str) -> CastType | None:
    """What values are cast to; None where Druid casts nothing: nested types, and what is no type.

    Raises ``ValueError`` for an array of no type, and for types that Druid's tasks fail with.
    """
    if name.upper() == "COMPLEX" or (name.startswith(_COMPLEX) and name != _JSON):
        raise ValueError(f"{name!r} is not a type of a dimension: the only complex type is {_JSON}")
    if not name.startswith(_ARRAY):
        return cast("CastType | None", PLAIN.get(name.upper()))
    inner = name[len(_ARRAY) :].removesuffix(">")
    if name.endswith(">") and inner.startswith((_ARRAY, _COMPLEX)):
        cast_type(inner)
        return None
    if not name.endswith(">") or inner.upper() not in PLAIN:
        raise ValueError(f"{name!r} is an array of an unknown type: use ARRAY<LONG>, ARRAY<DOUBLE> or ARRAY<STRING>")
    return cast("CastType", f"{_ARRAY}{PLAIN[inner.upper()]}>")
