"""Druid's functions of texts."""

from __future__ import annotations

import re
from collections.abc import Callable

from ingestion.decode.druid_patterns import like, pattern
from ingestion.decode.druid_values import (
    MAX_LONG,
    MIN_LONG,
    EvaluationFailed,
    Value,
    as_int,
    as_text,
    checked_text,
    slice_units,
    to_units,
    utf16_length,
)

MAX_CHARACTERS = 1_000_000


def check_length(size: int) -> None:
    """A text or list may not be longer."""
    if size > MAX_CHARACTERS:
        raise EvaluationFailed


def _text(value: Value) -> str | None:
    """The text of lists and objects is Java's."""
    return as_text(value)


def concat(*values: Value) -> Value:
    """Null with a null in it."""
    texts = [_text(v) for v in values]
    if not texts or any(t is None for t in texts):
        return None
    joined = "".join(t for t in texts if t is not None)
    check_length(len(joined))
    return joined


def strlen(value: Value) -> Value:
    text = _text(value)
    return None if text is None else utf16_length(text)


def upper(value: Value) -> Value:
    text = _text(value)
    return None if text is None else _keep_newer_letters(text, str.upper)


def lower(value: Value) -> Value:
    text = _text(value)
    return None if text is None else _keep_newer_letters(text, str.lower)


# Letters whose case is younger than Java's Unicode, or whose case Java changes in another way.
_NEWER_LETTERS = re.compile("[\u2c2f\u2c5f\ua7c0\ua7c1\ua7d0\ua7d1\ua7d6-\ua7d9\U00010570-\U000105bf]")


def _keep_newer_letters(text: str, change: Callable[[str], str]) -> str:
    if text.isascii():
        return change(text)
    if _NEWER_LETTERS.search(text):
        raise EvaluationFailed
    return change(text)


def reverse(value: Value) -> Value:
    """By characters, as Java does."""
    if value is not None and not isinstance(value, str):
        raise EvaluationFailed
    return None if value is None else value[::-1]


def substring(value: Value, start: Value, count: Value) -> Value:
    text = _text(value)
    if text is None:
        return None
    first, most, size = as_int(start), as_int(count), utf16_length(text)
    if first >= size:
        return None
    if first < 0:
        raise EvaluationFailed
    return slice_units(text, first, size if most < 0 else min(first + most, size))


def left(value: Value, count: Value) -> Value:
    text, most = _text(value), _checked_count(count)
    return None if text is None or most is None else slice_units(text, 0, min(most, utf16_length(text)))


def right(value: Value, count: Value) -> Value:
    text, most = _text(value), _checked_count(count)
    if text is None or most is None:
        return None
    size = utf16_length(text)
    return slice_units(text, max(0, size - most), size)


def _checked_count(value: Value) -> int | None:
    if value is None:
        return None
    count = as_int(value)
    if count < 0:
        raise EvaluationFailed
    return count


def repeat(value: Value, count: Value) -> Value:
    text = _text(value)
    if text is None or count is None:
        return None
    times = as_int(count)
    check_length(len(text) * times)
    return text * times if times > 0 else None


def lpad(value: Value, size: Value, chars: Value) -> Value:
    padded = _padding(value, size, chars)
    return padded if not isinstance(padded, tuple) else padded[1] + padded[0]


def rpad(value: Value, size: Value, chars: Value) -> Value:
    padded = _padding(value, size, chars)
    return padded if not isinstance(padded, tuple) else padded[0] + padded[1]


