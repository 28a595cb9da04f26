"""Druid's expression language: from a text to a tree, as Druid's own grammar reads it.

What is not read here is refused by name, with what to do about it; what the rest means is in ``druid_functions``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ingestion.decode.druid_values import Array, Element, EvaluationFailed, array_of, cast, from_units, to_units

MAX_DEPTH = 60
_LONGEST_LONG = 2**63 - 1
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
    (?P<number>\d+(?:\.\d*)?(?:[eE]-?\d+)?(?![\w.$]))
    |(?P<text>'(?:[^'\\]|\\(?:[btnfr"'\\/]|u[0-9a-fA-F]{4}))*')
    |(?P<name>[_$a-zA-Z][_$a-zA-Z0-9]*(?![_$a-zA-Z0-9.]))
    |(?P<quoted>"(?:[^"\\]|\\(?:[btnfr"'\\/]|u[0-9a-fA-F]{4}))+")
    |(?P<sign>==|!=|<=|>=|&&|\|\||->|[-+*/%^<>!(),\[\]])
    )""",
    re.VERBOSE,
)
_DOTTED = re.compile(r"[_$a-zA-Z][\w$]*(?:\.[\w$]+)+", re.ASCII)
_LEVELS = (("&&", "||"), ("<", "<=", ">", ">=", "==", "!="), ("+", "-"), ("*", "/", "%"))  # from loose to tight
_UNARY = ("-", "!")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}
_ELEMENTS: Mapping[str, Element] = {"LONG": "LONG", "DOUBLE": "DOUBLE", "STRING": "STRING"}
_BELOW_LONGS = "9223372036854775808"  # behind a minus it is the least long
USE_SQL_HINT = 'write the expression in SQL, with "language": "sql"'


class NotSupported(ValueError):
    """This part of Druid's language is not taken; the message says which, and what to do."""


@dataclass(frozen=True)
class Literal:
    value: int | float | str | Array | None  # None, an int, a float, a text or an array of these
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


@dataclass(frozen=True)
class Lambda:
    """A function that is an argument: its body sees ``names`` beside the fields."""

    names: tuple[str, ...]
    body: Node
    depth: int


Node = Literal | Field | Call | Lambda
Check = Callable[[str, tuple[Node, ...]], None]


def parse_druid(text: str, check: Check) -> Node:
    """The tree; ``check`` is asked about every call. Raises ``NotSupported``."""
    return _Reader(text, check).parse()


def fields_of(node: Node) -> tuple[str, ...]:
    """The fields that it reads, each once, in order."""
    return tuple(dict.fromkeys(_fields(node)))


def _fields(node: Node) -> Iterator[str]:
    if isinstance(node, Field):
        yield node.name
    elif isinstance(node, Lambda):
        yield from (name for name in _fields(node.body) if name not in node.names)
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from _fields(argument)


