"""The JsonPath that ``flattenSpec`` takes: names, indexes, wildcards, descent, and a function over numbers at the end.

Filters (``[?(…)]``), slices (``[0:2]``) and unions (``['a','b']``) are refused: they would need a second evaluator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ingestion.specs.limits import MOST_DESCENTS, MOST_STEPS

FUNCTIONS = ("min", "max", "avg", "stddev", "sum", "length")
_FUNCTION = re.compile(r"\.(\w+)\((.*)\)$", re.DOTALL)
_STEP = re.compile(
    r"""\.\.(?P<descent>[^.\[\]*'"()?\\]+) | (?P<star>\.\*|\[\s*\*\s*\]) | \.(?P<name>[^.\[\]*'"()?\\]+)
    | \[\s*'(?P<single>[^'"\\]*)'\s*\] | \[\s*"(?P<double>[^'"\\]*)"\s*\] | \[\s*(?P<index>-?\d{1,9})\s*\]""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Step:
    """One step down. ``index`` holds its number in ``name``; ``descent`` finds the name at any depth."""

    kind: Literal["name", "index", "wildcard", "descent"]
    name: str = ""


@dataclass(frozen=True)
class JsonPath:
    """A path into a JSON text, and what is done with what it finds."""

    steps: tuple[Step, ...]
    function: str = ""  # one of ``FUNCTIONS``, or empty

    @property
    def searches(self) -> int:
        """How many steps look at more than one value."""
        return sum(s.kind in ("wildcard", "descent") for s in self.steps)

    @property
    def is_definite(self) -> bool:
        """Whether it leads to one value; otherwise to a list of all that are found."""
        return not self.searches


def parse_json_path(text: str) -> JsonPath:
    """Read a JsonPath. Raises ``ValueError`` with what is wrong and where."""
    if not text.startswith("$"):
        raise ValueError(f"a JsonPath starts with '$': {text}")
    rest, function = _function(text[1:])
    steps = []
    while rest:
        match = _STEP.match(rest)
        if match is None:
            raise ValueError(
                f"can't read the JsonPath {text} from {rest!r} on: names, indexes, '*' and '..name' are supported, "
                "filters, slices and unions are not"
            )
        steps.append(_step(match))
        rest = rest[match.end() :]
    _check_cost(steps)
    return JsonPath(tuple(steps), function)


def _check_cost(steps: list[Step]) -> None:
    if len(steps) > MOST_STEPS:
        raise ValueError(f"the JsonPath has {len(steps)} steps; {MOST_STEPS} at most")
    descents = sum(s.kind == "descent" for s in steps)
    if descents > MOST_DESCENTS:
        raise ValueError(
            f"the JsonPath has {descents} descents ('..name'); {MOST_DESCENTS} at most, since each further one takes "
            "as many times as long as a record is deep: name the steps between them"
        )


def _function(text: str) -> tuple[str, str]:
    match = _FUNCTION.search(text)
    if match is None:
        return text, ""
    if match[1] not in FUNCTIONS or match[2].strip():
        raise ValueError(f"{match[1]}({match[2]}) is not supported in a JsonPath: use one of {', '.join(FUNCTIONS)}")
    return text[: match.start()], match[1]


def _step(match: re.Match[str]) -> Step:
    if match["star"] is not None:
        return Step("wildcard")
    if match["index"] is not None:
        return Step("index", match["index"])
    if match["descent"] is not None:
        return Step("descent", match["descent"])
    return Step("name", next(t for t in (match["name"], match["single"], match["double"]) if t is not None))
