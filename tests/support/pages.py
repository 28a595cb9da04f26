"""Reading Markdown pages: sections, tables, code, anchors."""

from __future__ import annotations

import re


def section(title: str, text: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$\n(.*?)(?=^#{{1,}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no section {title!r}"
    level = len(found[1])
    rest = text[found.start(2) :]
    end = re.search(rf"^#{{1,{level}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows(text: str) -> list[list[str]]:
    """The cells of all tables' rows, headings and rules left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [c for n, c in enumerate(cells) if not _is_rule(c) and not (n + 1 < len(cells) and _is_rule(cells[n + 1]))]


def _is_rule(cells: list[str]) -> bool:
    return all(re.fullmatch(r":?-+:?", cell) for cell in cells)


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def first_codes(text: str) -> list[str]:
    """The code in the first cell of every row."""
    return [codes(row[0])[0] for row in rows(text) if codes(row[0])]


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Those of a page."""
    return anchors_of(re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE))


def anchors_of(headings: list[str]) -> set[str]:
    """GitHub makes them so."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
