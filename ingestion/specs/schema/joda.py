"""Joda's time patterns, as Druid's ``timestampSpec`` has them: their parts, and strptime's letters for most of them.

Letters are fields, all else stands for itself; text between single quotes too, and two of them are one quote. What
strptime reads in another way than Joda, or not at all, is read by ``ingestion.decode.joda_reader``.
"""

from __future__ import annotations

from itertools import product, takewhile

LETTERS = frozenset("GCxyYwekEDMdaKhHmsSzZ")
_LONGEST_RUN = 20
_LONGEST_ZONE = 3  # letters z: more would be a long name, which Joda does not read
# A letter's run, by its length (0: any other length), to the strptime fields of which one has to match.
_FIELDS: dict[str, dict[int, tuple[str, ...]]] = {
    "y": {1: ("%Y",), 4: ("%Y",)},
    "Y": {1: ("%Y",), 4: ("%Y",)},
    "M": {1: ("%m",), 2: ("%m",), 0: ("%b", "%B")},
    "d": {1: ("%d",), 2: ("%d",)},
    "a": {0: ("%p",)},
    "H": {1: ("%H",), 2: ("%H",)},
    "h": {1: ("%I",), 2: ("%I",)},
    "m": {1: ("%M",), 2: ("%M",)},
    "s": {1: ("%S",), 2: ("%S",)},
    "S": dict.fromkeys(range(1, 10), ("%f",)),
    "Z": {1: ("%z",), 2: ("%z",)},
}
_MAX_NAMES = 4  # each doubles the patterns of which one has to match


def split_pattern(pattern: str) -> list[tuple[str, str]]:
    """(letters, "") for a field, ("", text) for literal text. A quote without its end reaches to the end."""
    pairs: list[tuple[str, str]] = []
    position = 0
    while position < len(pattern):
        if _is_letter(pattern[position]):
            run = "".join(takewhile(pattern[position].__eq__, pattern[position:]))
            pairs.append((run, ""))
            position += len(run)
        else:
            text, position = _literal(pattern, position)
            pairs.append(("", text))
    return pairs


def _is_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _literal(pattern: str, position: int) -> tuple[str, int]:
    text, quoted = "", False
    while position < len(pattern) and (quoted or not _is_letter(pattern[position])):
        if pattern.startswith("''", position):
            text, position = text + "'", position + 1
        elif pattern[position] == "'":
            quoted = not quoted
        else:
            text += pattern[position]
        position += 1
    return text, position


def check_read(pattern: str) -> None:
    """Raises ``ValueError`` unless Joda reads times by it."""
    runs = [run for run, _ in split_pattern(pattern) if run]
    if not runs:
        raise ValueError("a pattern needs at least one field, such as yyyy-MM-dd HH:mm:ss")
    for run in runs:
        reason = _unsupported_reason(run)
        if reason:
            raise ValueError(f"letter {run[0]!r} (in {run!r}): {reason}")


def _unsupported_reason(run: str) -> str | None:
    if run == "T":
        return "a literal letter needs quotes: 'T'"
    if run[0] == "z" and len(run) > _LONGEST_ZONE:
        return "long names of time zones are not read, as in Druid"
    is_known = run[0] in LETTERS and len(run) <= _LONGEST_RUN
    return None if is_known else "it is not supported"


def strptime_patterns(pattern: str) -> list[str]:
    """The strptime patterns of which a text that fits the Joda ``pattern`` fits one; none if strptime is no help."""
    choices = [_choices(run, text) for run, text in split_pattern(pattern)]
    fields = {field for choice in choices for field in choice}
    halves = fields & {"%p", "%I"}
    if len(halves) == 1 or not all(choices) or sum(len(choice) > 1 for choice in choices) > _MAX_NAMES:
        return []
    return ["".join(fields) for fields in product(*choices)]


def _choices(run: str, text: str) -> tuple[str, ...]:
    if not run:
        return (text.replace("%", "%%"),)
    fields = _FIELDS.get(run[0], {})
    return fields.get(len(run), fields.get(0, ()))
