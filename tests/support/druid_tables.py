"""What agrees with Druid, counted, as tables of the docs: ``python -m tests.support.druid_tables`` writes them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.druid_agreement import Verdict, counted
from tests.support.druid_words import words_tables

PAGE = Path(__file__).parent.parent.parent / "docs" / "druid.md"
MEANINGS: dict[Verdict, str] = {
    "same": "Same",
    "told": "Fails here",
    "refused": "Refused here",
    "alone": "Taken here alone",
    "other": "Means something else",
}
_PLACE = "<!-- {}: {} -->"


def sections_table() -> str:
    """How many cases of each section agree."""
    counts = counted()
    lines = ["| Section | Cases | " + " | ".join(MEANINGS.values()) + " |", "|---|" + "---:|" * (len(MEANINGS) + 1)]
    every: Counter[Verdict] = sum(counts.values(), Counter())
    return "\n".join([*lines, *(_line(section, count) for section, count in [*counts.items(), ("all", every)])])


def _line(section: str, count: Counter[Verdict]) -> str:
    return f"| {section} | {count.total()} | " + " | ".join(f"{count[v]}" for v in MEANINGS) + " |"


TABLES = {"counted": sections_table, "words": words_tables}


def written(name: str) -> str:
    """What stands in the docs between the marks of this name."""
    begin, end = (_PLACE.format(name, edge) for edge in ("begin", "end"))
    return PAGE.read_text(encoding="utf-8").split(begin)[1].split(end)[0].strip()


def main() -> None:
    """Writes."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        begin, end = (_PLACE.format(name, edge) for edge in ("begin", "end"))
        head, rest = text.split(begin)
        text = f"{head}{begin}\n{table()}\n{end}{rest.split(end)[1]}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
