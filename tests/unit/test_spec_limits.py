"""What a spec may hold at most: each list, each text, each path, and what looking at it costs."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from controlplane.common.fair_queue import FairPlaces, NoPlace
from controlplane.common.spec_text import spec_diff
from controlplane.common.strict_json import strict_json
from ingestion.specs.errors import SpecError
from ingestion.specs.formats.json_path import parse_json_path
from ingestion.specs.kafka.pem import pem_of
from ingestion.specs.limits import (
    DEEPEST_FILTER,
    LONGEST_NAME,
    LONGEST_PROPERTY,
    LONGEST_VALUE,
    MAX_COLUMNS,
    MAX_EXPRESSIONS,
    MAX_FIELDS,
    MAX_FILTERS,
    MAX_FLATTENED,
    MAX_HEADERS,
    MAX_SCHEMAS,
    MAX_SEARCHES,
    MAX_STEPS,
    MAX_VALUES,
    duplicates,
)
from ingestion.specs.schema.joda import strptime_patterns
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.support.django_cast import SEED

Spec = dict[str, Any]
TRUE = {"type": "true"}


def names(count: int) -> list[str]:
    return [f"f{number}" for number in range(count)]


def refusals(change: Callable[[Spec, Spec], None]) -> list[str]:
    """What is wrong with the seed's spec once its dataSchema and ioConfig are changed."""
    spec = copy.deepcopy(SEED)
    change(spec["dataSchema"], spec["ioConfig"])
    try:
        parse_supervisor_spec(spec)
    except SpecError as error:
        return [i.message for i in error.issues]
    return []


def schema(**parts: Any) -> Callable[[Spec, Spec], None]:
    return lambda data_schema, _: data_schema.update(parts)


def dimensions(**parts: Any) -> Callable[[Spec, Spec], None]:
    return schema(dimensionsSpec=parts)


def kept(condition: Any) -> Callable[[Spec, Spec], None]:
    return schema(transformSpec={"filter": condition})


def reading(**parts: Any) -> Callable[[Spec, Spec], None]:
    return lambda _, io_config: io_config.update(inputFormat=parts)


def flattened(*fields: Any) -> Callable[[Spec, Spec], None]:
    return reading(type="json", flattenSpec={"fields": list(fields)})


def nested(levels: int) -> Any:
    return TRUE if levels == 1 else {"type": "not", "field": nested(levels - 1)}


def any_of(count: int, of: Any = TRUE) -> Any:
    return {"type": "or", "fields": [of] * count}


def one_of(count: int) -> Any:
    return {"type": "in", "dimension": "a", "values": names(count)}


def transforms(count: int) -> list[Any]:
    return [{"type": "expression", "name": name, "expression": "a"} for name in names(count)]


def paths(count: int) -> list[Any]:
    return [{"type": "path", "name": name, "expr": "$..x"} for name in names(count)]


def registry(headers: int) -> Callable[[Spec, Spec], None]:
    found = {f"X-{name}": "x" for name in names(headers)}
    decoder = {"type": "schema_registry", "url": "http://registry:8081", "headers": found}
    return reading(type="avro_stream", avroBytesDecoder=decoder)


def schemas(count: int) -> Callable[[Spec, Spec], None]:
    found = {str(number): {"type": "record", "name": "r", "fields": []} for number in range(count)}
    return reading(type="avro_stream", avroBytesDecoder={"type": "multiple_schemas_inline", "schemas": found})


