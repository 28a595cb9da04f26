"""What is wrong with a spec, all of it at once, each by its path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError


@dataclass(frozen=True)
class SpecIssue:
    """One fault of a spec."""

    path: str  # dotted, as in the JSON (``spec.ioConfig.topic``)
    pointer: str  # RFC 6901
    message: str


_TAG_ERRORS = ("union_tag_invalid", "union_tag_not_found", "source_type")


class SpecError(Exception):
    """The spec can't be used; ``issues`` names every fault. The caller mends the spec and sends it again."""

    def __init__(self, issues: list[SpecIssue]) -> None:
        self.issues = issues
        super().__init__("; ".join(f"{i.path or 'spec'}: {i.message}" for i in issues))


def issues_of(error: ValidationError, document: Any) -> list[SpecIssue]:
    """Turn pydantic's errors into issues. ``document`` is what was validated: it tells JSON keys from union tags."""
    return [_issue(dict(e), document) for e in error.errors(include_url=False)]


def issue_at(parts: list[str | int], message: str) -> SpecIssue:
    """An issue at the place that ``parts`` (keys and list indexes) lead to."""
    path = "".join(map(_step, parts)).lstrip(".")
    pointer = "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in parts)
    return SpecIssue(path, pointer, message)


def _step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f"[{part!r}]" if "." in part else f".{part}"


def _issue(error: dict[str, Any], document: Any) -> SpecIssue:
    parts = _json_parts(error["loc"], document, error["type"] == "missing")
    return issue_at([*parts, "type"] if error["type"] in _TAG_ERRORS else parts, _message(error))


def _json_parts(location: tuple[str | int, ...], document: Any, missing: bool) -> list[str | int]:
    """Drop what is a union's tag and not a key of the document. ``missing``: the last part is a key that is missing."""
    parts: list[str | int] = []
    here = document
    for index, part in enumerate(location):
        last = index == len(location) - 1
        if isinstance(here, dict):
            if part not in here and not (last and missing):
                continue
            here = here.get(part)
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            here = here[part]
        elif not last:
            continue
        parts.append(part)
    return parts


def _message(error: dict[str, Any]) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        return "unknown field: check its spelling, or remove it"
    if kind in ("missing", "union_tag_not_found"):
        return "required field is missing"
    if kind == "union_tag_invalid":
        return f"must be one of {error['ctx']['expected_tags']}, not {error['ctx']['tag']!r}"
    return str(error["msg"]).removeprefix("Value error, ")
