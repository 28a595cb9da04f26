"""The functions of jq that find a place, take a part, or count, as jackson-jq 0.0.10 has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ingestion.decode.druid_values import EvaluationFailed, to_units
from ingestion.decode.formats import jq_values as values
from ingestion.decode.formats.jq_functions import Evaluator, Function
from ingestion.decode.formats.jq_values import Budget, JqError, compare, is_number
from ingestion.specs.formats.jq import Node


def _recurse(budget: Budget, value: Any) -> Iterator[Any]:
    """The value and all that is in it but nulls, which ``..`` has."""
    budget.spend()
    yield value
    for item in values.children(value) if isinstance(value, dict | list) else ():
        if item is not None:
            yield from _recurse(budget, item)


def _ranges(run: Evaluator, starts: list[Any], ends: list[Any]) -> list[Any]:
    numbers: list[Any] = []
    for start in starts:
        for end in ends:
            numbers += _range(run.budget, start, end)
    return numbers


def _range(budget: Budget, start: Any, end: Any) -> Iterator[Any]:
    if not is_number(start) or not is_number(end):
        raise JqError
    place = float(start)
    while place < float(end):
        budget.spend()
        yield values.whole_or_double(place)
        place += 1


def _limit(run: Evaluator, value: Any, number: Node, node: Node) -> list[Any]:
    """All of them with a number below 0, as in jq 1.5."""
    limited: list[Any] = []
    for most in run.evaluate(number, value):
        results = run.evaluate(node, value)
        limited += results if _number(most) < 0 else results[: int(most)]
    return limited


def _nth_of(run: Evaluator, value: Any, number: Node, node: Node) -> list[Any]:
    """The last if there are fewer."""
    selected: list[Any] = []
    for place in run.evaluate(number, value):
        results = run.evaluate(node, value)
        if _number(place) < 0:
            raise JqError
        selected.append((results[: int(place) + 1] or [None])[-1])
    return selected


def _number(value: Any) -> float:
    """Fails for values that are not numbers: Druid's library would use the order of values."""
    if not is_number(value):
        raise EvaluationFailed
    return float(value)


def _find_indexes(budget: Budget, value: Any, searched: Any) -> list[int]:
    if isinstance(value, str) and isinstance(searched, str):
        return list(_find_in_text(budget, to_units(value), to_units(searched)))
    if not isinstance(value, list):
        raise JqError
    if not isinstance(searched, list):
        return [place for place, item in enumerate(value) if compare(budget, item, searched) == 0]
    starts = range(len(value) - len(searched) + 1) if searched else ()
    return [s for s in starts if all(compare(budget, value[s + n], item) == 0 for n, item in enumerate(searched))]


def _find_in_text(budget: Budget, text: bytes, searched: bytes) -> Iterator[int]:
    """In Java's halves of characters, also where one lies over another. For no text Druid's library never ends."""
    if not searched:
        raise EvaluationFailed
    place = -1
    while (place := text.find(searched, place + 1)) >= 0:
        budget.spend(1 + len(searched) // values.CHARACTERS)
        if place % 2 == 0:
            yield place // 2


def _index_function(end: int) -> Function:
    """The first place or the last; null for none."""

    def find_index(run: Evaluator, value: Any, node: Node) -> list[Any]:
        indexes = [_find_indexes(run.budget, value, searched) for searched in run.evaluate(node, value)]
        return [places[end] if places else None for places in indexes]

    return find_index


def _explode(value: Any) -> list[int]:
    if not isinstance(value, str):
        raise JqError
    data = to_units(value)
    return [data[place] * 256 + data[place + 1] for place in range(0, len(data), 2)]


def _utf8_length(value: Any) -> int:
    if not isinstance(value, str):
        raise JqError
    return len(value.encode())


def _transpose(budget: Budget, value: Any) -> list[list[Any]]:
    if not isinstance(value, list) or not all(row is None or isinstance(row, list) for row in value):
        raise EvaluationFailed
    rows = [row or [] for row in value]
    longest = max(map(len, rows), default=0)
    budget.spend(longest * len(rows))
    return [[row[place] if place < len(row) else None for row in rows] for place in range(longest)]


def _run_function(function: Callable[[Evaluator, Any], Any]) -> Function:
    return lambda run, value: [run.budget.charge(function(run, value))]


INDEX_FUNCTIONS: dict[tuple[str, int], Function] = {
    ("recurse", 0): lambda run, value: list(_recurse(run.budget, value)),
    ("range", 1): lambda run, value, end: _ranges(run, [0], run.evaluate(end, value)),
    ("range", 2): lambda run, value, start, end: _ranges(run, run.evaluate(start, value), run.evaluate(end, value)),
    ("limit", 2): _limit,
    ("nth", 2): _nth_of,
    ("index", 1): _index_function(0),
    ("rindex", 1): _index_function(-1),
    ("indices", 1): lambda run, value, node: [
        run.budget.charge(_find_indexes(run.budget, value, searched)) for searched in run.evaluate(node, value)
    ],
    ("explode", 0): _run_function(lambda run, value: _explode(value)),
    ("utf8bytelength", 0): _run_function(lambda run, value: _utf8_length(value)),
    ("transpose", 0): _run_function(lambda run, value: _transpose(run.budget, value)),
}