def _padding(value: Value, size: Value, chars: Value) -> str | tuple[str, str] | None:
    """Text and padding, or the result where nothing is to be padded."""
    text, pad, target_length = _text(value), _text(chars), as_int(size)
    if text is None or pad is None or target_length == 0:
        return None
    check_length(target_length)
    missing = target_length - utf16_length(text)
    if missing <= 0:
        return slice_units(text, 0, max(0, target_length))
    if not pad:
        return text
    return text, slice_units(pad * (missing // utf16_length(pad) + 1), 0, missing)


def strpos(haystack: Value, needle: Value, start: Value = 0) -> Value:
    text, searched = _text(haystack), _text(needle)
    if text is None or searched is None:
        return None
    place = max(0, as_int(start))
    if text.isascii():
        return text.find(searched, place) if searched or place <= len(text) else len(text)
    return _find_units(to_units(text), to_units(searched), place)


def _find_units(text: bytes, searched: bytes, place: int) -> int:
    at = text.find(searched, 2 * place)
    while at > 0 and at % 2:
        at = text.find(searched, at + 1)
    return at // 2 if at >= 0 else -1


def _trimmer(from_left: bool, from_right: bool) -> Callable[..., Value]:
    def trimmed(value: Value, chars: Value = " ") -> Value:
        text, letters = _text(value), "" if chars is None else _text(chars) or ""
        if text is None or not letters:
            return value
        stripped = text.lstrip(letters) if from_left else text
        stripped = stripped.rstrip(letters) if from_right else stripped
        return value if stripped == text else stripped

    return trimmed


trim, ltrim, rtrim = _trimmer(True, True), _trimmer(True, False), _trimmer(False, True)


def replace(value: Value, old: Value, by: Value) -> Value:
    text, searched, put = _text(value), _text(old), _text(by)
    if text is None:
        return None
    if searched is None or put is None:
        raise EvaluationFailed
    if not searched and not text.isascii():
        raise EvaluationFailed  # Java puts it between the halves of a character
    check_length((text.count(searched) + 1) * len(put) + len(text))
    return text.replace(searched, put)


def contains(value: Value, searched: Value) -> Value:
    text = _text(value)
    return None if text is None else int((_text(searched) or "") in text)


def icontains(value: Value, searched: Value) -> Value:
    """Letter by letter, so that ß is not SS."""
    text = _text(value)
    if text is None:
        return None
    return int(_fold_case(_text(searched) or "") in _fold_case(text))


_LONE_LOWER = {"\u0130": "i"}  # letters of which Java has a lower one and Python two


def _fold_case(text: str) -> str:
    if text.isascii():
        return text.lower()
    if _NEWER_LETTERS.search(text):
        raise EvaluationFailed
    raised = "".join(u if len(u := c.upper()) == 1 else c for c in text)
    return "".join(low if len(low := c.lower()) == 1 else _LONE_LOWER.get(c, c) for c in raised)


def like_(value: Value, written: Value, escape: Value = None) -> Value:
    text = _text(value)
    if text is None:
        return None
    return int(like(str(written), escape if isinstance(escape, str) else None).search(text) is not None)


def regexp_extract(value: Value, written: Value, index: Value = 0) -> Value:
    text, compiled = _text(value), pattern(str(written))
    match = None if text is None else compiled.search(text)
    if match is None:
        return None
    try:
        group = match.group(as_int(index))
    except IndexError:
        raise EvaluationFailed from None
    return group if group is None else str(group)


def regexp_like(value: Value, written: Value) -> Value:
    text = _text(value)
    return None if text is None else int(pattern(str(written)).search(text) is not None)


def regexp_replace(value: Value, written: Value, by: Value) -> Value:
    text, put = _text(value), _text(by)
    if text is None or put is None:
        return None
    check_length(len(put) * (len(text) + 1))
    return checked_text(pattern(str(written)).replaced(text, put))


def parse_long(value: Value, radix: Value = 10) -> Value:
    """Java's digits are those of any script."""
    text, base = _text(value), as_int(radix)
    if text is None or not 2 <= base <= 36:
        return None
    if base == 16 and text[:2] in ("0x", "0X"):
        text = text[2:]
    digits = text[1:] if text[:1] in ("-", "+") else text
    try:
        # Digit by digit: Python alone takes blanks, _ and the prefix of a base.
        parsed = int(text, base) if digits and all(int(digit, base) >= 0 for digit in digits) else None
    except ValueError:
        return None
    if parsed is None:
        return None
    return parsed if MIN_LONG <= parsed <= MAX_LONG else None
