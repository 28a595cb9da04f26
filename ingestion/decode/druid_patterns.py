"""Regular expressions and LIKE patterns of Druid's, by RE2, which takes time in proportion to the text.

Java's expressions are read by ``java_patterns``: what RE2 has not is refused by name when the spec is submitted. Ends
of lines and word boundaries that the two see differently make the record fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from ingestion.decode.druid_values import EvaluationFailed
from ingestion.specs.schema.java_classes import BadPattern
from ingestion.specs.schema.java_patterns import translated

MAX_CHARACTERS = 1_000
_ODD_SPACES = re.compile("[\x0b\r\x85\u2028\u2029]")
_ENDS = ("\n", "\r", "\x85", "\u2028", "\u2029")
_GROUP = re.compile(r"\\(.)|\$([0-9]+|\{[A-Za-z][A-Za-z0-9]*\}|$|.)", re.DOTALL)


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern."""

    compiled: Any
    java_differences: tuple[str, ...]  # what of a text may make Java find something else: letters, spaces, its end

    def search(self, text: str) -> Any:
        """The first match, or None."""
        self._check(text)
        return self.compiled.search(text)

    @property
    def groups(self) -> int:
        """How many there are."""
        return int(self.compiled.groups)

    def matched(self, text: str) -> tuple[str | None, ...] | None:
        """What the groups hold where the whole text matches, else None."""
        self._check(text)
        match = self.compiled.fullmatch(text)
        return None if match is None else match.groups()

    def replaced(self, text: str, by: str) -> str:
        """All matches; ``by`` is Java's: ``$1``, ``${name}``, and a backslash before what means itself."""
        self._check(text)
        pieces, end = [], 0
        for match in self._found(text):
            pieces += [text[end : match.start()], self._expanded(match, by)]
            end = match.end()
        return "".join([*pieces, text[end:]])

    def split(self, text: str) -> list[str]:
        """Parts, as Java makes them without a limit: no empty texts at the end, none before a match of nothing."""
        self._check(text)
        parts, end = [], 0
        for match in self._found(text):
            if match.end() == 0:
                continue
            if match.start() == match.end() == len(text):
                continue
            parts.append(text[end : match.start()])
            end = match.end()
        if not end:
            return [text]
        parts.append(text[end:])
        while parts and not parts[-1]:
            parts.pop()
        return parts

    def _found(self, text: str) -> Iterator[Any]:
        """All matches. RE2 tells of one of nothing twice at the end; Java finds some in the middle of a character."""
        empty = -1
        for match in self.compiled.finditer(text):
            if match.start() == match.end():
                if match.start() == empty:
                    continue
                empty = match.start()
                if text[empty : empty + 1] > "\uffff":
                    raise EvaluationFailed
            yield match

    def _expanded(self, match: Any, by: str) -> str:
        def put(reference: re.Match[str]) -> str:
            if reference[1] is not None:
                return reference[1]
            name, rest = self._named(reference[2] or "")
            try:
                group = match.group(name[1:-1] if name.startswith("{") else int(name))
            except (IndexError, KeyError, ValueError):
                raise EvaluationFailed from None
            return (group or "") + rest

        if by.endswith("\\") and not by.endswith("\\\\"):
            raise EvaluationFailed
        return _GROUP.sub(put, by) if "$" in by or "\\" in by else by

    def _named(self, name: str) -> tuple[str, str]:
        """Of digits as many as a group has, at least one; and the others."""
        if not name.isdigit():
            return name, ""
        size = 1
        while size < len(name) and int(name[: size + 1]) <= self.groups:
            size += 1
        return name[:size], name[size:]

    def _check(self, text: str) -> None:
        if "empty" in self.java_differences and not text:
            raise EvaluationFailed  # no line begins in it for Java
        if text.isascii() and text.isprintable():
            return
        if (
            ("letters" in self.java_differences and not text.isascii())
            or ("spaces" in self.java_differences and _ODD_SPACES.search(text))
            or ("end" in self.java_differences and text.endswith(_ENDS))
        ):
            raise EvaluationFailed


@lru_cache(maxsize=256)
def pattern(text: str) -> Pattern:
    """A regular expression of Java's. Raises ``BadPattern``."""
    if len(text) > MAX_CHARACTERS:
        raise BadPattern(f"the pattern has {len(text):,} characters; {MAX_CHARACTERS:,} at most")
    words, odd_texts = translated(text)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return Pattern(re2.compile(words, options), odd_texts)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise BadPattern(f"the pattern {text!r} is not supported: {reason}") from None


@lru_cache(maxsize=256)
def like(text: str, escape: str | None) -> Pattern:
    """An SQL pattern, of the whole text. Raises ``BadPattern``."""
    if len(text) > MAX_CHARACTERS:
        raise BadPattern(f"the pattern has {len(text):,} characters; {MAX_CHARACTERS:,} at most")
    pieces, is_escaped = [], False
    for letter in text:
        if letter == escape and not is_escaped:
            is_escaped = True
            continue
        pieces.append(re2.escape(letter) if is_escaped or letter not in "%_" else ".*" if letter == "%" else ".")
        is_escaped = False
    return Pattern(re2.compile(f"(?s)\\A(?:{''.join(pieces)})\\z"), ())
