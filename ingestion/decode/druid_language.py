"""Druid's expression language: from a text to a tree, as Druid's own grammar reads it.

What is not read here is refused by name, with what to do about it; what the rest means is in ``druid_meaning``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

MOST_DEPTH = 60
_LONGEST_LONG = 2**63 - 1
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
    (?P<number>\d+(?:\.\d*)?(?:[eE]-?\d+)?(?![\w.$]))
    |(?P<text>'[^'\\]*')
    |(?P<name>[_$a-zA-Z][_$a-zA-Z0-9]*(?!\.))
    |(?P<quoted>"[^"\\]+")
    |(?P<sign>==|!=|<=|>=|&&|\|\||->|[-+*/%^<>!(),\[\]])
    )""",
    re.VERBOSE,
)
_LEVELS = (("&&", "||"), ("<", "<=", ">", ">=", "==", "!="), ("+", "-"), ("*", "/", "%"))  # from loose to tight
_UNARY = ("-", "!")
IN_SQL = 'write the expression in SQL, and say so with "language": "sql"'


class NotTaken(ValueError):
    """This part of Druid's language is not taken; the message says which, and what to do."""


@dataclass(frozen=True)
class Literal:
    value: int | float | str | None  # None, an int, a float or a text
    depth: int = 1


@dataclass(frozen=True)
class Field:
    name: str
    depth: int = 1


@dataclass(frozen=True)
class Call:
    """A function, or an operator by its sign; ``-`` and ``!`` with one argument are the unary ones."""

    name: str
    arguments: tuple[Node, ...]
    depth: int


Node = Literal | Field | Call
Check = Callable[[str, tuple[Node, ...]], None]


def read(text: str, check: Check) -> Node:
    """The tree; ``check`` is asked about every call. Raises ``NotTaken``."""
    return _Reader(text, check).whole()


def fields_of(node: Node) -> tuple[str, ...]:
    """The fields that it reads, each once, in order."""
    return tuple(dict.fromkeys(_fields(node)))


def _fields(node: Node) -> Iterator[str]:
    if isinstance(node, Field):
        yield node.name
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from _fields(argument)


class _Reader:
    def __init__(self, text: str, check: Check) -> None:
        self._tokens = [*_tokens(text), ("end", "")]
        self._place = 0
        self._nested = 0
        self._check = check

    def whole(self) -> Node:
        node = self._level(0)
        if self._kind != "end":
            raise NotTaken(f"{self._word!r} is not expected there: {IN_SQL}")
        return node

    @property
    def _kind(self) -> str:
        return self._tokens[self._place][0]

    @property
    def _word(self) -> str:
        return self._tokens[self._place][1]

    def _next(self) -> tuple[str, str]:
        self._place += 1
        return self._tokens[self._place - 1]

    def _level(self, level: int) -> Node:
        """Operators of one level are read from the left; ``&&`` and ``||`` are of one."""
        if level == len(_LEVELS):
            return self._unary()
        node = self._level(level + 1)
        while self._kind == "sign" and self._word in _LEVELS[level]:
            sign = self._next()[1]
            node = self._called(sign, (node, self._level(level + 1)))
        return node

    def _unary(self) -> Node:
        if self._kind == "sign" and self._word in _UNARY:
            sign = self._next()[1]
            return self._called(sign, (self._deeper(self._unary),))
        node = self._operand()
        if self._kind == "sign" and self._word in ("^", "[", "->"):
            raise not_taken(self._word)
        return node

    def _deeper(self, read: Callable[[], Node]) -> Node:
        self._nested += 1
        if self._nested > MOST_DEPTH:
            raise NotTaken(f"it is nested more than {MOST_DEPTH} levels deep")
        node = read()
        self._nested -= 1
        return node

    def _operand(self) -> Node:
        kind, word = self._next()
        if kind in _LITERALS:
            return Literal(_LITERALS[kind](word))
        if kind == "quoted":
            return Field(word[1:-1])
        if kind == "name" and self._word == "(":
            return self._called(word.lower(), self._arguments())
        if kind == "name":
            return Literal(None) if word == "null" else Field(word)
        if word == "(":
            node = self._deeper(lambda: self._level(0))
            self._expect(")")
            return node
        raise not_taken(word) if word in ("[", "^", "->") else NotTaken(f"something is missing before {word!r}")

    def _arguments(self) -> tuple[Node, ...]:
        self._next()
        arguments: list[Node] = []
        while self._word != ")":
            if arguments:
                self._expect(",")
            arguments.append(self._deeper(lambda: self._level(0)))
        self._next()
        return tuple(arguments)

    def _expect(self, sign: str) -> None:
        if self._word in ("->", "^", "["):
            raise not_taken(self._word)
        if self._next()[1] != sign:
            raise NotTaken(f"{sign!r} is missing: {IN_SQL}")

    def _called(self, name: str, arguments: tuple[Node, ...]) -> Call:
        self._check(name, arguments)
        depth = 1 + max((a.depth for a in arguments), default=0)
        if depth > MOST_DEPTH:
            raise NotTaken(f"it is nested more than {MOST_DEPTH} levels deep: so are more than so many signs in a row")
        return Call(name, arguments, depth)


def not_taken(name: str) -> NotTaken:
    """The refusal of an operator or function by its name."""
    what = "operator" if not name[:1].isalpha() else "function"
    return NotTaken(f"Druid's {what} {name!r} is not taken, as it would mean something else here: {IN_SQL}")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    end = len(text.rstrip(" \t\r\n"))
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise NotTaken(_unread(text[place:].lstrip()))
        yield match.lastgroup, match[match.lastgroup]
        place = match.end()


def _unread(rest: str) -> str:
    if rest[0] in "'\"":
        return f"a text or name with a \\ in it, or without its end, is not taken: {IN_SQL}"
    word = re.match(r"[\w.$]+|\S", rest)
    return f"{word[0] if word else rest[:1]!r} is not of Druid's expression language as it is taken here: {IN_SQL}"


def _number(word: str) -> int | float:
    if word.isdecimal():
        if int(word) > _LONGEST_LONG:
            raise NotTaken(f"{word} is beyond a long")
        return int(word)
    number = float(word)
    if number == float("inf"):
        raise NotTaken(f"{word} is beyond a double")
    return number


_LITERALS: Mapping[str, Callable[[str], int | float | str]] = {"number": _number, "text": lambda word: word[1:-1]}
