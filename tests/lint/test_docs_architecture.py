"""The page on architecture names what there is: files, functions, and the files that each kind of addition touches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.lint.sources import PROJECT, name_of, no_faults, text_of, tree_of
from tests.support import pages

PAGE = text_of(PROJECT / "docs" / "architecture.md")
LONGEST_PAGE_WORDS = 2_000
ROOMS = ("controlplane", "ingestion", "frontend")
SEARCHED = (*ROOMS, "templates", "docs/reference")
SEARCHED_TOO = ("docs/guide.md",)
# One thing of each kind, by the names that it has in code, in the reference, and in paths.
ADDITIONS = {
    "An input format": r"(?i)thrift",
    "A source": r"\bCONSUMER_GROUP\b|\bConsumerGroupSource\b|`consumer_group`",
    "An aggregator": r"\b(long|string)Last\b|\"last\"",
    "A page": r"records\.find|\"frontend:records\"|records/find\.html|\bRecordForm\b",
    "A column of a list": r"\bfirst_seen\b",
    "An endpoint": r"\bcapacity\.CapacityView\b|^\| `GET /api/v1/capacity/`|v1/capacity\.py",
    "A counter": r"\bredundant",
    "A health code": r"(?i)\bquota_used_up\b",
}
# Words that these names also are, elsewhere.
HOMONYMS = {"An aggregator": {"frontend/forms.py", "ingestion/decode/formats/jq_functions.py"}}


def paths_in(text: str) -> list[tuple[str, str]]:
    """(path, name in it or nothing) of all code that is a path."""
    found = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)(?:::([\w.]+))?`", text)
    return [(path, name) for path, name in found if path.split("/")[0] not in ("http:", "https:")]


@cache
def names_of(path: str) -> frozenset[str]:
    """What a module defines at its top, and the methods of its classes, with a dot."""
    found: set[str] = set()
    for node in tree_of(PROJECT / path).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name, body=body):
                found |= {name, *(f"{name}.{part.name}" for part in body if isinstance(part, ast.FunctionDef))}
            case ast.ImportFrom(names=names):
                found |= {alias.asname or alias.name for alias in names}
    return frozenset(found)


def test_every_file_and_function_is_there() -> None:
    named = paths_in(PAGE)
    assert len(named) > 60
    faults = [
        f"{path}::{name}" if name else path
        for path, name in named
        if not (PROJECT / path).exists() or (name and name not in names_of(path))
    ]
    no_faults(faults, "docs/architecture.md names what is not there")


def test_every_room_is_in_the_diagram() -> None:
    diagram = PAGE.split("```")[1]
    drawn = set(re.findall(r"\b((?:controlplane|ingestion|frontend)/(?:\w+/)?)", diagram))
    for room in drawn:
        assert (PROJECT / room).is_dir(), f"the diagram has {room}, which is not there"
    aside = {"controlplane/config/", "controlplane/embedded/"}
    rooms = {f"{folder.relative_to(PROJECT)}/" for room in ("controlplane", "ingestion") for folder in packages(room)}
    assert rooms - drawn <= aside, f"the diagram lacks {rooms - drawn - aside}"
    assert all(f"`{room}`" in PAGE for room in aside)


def packages(room: str) -> list[Path]:
    return [folder for folder in (PROJECT / room).iterdir() if (folder / "__init__.py").exists()]


def test_the_rooms_stand_in_the_order_that_the_linter_holds() -> None:
    contract = (PROJECT / "pyproject.toml").read_text().split('name = "Layers of the control plane"', 1)[1]
    layers = re.findall(r"controlplane\.(\w+)", contract.split("]", 1)[0])
    diagram = PAGE.split("```")[1]
    drawn = [room for room in re.findall(r"controlplane/(\w+)/", diagram) if room in layers]
    assert drawn == [layer for layer in layers if layer != "config"]
    apps = {folder.name for folder in packages("controlplane")} - {"embedded"}
    assert apps == set(layers), "an app that no layer names is held by no contract"


def test_the_page_is_one_page() -> None:
    assert len(PAGE.split()) <= LONGEST_PAGE_WORDS


def test_each_kind_of_addition_has_its_list() -> None:
    titles = re.findall(r"^### (.+)$", pages.section("How to add", PAGE), re.MULTILINE)
    assert titles == list(ADDITIONS)


def faults_of_list(kind: str) -> Iterator[str]:
    """Where the list of a kind of addition and the files that name one of the kind differ."""
    listed = {path for row in pages.rows(pages.section(kind, PAGE)) for path, _ in paths_in(row[0])}
    tests = {path for path in listed if path.startswith("tests/")}
    if not tests:
        yield f"{kind}: a new one comes with a test"
    yield from (f"{kind}: {path} is not there" for path in sorted(tests) if not (PROJECT / path).exists())
    found = files_with(ADDITIONS[kind]) - HOMONYMS.get(kind, set())
    yield from (f"{kind}: {path} names it too; say what for" for path in sorted(found - listed))
    yield from (f"{kind}: {path} names it no more; take it out" for path in sorted(listed - tests - found))


def test_a_list_has_the_files_that_name_one_thing_of_its_kind() -> None:
    no_faults((fault for kind in ADDITIONS for fault in faults_of_list(kind)), "lists in docs/architecture.md")


def files_with(pattern: str) -> set[str]:
    """Files whose path or text has it; migrations tell of the past."""
    wanted = re.compile(pattern, re.MULTILINE)
    found = [path for path in searched() if wanted.search(name_of(path)) or wanted.search(text_of(path))]
    return {name_of(path) for path in found}


@cache
def searched() -> list[Path]:
    paths = [path for room in SEARCHED for path in (PROJECT / room).rglob("*")]
    paths += [PROJECT / page for page in SEARCHED_TOO]
    return [path for path in paths if path.suffix in (".py", ".html", ".md") and "migrations" not in path.parts]
