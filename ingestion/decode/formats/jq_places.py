"""The functions of jq that find a place, take a part, or count, as jackson-jq 0.0.10 has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ingestion.decode.druid_values import Fails, units
from ingestion.decode.formats import jq_values as values
from ingestion.decode.formats.jq_functions import Evaluator, Function
from ingestion.decode.formats.jq_values import Budget, JqError, compared, is_number
from ingestion.specs.formats.jq import Node


def _recurse(budget: Budget, value: Any) -> Iterator[Any]:
    """The value and all that is in it but nulls, which ``..`` has."""
    budget.spend()
    yield value
    for one in values.inner(value) if isinstance(value, dict | list) else ():
        if one is not None:
            yield from _recurse(budget, one)


def _ranges(run: Evaluator, starts: list[Any], ends: list[Any]) -> list[Any]:
    found: list[Any] = []
    for start in starts:
        for end in ends:
            found += _range(run.budget, start, end)
    return found


def _range(budget: Budget, start: Any, end: Any) -> Iterator[Any]:
    if not is_number(start) or not is_number(end):
        raise JqError
    place = float(start)
    while place < float(end):
        budget.spend()
        yield values.of_double(place)
        place += 1


def _limit(run: Evaluator, value: Any, number: Node, node: Node) -> list[Any]:
    """All of them with a number below 0, as in jq 1.5."""
    found: list[Any] = []
    for most in run.of(number, value):
        told = run.of(node, value)
        found += told if _number(most) < 0 else told[: int(most)]
    return found


def _nth_of(run: Evaluator, value: Any, number: Node, node: Node) -> list[Any]:
    """The last if there are fewer."""
    found: list[Any] = []
    for place in run.of(number, value):
        told = run.of(node, value)
        if _number(place) < 0:
            raise JqError
        found.append((told[: int(place) + 1] or [None])[-1])
    return found


def _number(value: Any) -> float:
    """What is no number fails: Druid's library goes by the order of values there."""
    if not is_number(value):
        raise Fails
    return float(value)


def _places(budget: Budget, value: Any, wanted: Any) -> list[int]:
    if isinstance(value, str) and isinstance(wanted, str):
        return list(_places_in_text(budget, units(value), units(wanted)))
    if not isinstance(value, list):
        raise JqError
    if not isinstance(wanted, list):
        return [place for place, one in enumerate(value) if compared(budget, one, wanted) == 0]
    starts = range(len(value) - len(wanted) + 1) if wanted else ()
    return [s for s in starts if all(compared(budget, value[s + n], one) == 0 for n, one in enumerate(wanted))]


def _places_in_text(budget: Budget, text: bytes, wanted: bytes) -> Iterator[int]:
    """In Java's halves of characters, also where one lies over another. For no text Druid's library never ends."""
    if not wanted:
        raise Fails
    place = -1
    while (place := text.find(wanted, place + 1)) >= 0:
        budget.spend(1 + len(wanted) // values.CHARACTERS)
        if place % 2 == 0:
            yield place // 2


def _place(end: int) -> Function:
    """The first place or the last; null for none."""

    def found(run: Evaluator, value: Any, node: Node) -> list[Any]:
        told = [_places(run.budget, value, wanted) for wanted in run.of(node, value)]
        return [places[end] if places else None for places in told]

    return found


def _explode(value: Any) -> list[int]:
    if not isinstance(value, str):
        raise JqError
    data = units(value)
    return [data[place] * 256 + data[place + 1] for place in range(0, len(data), 2)]


def _utf8_length(value: Any) -> int:
    if not isinstance(value, str):
        raise JqError
    return len(value.encode())


def _transpose(budget: Budget, value: Any) -> list[list[Any]]:
    if not isinstance(value, list) or not all(one is None or isinstance(one, list) for one in value):
        raise Fails
    rows = [one or [] for one in value]
    longest = max(map(len, rows), default=0)
    budget.spend(longest * len(rows))
    return [[row[place] if place < len(row) else None for row in rows] for place in range(longest)]


def _made(made: Callable[[Evaluator, Any], Any]) -> Function:
    return lambda run, value: [run.budget.made(made(run, value))]


PLACES: dict[tuple[str, int], Function] = {
    ("recurse", 0): lambda run, value: list(_recurse(run.budget, value)),
    ("range", 1): lambda run, value, end: _ranges(run, [0], run.of(end, value)),
    ("range", 2): lambda run, value, start, end: _ranges(run, run.of(start, value), run.of(end, value)),
    ("limit", 2): _limit,
    ("nth", 2): _nth_of,
    ("index", 1): _place(0),
    ("rindex", 1): _place(-1),
    ("indices", 1): lambda run, value, node: [
        run.budget.made(_places(run.budget, value, wanted)) for wanted in run.of(node, value)
    ],
    ("explode", 0): _made(lambda run, value: _explode(value)),
    ("utf8bytelength", 0): _made(lambda run, value: _utf8_length(value)),
    ("transpose", 0): _made(lambda run, value: _transpose(run.budget, value)),
}