class _Reader:
    def __init__(self, text: str, check: Check) -> None:
        self._tokens = [*_tokens(text), ("end", "")]
        self._place = 0
        self._nested = 0
        self._check = check

    def parse(self) -> Node:
        node = self._level(0)
        if self._kind != "end":
            raise NotSupported(f"{self._word!r} is not expected at this place: {USE_SQL_HINT}")
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
            return self._power()
        node = self._level(level + 1)
        while self._kind == "sign" and self._word in _LEVELS[level]:
            sign = self._next()[1]
            node = self._called(sign, (node, self._level(level + 1)))
        return node

    def _power(self) -> Node:
        """Read from the right; a sign before its left side belongs to that."""
        node = self._unary()
        if self._word == "^" and self._kind == "sign":
            self._next()
            node = self._called("^", (node, self._deeper(self._power)))
        return node

    def _unary(self) -> Node:
        if self._kind == "sign" and self._word in _UNARY:
            sign = self._next()[1]
            if sign == "-" and self._word == _BELOW_LONGS:
                self._next()
                return Literal(-int(_BELOW_LONGS))
            return self._called(sign, (self._deeper(self._unary),))
        return self._operand()

    def _deeper(self, read: Callable[[], Node]) -> Node:
        self._nested += 1
        if self._nested > MAX_DEPTH:
            raise NotSupported(f"it is nested more than {MAX_DEPTH} levels deep")
        node = read()
        self._nested -= 1
        return node

    def _operand(self) -> Node:
        kind, word = self._next()
        if kind in _LITERALS:
            return Literal(_LITERALS[kind](word))
        if kind == "quoted":
            return Field(_unescape(word))
        if kind == "name":
            return self._named(word)
        if word == "[":
            return Literal(self._array(None))
        if word == "<":
            return Literal(self._typed_array())
        if word == "(":
            node = self._deeper(lambda: self._level(0))
            self._expect(")")
            return node
        raise NotSupported(f"an operand is missing before {word!r}" if word else "the expression ends too early")

    def _named(self, word: str) -> Node:
        if self._word == "(":
            return self._called(word.lower(), self._arguments())
        if word.upper() == "ARRAY" and self._word == "<":
            self._next()
            return Literal(self._typed_array())
        return Literal(None) if word == "null" else Field(word)

    def _typed_array(self) -> Array:
        name = self._next()[1].upper()
        if name not in _ELEMENTS:
            raise NotSupported(f"an array is of LONG, DOUBLE or STRING, not {name!r}")
        self._expect(">")
        self._expect("[")
        return self._array(_ELEMENTS[name])

    def _array(self, element: Element | None) -> Array:
        values: list[int | float | str | None] = []
        while self._word != "]":
            if values:
                self._expect(",")
            values.append(self._element())
        self._next()
        kinds = {type(v) for v in values if v is not None}
        if str in kinds and len(kinds) > 1:
            raise NotSupported("an array literal has texts or numbers, not both")
        array = array_of(values)
        if element is not None and element != array.element:
            array = Array(element, tuple(cast(v, element) for v in array.values))
        return array

    def _element(self) -> int | float | str | None:
        negative = self._word == "-" and self._kind == "sign"
        if negative:
            self._next()
        kind, word = self._next()
        if kind == "name" and word == "null" and not negative:
            return None
        if kind not in _LITERALS or (negative and kind == "text"):
            raise NotSupported(f"{word!r} is not expected in an array literal: array(…) takes expressions")
        value = _LITERALS[kind](word)
        return -value if negative and not isinstance(value, str) else value

    def _lambda(self) -> Lambda | None:
        """What comes next, if it is one."""
        place, names = self._place, []
        if self._kind == "name":
            names = [self._next()[1]]
        elif self._word == "(" and self._kind == "sign":
            self._next()
            while self._kind == "name":
                names.append(self._next()[1])
                if self._word != ",":
                    break
                self._next()
            names = names if self._word == ")" else []
            self._place += bool(names)
        if not names or self._word != "->":
            self._place = place
            return None
        self._next()
        body = self._deeper(lambda: self._level(0))
        return Lambda(tuple(names), body, body.depth + 1)

    def _arguments(self) -> tuple[Node, ...]:
        self._next()
        arguments: list[Node] = []
        while self._word != ")":
            if arguments:
                self._expect(",")
            arguments.append(self._lambda() or self._deeper(lambda: self._level(0)))
        self._next()
        return tuple(arguments)

    def _expect(self, sign: str) -> None:
        if self._next()[1] != sign:
            raise NotSupported(f"{sign!r} is missing: {USE_SQL_HINT}")

    def _called(self, name: str, arguments: tuple[Node, ...]) -> Call:
        self._check(name, arguments)
        depth = 1 + max((a.depth for a in arguments), default=0)
        if depth > MAX_DEPTH:
            raise NotSupported(f"it is nested more than {MAX_DEPTH} levels deep; each sign in a row counts as a level")
        return Call(name, arguments, depth)


def unsupported_call(name: str) -> NotSupported:
    """The refusal of an operator or function by its name."""
    noun = "operator" if not name[:1].isalpha() else "function"
    return NotSupported(f"Druid's {noun} {name!r} is not supported: {USE_SQL_HINT}")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    end = len(text.rstrip(" \t\r\n"))
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise NotSupported(_syntax_error(text[position:].lstrip()))
        yield match.lastgroup, match[match.lastgroup]
        position = match.end()


def _syntax_error(rest: str) -> str:
    if rest[0] in "'\"":
        text = "a text or name has no closing quote, or has a \\ before a letter that cannot have one"
        return f"{text}: {USE_SQL_HINT}"
    dotted = _DOTTED.match(rest)
    if dotted:
        text = f"{dotted[0]!r} is not a name in Druid's expression language"
        return f'{text}: write "{dotted[0]}" in quotes, or {USE_SQL_HINT}'
    word = re.match(r"[\w.$]+|\S", rest)
    return f"{word[0] if word else rest[:1]!r} is not supported in Druid expressions: {USE_SQL_HINT}"


def _number(word: str) -> int | float:
    if word.isdecimal():
        if int(word) > _LONGEST_LONG:
            raise NotSupported(f"{word} is out of the range of a long")
        return int(word)
    number = float(word)
    if number == float("inf"):
        raise NotSupported(f"{word} is out of the range of a double")
    return number


def _unescape(word: str) -> str:
    text = _ESCAPE.sub(lambda m: chr(int(m[1][1:], 16)) if len(m[1]) > 1 else _ESCAPED.get(m[1], m[1]), word[1:-1])
    try:
        return from_units(to_units(text))  # what two escapes say may be one character
    except EvaluationFailed:
        raise NotSupported("a text has half of a surrogate pair") from None


_LITERALS: Mapping[str, Callable[[str], int | float | str]] = {"number": _number, "text": _unescape}
