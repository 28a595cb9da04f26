"""The errors of a spec: all at once, each with its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError


@dataclass(frozen=True)
class SpecIssue:
    """One error of a spec."""

    path: str  # dotted, as in the JSON (``spec.ioConfig.topic``)
    pointer: str  # RFC 6901
    message: str


LACKING = "lacking"  # an error's type: of a property that would have to be there, with a message of its own
_ABSENT = ("missing", LACKING)
_TAG_ERRORS = ("union_tag_invalid", "union_tag_not_found", "source_type")


class SpecError(Exception):
    """The spec has errors. ``issues`` has all of them."""

    def __init__(self, issues: list[SpecIssue]) -> None:
        self.issues = issues
        super().__init__("; ".join(f"{i.path or 'spec'}: {i.message}" for i in issues))


def issues_of(error: ValidationError, document: Any) -> list[SpecIssue]:
    """Turn pydantic's errors into issues. ``document`` is what was validated: it tells JSON keys from union tags."""
    return [_to_issue(dict(e), document) for e in error.errors(include_url=False)]


def issue_at(parts: list[str | int], message: str) -> SpecIssue:
    """An issue at the place that ``parts`` (keys and list indexes) lead to."""
    path = "".join(map(_step, parts)).lstrip(".")
    pointer = "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in parts)
    return SpecIssue(path, pointer, message)


def _step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f"[{part!r}]" if "." in part else f".{part}"


def _to_issue(error: dict[str, Any], document: Any) -> SpecIssue:
    parts = _json_parts(error["loc"], document, error["type"] in _ABSENT)
    return issue_at([*parts, "type"] if error["type"] in _TAG_ERRORS else parts, error_text(error))


def _json_parts(location: tuple[str | int, ...], document: Any, missing: bool) -> list[str | int]:
    """Drop what is a union's tag and not a key of the document. ``missing``: the last part is a key that is missing."""
    parts: list[str | int] = []
    current = document
    for index, part in enumerate(location):
        last = index == len(location) - 1
        if isinstance(current, dict):
            if part not in current and not (last and missing):
                continue
            current = current.get(part)
        elif isinstance(current, list) and isinstance(part, int) and part < len(current):
            current = current[part]
        elif not last:
            continue
        parts.append(part)
    return parts


def error_text(error: Mapping[str, Any]) -> str:
    """One of a ``ValidationError``'s errors in our own words: nothing that pydantic says reaches anybody."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _OWN_ERROR_TYPES:
        return str(error["msg"]).removeprefix("Value error, ")
    if kind == "union_tag_invalid":
        return f"must be one of {context['expected_tags']}, not {context['tag']!r}"
    if error.get("input", ...) is None and kind not in ("missing", "extra_forbidden", "union_tag_not_found"):
        return "must not be null"
    return _WORDS.get(kind, "is not valid").format_map(context)


# What validators of ours say themselves.
_OWN_ERROR_TYPES = ("value_error", "kafka_property", LACKING, "source_type")
_TIME = "must be a time in ISO 8601, such as 2030-01-31T12:00:00Z"
_PERIOD = "must be a period in ISO 8601, such as PT1H or P1D"
_OBJECT, _WHOLE = "must be an object", "must be a whole number"
_WORDS = {
    "extra_forbidden": "unknown field: check its spelling, or remove it",
    "missing": "required field is missing",
    "union_tag_not_found": "required field is missing",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "none_required": "must be null or omitted",
    "string_type": "must be a text",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "is too large a number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be less than {lt}",
    "list_type": "must be a list",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"), _TIME
    ),
    **dict.fromkeys(("time_delta_type", "time_delta_parsing"), _PERIOD),
}
