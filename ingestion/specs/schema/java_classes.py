"""Character classes of Java's regular expressions, with nested ones, as sets for RE2."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Range = tuple[int, int]
LAST = 0x10FFFF
_CATEGORY = re.compile("L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfo]")  # that RE2 knows alike
_CASED = ("Lu", "Ll", "Lt")


class BadPattern(ValueError):
    """The pattern has an error, or has another meaning in Java; the message says what."""


@dataclass(frozen=True)
class Class:
    """Characters, and parts of RE2's classes for further characters."""

    ranges: tuple[Range, ...]
    more: tuple[str, ...] = ()

    def joined(self, other: Class) -> Class:
        return Class(_merged([*self.ranges, *other.ranges]), (*self.more, *other.more))

    def both(self, other: Class) -> Class:
        """What is in either. Raises ``BadPattern``."""
        return self.minus(other.negated())

    def minus(self, other: Class) -> Class:
        if self.more or other.more:
            raise BadPattern("a property such as \\p{L} next to && or in a negated class within another one")
        return Class(tuple(_subtract(self.ranges, other.ranges)))

    def negated(self) -> Class:
        return Class(((0, LAST),)).minus(self)

    def folded(self) -> Class:
        """With the other case of the letters of ASCII."""
        other = [(max(lo, a) + by, min(hi, z) + by) for lo, hi in self.ranges for a, z, by in _CASES]
        return Class(_merged([*self.ranges, *((lo, hi) for lo, hi in other if lo <= hi)]), self.more)

    def to_re2(self, negative: bool = False) -> str:
        """In RE2's words."""
        if not self.ranges and not self.more:
            return Class(((0, LAST),)).to_re2(not negative)
        spans = "".join(f"{_code(lo)}-{_code(hi)}" if lo < hi else _code(lo) for lo, hi in self.ranges)
        return f"[{'^' if negative else ''}{spans}{''.join(self.more)}]"


# From, to, and how far away the other case is.
_CASES = ((ord("a"), ord("z"), -32), (ord("A"), ord("Z"), 32))


def _code(point: int) -> str:
    return f"\\x{{{point:x}}}"


def _merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    merged: list[Range] = []
    for lo, hi in sorted(ranges):
        if merged and lo <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(hi, merged[-1][1]))
        else:
            merged.append((lo, hi))
    return tuple(merged)


def _subtract(ranges: Iterable[Range], removed: Iterable[Range]) -> Iterator[Range]:
    merged = _merged(removed)
    for lo, hi in ranges:
        for first, last in merged:
            if last < lo or first > hi:
                continue
            if first > lo:
                yield lo, first - 1
            lo = last + 1
        if lo <= hi:
            yield lo, hi


def char_class(*parts: str | Range) -> Class:
    """Of texts, each character of which is in it, and ranges of numbers."""
    points = [(ord(c), ord(c)) for p in parts if isinstance(p, str) for c in p]
    return Class(_merged([*points, *(p for p in parts if not isinstance(p, str))]))


_LOWER, _UPPER, _DIGIT = char_class((97, 122)), char_class((65, 90)), char_class((48, 57))
_ALPHA = _LOWER.joined(_UPPER)
SPACE = char_class((9, 13), " ")
TERMINATORS = char_class("\n\r\x85\u2028\u2029")
# By the letter behind the backslash.
ESCAPED = {
    "d": _DIGIT,
    "w": _ALPHA.joined(_DIGIT).joined(char_class("_")),
    "s": SPACE,
    "h": char_class(" \t\xa0\u1680\u180e\u202f\u205f\u3000", (0x2000, 0x200A)),
    "v": char_class((10, 13), "\x85\u2028\u2029"),
}
_POSIX = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": char_class((0, 127)),
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": _ALPHA.joined(_DIGIT),
    "Punct": char_class((33, 47), (58, 64), (91, 96), (123, 126)),
    "Graph": char_class((33, 126)),
    "Print": char_class((32, 126)),
    "Blank": char_class(" \t"),
    "Cntrl": char_class((0, 31), (127, 127)),
    "XDigit": char_class((48, 57), (65, 70), (97, 102)),
    "Space": SPACE,
}


def property_class(name: str, negative: bool, any_case: bool) -> Class:
    """What ``\\p{name}`` stands for. Raises ``BadPattern``."""
    if name in _POSIX:
        posix = _POSIX[name].folded() if any_case else _POSIX[name]
        return posix.negated() if negative else posix
    key, equals, value = name.partition("=")
    category = value if equals and key.lower() in ("gc", "general_category") else name.removeprefix("Is")
    if _CATEGORY.fullmatch(category) and (not equals or category is value):
        return _category_class(category, negative, any_case)
    script = value if equals and key.lower() in ("sc", "script") else name[2:] if name.startswith("Is") else ""
    if not script.replace("_", "").isalpha() or not script.isascii():
        raise BadPattern(f"\\p{{{name}}}")
    return Class((), (f"\\{'P' if negative else 'p'}{{{'_'.join(w.capitalize() for w in script.split('_'))}}}",))


def _category_class(category: str, negative: bool, any_case: bool) -> Class:
    """Where case does not count, one of the cased letters stands for all of them."""
    if any_case and category in _CASED:
        if negative:
            raise BadPattern(f"\\P{{{category}}} with case-insensitive matching")
        return Class((), tuple(f"\\p{{{c}}}" for c in _CASED))
    return Class((), (f"\\{'P' if negative else 'p'}{{{category}}}",))
