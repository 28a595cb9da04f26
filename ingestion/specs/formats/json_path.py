"""The JsonPath that ``flattenSpec`` takes: names, indexes, wildcards, descent, slices, several names or indexes,
filters that compare with a value, and a function at the end. What else Druid's library reads is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, cast

from ingestion.specs.limits import MAX_DESCENTS, MAX_STEPS

FUNCTIONS = ("min", "max", "avg", "stddev", "sum", "length", "keys")
_FUNCTION = re.compile(r"\.(\w+)\((.*)\)$", re.DOTALL)
_QUOTED = r"""(?:'[^'"\\]*'|"[^'"\\]*")"""
_STEP = re.compile(
    rf"""\.\.(?P<descent>[^.\[\]*'"()?\\]+) | (?P<star>\.\*|\[\s*\*\s*\]) | \.(?P<name>[^.\[\]*'"()?\\]+)
    | \[\s*'(?P<single>[^'"\\]*)'\s*\] | \[\s*"(?P<double>[^'"\\]*)"\s*\] | \[\s*(?P<index>-?\d{{1,9}})\s*\]
    | \[(?P<slice>-\d{{1,9}}:|:-?\d{{1,9}}|\d{{1,9}}:\d{{0,9}})\]
    | \[\s*(?P<indexes>-?\d{{1,9}}(?:\s*,\s*-?\d{{1,9}})+)\s*\]
    | \[\s*(?P<names>{_QUOTED}(?:\s*,\s*{_QUOTED})+)\s*\]
    | \[\?\((?P<filter>(?:{_QUOTED}|[^'"\\()])+)\)\]""",
    re.VERBOSE,
)
_COMPARED = re.compile(
    rf"""\s*@(?P<path>(?:\.[^.\[\]*'"()?\\\s<>=!&|]+|\[{_QUOTED}\]|\[-?\d{{1,9}}\])*)\s*(?P<sign>==|!=|<=|>=|<|>)\s*
    (?P<value>-?\d{{1,30}}(?:\.\d{{1,30}})?|true|false|{_QUOTED})\s*(?P<word>&&|\|\||\Z)""",
    re.VERBOSE,
)
_SEARCHING = ("wildcard", "descent", "slice", "indexes", "each", "filter")
Sign = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Comparison:
    """Of what a path without searching finds below a value, with a number, a text, true or false."""

    steps: tuple[Step, ...]
    sign: Sign
    value: Decimal | str | bool


@dataclass(frozen=True)
class Step:
    """One step down. ``index`` holds its number in ``name``; ``descent`` finds the name at any depth.

    ``names`` makes an object of them, ``each`` looks at one after the other, which is what they mean inside of a path.
    ``slice`` holds its ends, None where there is none; ``filter`` comparisons, of which all of one list have to hold.
    """

    kind: Literal["name", "index", "wildcard", "descent", "slice", "indexes", "names", "each", "filter"]
    name: str = ""
    names: tuple[str, ...] = ()
    numbers: tuple[int | None, ...] = ()
    any_of: tuple[tuple[Comparison, ...], ...] = ()


@dataclass(frozen=True)
class JsonPath:
    """A path into a JSON text, and what is done with what it finds."""

    steps: tuple[Step, ...]
    function: str = ""  # one of ``FUNCTIONS``, or empty

    @property
    def searches(self) -> int:
        """How many steps look at more than one value."""
        return sum(s.kind in _SEARCHING for s in self.steps)

    @property
    def is_definite(self) -> bool:
        """Whether it leads to one value; otherwise to a list of all that are found."""
        return not self.searches

    @property
    def is_plain(self) -> bool:
        """Whether it has names and indexes alone."""
        return all(s.kind in ("name", "index") for s in self.steps)

    @property
    def descends_last(self) -> bool:
        """Whether it has names and indexes, and a descent as its last step."""
        return [s.kind for s in self.steps[-1:]] == ["descent"] and JsonPath(self.steps[:-1]).is_plain


def parse_json_path(text: str) -> JsonPath:
    """Read a JsonPath, with or without the ``$`` before it. Raises ``ValueError`` with what is wrong and where."""
    if not text or text[0] in ".@":
        raise ValueError(f"a JsonPath starts with '$', or with a name: {text}")
    full_path = text if text[0] == "$" else f"${text}" if text[0] == "[" else f"$.{text}"
    rest, function = _function(full_path[1:])
    steps = list(_steps(text, rest))
    inner = [replace(step, kind="each") if step.kind == "names" else step for step in steps[:-1]]
    path = JsonPath((*inner, *steps[-1:]), function)
    _check_cost(path.steps)
    if function and not path.is_plain and (function in ("length", "keys") or not path.descends_last):
        raise ValueError(
            f"{function}() cannot follow {text}: length() and keys() may follow only names and indexes, the others "
            "also a final '..name'"
        )
    return path


def _steps(text: str, rest: str) -> Iterator[Step]:
    while rest:
        match = _STEP.match(rest)
        if match is None:
            raise ValueError(
                f"the JsonPath {text} has an error at {rest!r}: supported are names, indexes, '*', '..name', slices "
                "such as [0:2] or [-2:], lists of names or indexes, and filters such as [?(@.a>1 && @.b=='x')]"
            )
        yield _step(match)
        rest = rest[match.end() :]


def _check_cost(steps: Sequence[Step]) -> None:
    if len(steps) > MAX_STEPS:
        raise ValueError(f"the JsonPath has {len(steps)} steps; at most {MAX_STEPS} are allowed")
    descents = sum(s.kind == "descent" for s in steps)
    if descents > MAX_DESCENTS:
        raise ValueError(
            f"the JsonPath has {descents} descents ('..name'); at most {MAX_DESCENTS} are allowed, because each "
            "multiplies the time by the depth of a record: name the steps between them"
        )


def _function(text: str) -> tuple[str, str]:
    match = _FUNCTION.search(text)
    if match is None:
        return text, ""
    if match[1] not in FUNCTIONS or match[2].strip():
        raise ValueError(f"{match[1]}({match[2]}) is not supported in a JsonPath: use one of {', '.join(FUNCTIONS)}")
    return text[: match.start()], match[1]


def _step(match: re.Match[str]) -> Step:
    matched = {kind: text for kind, text in match.groupdict().items() if text is not None}
    [(kind, text)] = matched.items()
    return _STEPS[kind](text)


def _quoted(text: str) -> tuple[str, ...]:
    return tuple(part[1:-1] for part in re.findall(_QUOTED, text))


def _slice(text: str) -> Step:
    first, last = text.split(":")
    return Step("slice", numbers=(int(first) if first else None, int(last) if last else None))


def _filter(text: str) -> Step:
    any_of: list[list[Comparison]] = [[]]
    place = 0
    while True:
        match = _COMPARED.match(text, place)
        if match is None:
            raise ValueError(
                f"the filter [?({text})] has an error at {text[place:]!r}: supported are comparisons of @.name with a "
                "number, a text, true or false, joined by && and ||"
            )
        steps = tuple(_steps(text, match["path"]))
        any_of[-1].append(Comparison(steps, cast("Sign", match["sign"]), _value(match["value"], match["sign"])))
        place = match.end()
        if not match["word"]:
            return Step("filter", any_of=tuple(tuple(all_of) for all_of in any_of))
        if match["word"] == "||":
            any_of.append([])


def _value(text: str, sign: str) -> Decimal | str | bool:
    if text in ("true", "false"):
        if sign not in ("==", "!="):
            raise ValueError(f"a filter of a JsonPath can compare {text} only by == and !=")
        return text == "true"
    return text[1:-1] if text[0] in "'\"" else Decimal(text)


_STEPS: dict[str, Callable[[str], Step]] = {
    "star": lambda _: Step("wildcard"),
    "index": lambda text: Step("index", text),
    "descent": lambda text: Step("descent", text),
    "name": lambda text: Step("name", text),
    "single": lambda text: Step("name", text),
    "double": lambda text: Step("name", text),
    "slice": _slice,
    "indexes": lambda text: Step("indexes", numbers=tuple(int(number) for number in text.split(","))),
    "names": lambda text: Step("names", names=_quoted(text)),
    "filter": _filter,
}