# What is at the limit, and what is one beyond it.
LIMITS: dict[str, tuple[Callable[[int], Callable[[Spec, Spec], None]], int]] = {
    "dimensions": (lambda n: dimensions(dimensions=names(n)), MAX_COLUMNS),
    "metrics": (
        lambda n: schema(metricsSpec=[{"type": "longSum", "name": m, "fieldName": "x"} for m in names(n)]),
        MAX_COLUMNS,
    ),
    "dimensions and metrics": (
        lambda n: schema(dimensionsSpec={"dimensions": names(n - 1)}, metricsSpec=[{"type": "count", "name": "count"}]),
        MAX_COLUMNS,
    ),
    "exclusions": (lambda n: dimensions(dimensionExclusions=names(n)), MAX_FIELDS),
    "a name": (lambda n: dimensions(dimensions=["x" * n]), LONGEST_NAME),
    "a field": (lambda n: schema(timestampSpec={"column": "x" * n}), LONGEST_NAME),
    "transforms": (lambda n: schema(transformSpec={"transforms": transforms(n)}), MAX_EXPRESSIONS),
    "filters": (lambda n: kept(any_of(n - 1)), MAX_FILTERS),
    "filters in two": (lambda n: kept(any_of(3, any_of((n - 4) // 3))), MAX_FILTERS),
    "filters' depth": (lambda n: kept(nested(n)), DEEPEST_FILTER),
    "filters' values": (lambda n: kept(one_of(n)), MAX_VALUES),
    "filters' values in two": (lambda n: kept({"type": "and", "fields": [one_of(n - 1), one_of(1)]}), MAX_VALUES),
    "a filter's value": (
        lambda n: kept({"type": "selector", "dimension": "a", "value": "x" * n}),
        LONGEST_VALUE,
    ),
    "filters' expressions": (
        lambda n: kept(any_of(n, {"type": "expression", "expression": "true"})),
        MAX_EXPRESSIONS,
    ),
    "flattened": (lambda n: flattened(*names(n)), MAX_FLATTENED),
    "searches": (lambda n: flattened(*paths(n)), MAX_SEARCHES),
    "a way by names": (lambda n: flattened({"type": "tree", "name": "a", "nodes": names(n)}), MAX_STEPS),
    "columns": (lambda n: reading(type="csv", columns=names(n)), MAX_FIELDS),
    "schemas": (schemas, MAX_SCHEMAS),
    "headers": (registry, MAX_HEADERS),
    "a property": (
        lambda n: lambda _, io: io["consumerProperties"].update({"client.id": "x" * n}),
        LONGEST_PROPERTY,
    ),
    "a time pattern": (lambda n: schema(timestampSpec={"column": "t", "format": "y" + "-" * (n - 1)}), 200),
}


@pytest.mark.parametrize("what", LIMITS)
def test_a_list_and_a_text_have_an_end(what: str) -> None:
    """Row 20 of the security checklist: at the limit it is taken, beyond it refused with how many there may be."""
    made, most = LIMITS[what]
    assert refusals(made(most)) == []
    [message] = refusals(made(most + (3 if what == "filters in two" else 1)))
    assert str(most) in message


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_names_that_stand_twice_are_found_by_looking_once() -> None:
    """Row 20 of the security checklist: what it costs grows with how many there are, not with its square."""
    Counted.compared = 0
    assert duplicates(map(Counted, ["b", *names(16_000), *names(2), "b"])) == ["b", "f0", "f1"]
    assert Counted.compared < 1_000


def test_a_message_names_some_of_many() -> None:
    [message] = refusals(dimensions(dimensions=names(900) * 2))
    assert len(message) < 500
    assert "880 more" in message


@pytest.mark.parametrize("path", ["$..a..a", "$" + "..a" * 12, "$.x..a[*]..b.length()", "$" + ".a" * (MAX_STEPS + 1)])
def test_a_path_that_multiplies_its_cost_is_refused(path: str) -> None:
    """Row 20 of the security checklist: a path looks at each value of a record about once."""
    with pytest.raises(ValueError, match="at most"):
        parse_json_path(path)


def test_a_time_pattern_has_few_meanings() -> None:
    """Row 20 of the security checklist: each name of a month doubles what DuckDB tries; beyond, it tries none."""
    assert len(strptime_patterns("MMM dd MMM MMM MMM")) == 16
    assert strptime_patterns("MMM " * 40) == []


def test_pem_that_only_begins_is_read_once() -> None:
    """Row 20 of the security checklist: with its square it would take hours."""
    with pytest.raises(ValueError, match="must be PEM text"):
        pem_of("-----BEGIN CERTIFICATE-----\n" * 9_000, ("CERTIFICATE",))


def test_names_that_stand_twice_in_an_object_are_found_by_looking_once() -> None:
    """Row 20 of the security checklist: in a request's JSON too."""
    text = "{" + ",".join(f'"{name}":1' for name in [*names(70_000), "z", "z"]) + "}"
    with pytest.raises(ValueError, match="'z' occurs twice"):
        strict_json(text)


def test_versions_that_have_little_in_common_are_not_compared_line_by_line() -> None:
    """Row 20 of the security checklist: reading a history costs no more than its length."""
    lines = [f"x{number % 120}" for number in range(30_000)]
    found = spec_diff({"context": lines}, {"context": lines[::-1]})
    assert {line.kind for line in found} == {"removed", "added"}
    assert len(found) == 2 * (len(lines) + 4)


# Line breaks

NAMED: dict[str, Callable[[str], Callable[[Spec, Spec], None]]] = {
    "datasource": lambda name: schema(dataSource=name),
    "dimension": lambda name: dimensions(dimensions=[name]),
    "metric": lambda name: schema(metricsSpec=[{"type": "count", "name": name}]),
    "transform": lambda name: schema(
        transformSpec={"transforms": [{"type": "expression", "name": name, "expression": "a"}]}
    ),
    "flattened field": lambda name: flattened({"type": "root", "name": name}),
    "column": lambda name: reading(type="csv", columns=[name]),
    "topic": lambda name: lambda _, io: io.update(topic=name),
    "groupId": lambda name: lambda _, io: io.update(groupId=name),
    "keyColumnName": lambda name: reading(type="kafka", valueFormat={"type": "json"}, keyColumnName=name),
}


@pytest.mark.parametrize("what", NAMED)
@pytest.mark.parametrize("name", ["a\n", "a\nb", "a\rb", "a\u2028b", "a\x85", "a\x00"])
def test_a_name_is_one_line(what: str, name: str) -> None:
    """Row 21 of the security checklist: names that a spec gives."""
    assert refusals(NAMED[what]("ab")) == []
    assert len(refusals(NAMED[what](name))) == 1


# Places

LONG_S = 60.0


def test_a_user_never_holds_all_places() -> None:
    """Row 20 of the security checklist: one user's checks leave a place to the others."""
    places = FairPlaces(places=2, per_user=1, waiting=4)
    with places.place("a", LONG_S):
        with pytest.raises(NoPlace), places.place("a", 0.01):
            pass
        with places.place("b", LONG_S), pytest.raises(NoPlace), places.place("c", 0.01):
            pass


def test_the_last_place_is_for_who_holds_none() -> None:
    """Row 20 of the security checklist: two who each hold what they may, for long, keep a place for a third."""
    places = FairPlaces(places=4, per_user=2, waiting=4)
    with places.place("a", LONG_S), places.place("a", LONG_S), places.place("b", LONG_S):
        with pytest.raises(NoPlace), places.place("b", 0.01):
            pass
        with places.place("c", LONG_S):
            pass


def test_a_user_waits_for_a_few_at_most() -> None:
    places = FairPlaces(places=1, per_user=1, waiting=1)
    with ThreadPoolExecutor(1) as pool, places.place("a", LONG_S):
        waiting = pool.submit(_held, places, "a", [])
        while not places._queue:
            threading.Event().wait(0.001)
        with pytest.raises(NoPlace), places.place("a", LONG_S):
            pass
    waiting.result()


def test_who_waits_is_served_in_turn_by_user() -> None:
    """Row 20 of the security checklist: who comes late with one is not behind another's many."""
    places = FairPlaces(places=1, per_user=1, waiting=9)
    order: list[str] = []
    with ThreadPoolExecutor(8) as pool, places.place("first", LONG_S):
        for number, user in enumerate(["many"] * 5 + ["few"] * 2):
            pool.submit(_held, places, user, order)
            while len(places._queue) <= number:
                threading.Event().wait(0.001)
    assert order == ["many", "few", "many", "few", "many", "many", "many"]


def _held(places: FairPlaces, user: str, order: list[str]) -> None:
    with places.place(user, LONG_S):
        order.append(user)
