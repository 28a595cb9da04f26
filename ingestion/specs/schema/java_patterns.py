"""Java's regular expressions in RE2's words: ``translated``.

What RE2 has not (looking around, backreferences, possessive signs) is refused by name. Java's letters, spaces and ends
of lines become classes that say the same; what of a text may make Java find something else nevertheless is named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ingestion.specs.schema.java_classes import (
    ESCAPED,
    LAST,
    TERMINATORS,
    BadPattern,
    Class,
    char_class,
    property_class,
)

_CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}
_HEXADECIMAL = re.compile(r"x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_HIGH_AND_LOW = re.compile(r"u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_PROPERTY = re.compile(r"[pP](?:\{([^{}]+)\}|([A-Z]))")
_GROUP = re.compile(r"\(\?(?:<([a-zA-Z][a-zA-Z0-9]*)>|([imsdux]*)(-[imsdux]*)?([:)]))")
_TIMES = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_QUOTED = re.compile(r"(?s)((?:[^\\]|\\[^Q])*?)\\Q(.*?)(?:\\E|$)")
_LINE_END = r"(?:\r\n|[\n-\r\x{85}\x{2028}\x{2029}])"
_NOT_ENDED = TERMINATORS.to_re2(negative=True)
_UNCLOSED = "a character class without its closing ]"
_DEEPEST = 50
_DOTLESS = "\u0130\u0131"  # letters that are an i to Java where the case of all letters counts for nothing


@dataclass
class _Cursor:
    text: str
    place: int = 0
    flags: str = ""
    outer: list[str] = field(default_factory=list)  # the flags around each open group
    differences: set[str] = field(default_factory=set)  # kinds of texts in which Java may match something else
    names: set[str] = field(default_factory=set)
    depth: int = 0  # of classes in one another
    loose: int = -1  # where a part of a class last began that is no class itself

    def next_character(self) -> str:
        return self.text[self.place : self.place + 1]

    def accept(self, text: str) -> bool:
        is_next = self.text.startswith(text, self.place)
        self.place += len(text) * is_next
        return is_next

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.place)
        self.place = match.end() if match else self.place
        return match


def translated(text: str) -> tuple[str, tuple[str, ...]]:
    """The pattern for RE2, and the kinds of texts in which Java may match something else. Raises ``BadPattern``."""
    cursor = _Cursor(_without_quotes(text))
    try:
        pattern = _sequence(cursor)
    except BadPattern as error:
        raise BadPattern(f"the pattern {text!r} is not supported: {error}") from None
    return pattern, tuple(sorted(cursor.differences))


def _without_quotes(text: str) -> str:
    r"""``\Q`` and ``\E`` make everything between stand for itself."""

    def plain(match: re.Match[str]) -> str:
        return match[1] + "".join(f"\\x{{{ord(c):x}}}" for c in match[2])

    return _QUOTED.sub(plain, text) if "\\Q" in text else text


def _sequence(cursor: _Cursor) -> str:
    parts: list[str] = []
    while cursor.next_character():
        if "x" in cursor.flags and _skip(cursor):
            continue
        if parts and not parts[-1] and cursor.next_character() in "*+?{":
            raise BadPattern("a repetition sign after flags, which RE2 applies to the text before the flags")
        parts.append(_part(cursor))
    return "".join(parts)


def _skip(cursor: _Cursor) -> bool:
    if cursor.next_character() in " \t\n\x0b\f\r":
        cursor.place += 1
        return True
    if cursor.next_character() != "#":
        return False
    while cursor.next_character() and cursor.next_character() not in "\n\r\x85\u2028\u2029":
        cursor.place += 1
    return True


def _part(cursor: _Cursor) -> str:
    letter = cursor.next_character()
    if letter == "(":
        return _group(cursor)
    if letter == "[":
        cursor.place += 1
        return _class_text(cursor, *_class(cursor))
    if letter == "\\":
        return _escaped(cursor)
    if letter in "*+?{":
        return _repetition(cursor)
    cursor.place += 1
    if letter == ")":
        cursor.flags = cursor.outer.pop() if cursor.outer else cursor.flags
        return letter
    return letter if letter == "|" else _anchor(cursor, letter) if letter in ".^$" else _letter(cursor, ord(letter))


def _group(cursor: _Cursor) -> str:
    if not cursor.text.startswith("(?", cursor.place):
        cursor.place += 1
        cursor.outer.append(cursor.flags)
        return "("
    match = cursor.match(_GROUP)
    if match is None:
        shown = cursor.text[cursor.place : cursor.place + 4]
        raise BadPattern(f"{shown}: lookaround, atomic groups and other flags")
    name, on, off, end = match.groups()
    if name is not None:
        if name in cursor.names:
            raise BadPattern(f"two groups named {name}")
        cursor.names.add(name)
        cursor.outer.append(cursor.flags)
        return f"(?P<{name}>"
    if end == ":":
        cursor.outer.append(cursor.flags)
    cursor.flags = "".join(sorted({*cursor.flags, *on} - set(off or "")))
    return "(?:" if end == ":" else ""


def _repetition(cursor: _Cursor) -> str:
    if cursor.next_character() == "{":
        match = cursor.match(_TIMES)
        if match is None:
            raise BadPattern("a { without a number of repetitions; write \\{ for the character")
        sign = match[0]
    else:
        sign = cursor.next_character()
        cursor.place += 1
    if cursor.accept("+"):
        raise BadPattern(f"{sign}+: possessive repetition")
    if cursor.accept("?"):
        sign += "?"
    if cursor.next_character() and (cursor.next_character() in "*+?" or _TIMES.match(cursor.text, cursor.place)):
        raise BadPattern(f"two repetition signs in a row: {sign}{cursor.next_character()}")
    return sign


def _anchor(cursor: _Cursor, letter: str) -> str:
    if letter == ".":
        return "(?s:.)" if "s" in cursor.flags else r"[^\n]" if "d" in cursor.flags else _NOT_ENDED
    if "m" in cursor.flags:
        cursor.differences |= {"spaces", "end", "empty"}
        return f"(?m:{letter})"
    if letter == "$":
        cursor.differences.add("end")
    return r"\A" if letter == "^" else r"\z"


def _letter(cursor: _Cursor, point: int) -> str:
    if "i" not in cursor.flags:
        return char_class((point, point)).to_re2()
    return _class_text(cursor, char_class((point, point)).folded(), False)


def _class_text(cursor: _Cursor, characters: Class, negative: bool) -> str:
    if {"i", "u"} <= set(cursor.flags):
        if any(lo <= ord(c) <= hi for lo, hi in characters.ranges for c in _DOTLESS):
            raise BadPattern("flags i and u with a letter whose case RE2 and Java fold differently")
        cursor.differences.add("letters")
        return f"(?i:{characters.to_re2(negative)})"
    return characters.to_re2(negative)


def _escaped(cursor: _Cursor) -> str:
    cursor.place += 1
    letter = cursor.next_character()
    characters = _escaped_class(cursor)
    if characters is not None:
        return characters.to_re2()
    simple = {"A": r"\A", "z": r"\z", "Z": r"\z", "b": r"\b", "B": r"\B", "R": _LINE_END}
    if letter in simple and letter:
        cursor.place += 1
        cursor.differences |= {"letters"} if letter in "bB" else {"end"} if letter == "Z" else set()
        if letter == "b" and cursor.next_character() == "{":
            raise BadPattern("\\b{")
        return simple[letter]
    return _letter(cursor, _escaped_character(cursor))


def _escaped_class(cursor: _Cursor) -> Class | None:
    """The class of an escape for several characters."""
    letter, any_case = cursor.next_character(), "i" in cursor.flags
    if letter.lower() in ESCAPED and letter:
        cursor.place += 1
        return ESCAPED[letter] if letter in ESCAPED else ESCAPED[letter.lower()].negated()
    if letter not in ("p", "P"):
        return None
    match = cursor.match(_PROPERTY)
    if match is None:
        raise BadPattern(f"\\{letter}")
    return property_class(match[1] or match[2], letter == "P", any_case)


def _escaped_character(cursor: _Cursor) -> int:
    """The character of an escape."""
    pair = cursor.match(_HIGH_AND_LOW)
    if pair:
        return (((int(pair[1], 16) & 0x3FF) << 10) | (int(pair[2], 16) & 0x3FF)) + 0x10000
    match = cursor.match(_HEXADECIMAL)
    if match:
        return _check_point(int(match[1] or match[2] or match[3], 16))
    octal = cursor.match(_OCTAL)
    if octal:
        return int(octal[1], 8)
    letter = cursor.next_character()
    cursor.place += 1
    if letter == "c" and cursor.next_character():
        cursor.place += 1
        return _check_point(ord(cursor.text[cursor.place - 1]) ^ 64)
    if not letter or (letter.isascii() and letter.isalnum() and letter not in _CONTROLS):
        raise BadPattern(f"\\{letter} has another meaning, or none, in RE2")
    return _CONTROLS.get(letter, ord(letter))


def _check_point(point: int) -> int:
    if point > LAST or 0xD800 <= point <= 0xDFFF:
        raise BadPattern(f"{point:x} is not a character")
    return point


def _class(cursor: _Cursor) -> tuple[Class, bool]:
    """Behind its bracket: what is in it, and whether it is all but that."""
    negative = cursor.accept("^")
    characters = _union(cursor)
    while cursor.accept("&&"):
        characters = characters.both(_intersection(cursor))
    if not cursor.accept("]"):
        raise BadPattern(_UNCLOSED)
    return characters, negative


def _intersection(cursor: _Cursor) -> Class:
    """Classes alone, or parts of which the first is none: Java forgets what is mixed."""
    start = cursor.place
    characters = _union(cursor)
    if cursor.text[start] == "[" and cursor.loose > start:
        raise BadPattern("character classes mixed with other characters after &&")
    return characters


def _union(cursor: _Cursor) -> Class:
    """Up to ``&&`` or its end; at least one part."""
    characters: Class | None = None
    while cursor.next_character() and not cursor.text.startswith("&&", cursor.place):
        if cursor.next_character() == "]" and characters is not None:
            break
        part = _class_part(cursor)
        characters = part if characters is None else characters.joined(part)
    if characters is None and not cursor.next_character():
        raise BadPattern(_UNCLOSED)
    if characters is None or cursor.text.startswith("&&&", cursor.place):
        raise BadPattern("an empty side of &&")
    return characters


def _class_part(cursor: _Cursor) -> Class:
    if cursor.accept("["):
        cursor.depth += 1
        if cursor.depth > _DEEPEST:
            raise BadPattern(f"character classes nested more than {_DEEPEST} deep")
        before = cursor.loose
        inner, negative = _class(cursor)
        cursor.loose = before
        return inner.negated() if negative else inner
    cursor.loose = cursor.place
    if "x" in cursor.flags and cursor.next_character() in " \t\n\x0b\f\r#":
        raise BadPattern("a blank in a character class with the flag x")
    folded = Class.folded if "i" in cursor.flags else (lambda c: c)
    if cursor.accept("\\"):
        several = _escaped_class(cursor)
        if several is not None:
            return several
        first = _escaped_character(cursor)
    else:
        first = _class_character(cursor)
    if cursor.next_character() != "-" or cursor.text[cursor.place + 1 : cursor.place + 2] in ("[", "]", ""):
        return folded(char_class((first, first)))
    cursor.place += 1
    last = _escaped_character(cursor) if cursor.accept("\\") else _class_character(cursor)
    if last < first:
        raise BadPattern("a character range that ends before it begins")
    return folded(char_class((first, last)))


def _class_character(cursor: _Cursor) -> int:
    cursor.place += 1
    return ord(cursor.text[cursor.place - 1])
