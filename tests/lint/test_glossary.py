"""Each concept has one term: the synonyms that the glossary names stand in no page, document or name of the code."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.lint.sources import PROJECT, files, name_of, no_faults, places, text_of, tree_of
from tests.support.pages import codes, rows, section, without_code

GLOSSARY = PROJECT / "docs" / "glossary.md"
PACKAGES = ("controlplane", "ingestion", "frontend", "headgate")
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_TEMPLATE_CODE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)


@cache
def synonyms() -> tuple[frozenset[str], frozenset[str]]:
    """Parts of names, and words of texts."""
    cells = [row[3] for row in rows(text_of(GLOSSARY))]
    names = {word for cell in cells for word in codes(cell)}
    texts = {word.strip() for cell in cells for word in re.sub("`[^`]*`", "", cell).split(",")} - {""}
    prose = section("Words that no text needs", text_of(GLOSSARY)).partition(":")[2].partition(".")[0]
    return frozenset(names), frozenset(texts | {word.strip() for word in prose.split(",")})


def documents() -> list[Path]:
    everywhere = [
        *PROJECT.glob("*.md"),
        *(PROJECT / "docs").glob("*.md"),
        *(PROJECT / "docs" / "reference").glob("*.md"),
    ]
    return [page for page in everywhere if page != GLOSSARY]


def test_each_concept_has_one_row() -> None:
    terms = Counter(row[0] for row in rows(text_of(GLOSSARY)))
    no_faults((term for term, count in terms.items() if count > 1), "The glossary has each term once")
    names, texts = synonyms()
    assert {"standing"} <= names, "the last column is read"
    assert {"needs you", "anew"} <= texts, "the last column and the last list are read"


def test_every_file_of_the_glossary_exists() -> None:
    named = (code for code in codes(text_of(GLOSSARY)) if code.endswith((".py", "/")) and code.startswith(PACKAGES))
    no_faults((code for code in named if not (PROJECT / code).exists()), "The glossary names files that there are")


def test_no_text_has_another_word_for_a_term() -> None:
    pattern = r"(?i)\b(" + "|".join(re.escape(word) for word in sorted(synonyms()[1])) + r")\b"

    def faults() -> Iterator[str]:
        for page in files("*.html", "templates"):
            yield from places(pattern, page, _TEMPLATE_CODE.sub("", text_of(page)))
        for page in documents():
            yield from places(pattern, page, without_code(text_of(page)))

    no_faults(faults(), "docs/glossary.md has a term for it")


def test_no_name_has_another_word_for_a_term() -> None:
    unwanted = synonyms()[0]

    def faults() -> Iterator[str]:
        for file in files("*.py", *PACKAGES):
            for line, name in names_in(tree_of(file)):
                if found := unwanted & {part.lower() for part in _PARTS.findall(name)}:
                    yield f"{name_of(file)}:{line}: {name} ({', '.join(found)})"

    no_faults(faults(), "docs/glossary.md has a term for it")


def names_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What the file defines: functions, classes, arguments, attributes and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
