"""The part of jq that ``flattenSpec`` takes, from a text to a tree: as jackson-jq 0.0.10 reads it, which Druid has.

Paths, pipes, commas, ``//``, operators, arrays, objects, ``if`` and functions are read. Variables, ``reduce``, ``def``,
assignments, formats and regular expressions are refused by name: what a record may cost has to be bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

MAX_JQ_DEPTH = 40
# By how many arguments they have.
_LISTED = (
    """length keys keys_unsorted values nulls numbers strings booleans arrays objects scalars iterables add any all min
    max sort unique reverse flatten floor sqrt tostring tonumber tojson fromjson type not empty first last to_entries
    from_entries ascii_downcase ascii_upcase recurse explode utf8bytelength transpose""",
    """map select has contains inside join split ltrimstr rtrimstr startswith endswith min_by max_by sort_by group_by
    unique_by any all flatten with_entries first last range nth index rindex indices""",
    "any all range limit nth",
)
FUNCTIONS = frozenset((name, count) for count, names in enumerate(_LISTED) for name in re.findall(r"\w+", names))
_NAMES = sorted({name for name, _ in FUNCTIONS})
_BLANKS = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"(?:(?:0|[1-9]\d{0,18})(?:\.\d{1,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?(?![\w.])")
_PIECE = re.compile(r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_STRING = re.compile(f'"({_PIECE.pattern})"')
_DOT_NAME = re.compile(r'\.(?=[A-Za-z_"])')
_EVERY = re.compile(r'\.\.(?![.\w\["?])')
_MAY_FAIL = re.compile(r"\?(?!//)")
_SLICE = re.compile(r"\[(-?\d{1,9})?:(-?\d{1,9})?\]")
_SIGN = re.compile(r"\?//|\|=|[-+*/%]=|//=?|==|!=|<=|>=|[-+*/%<>|,=]|(?:and|or|as)(?!\w)")
_LEVELS = (("//",), ("or",), ("and",), ("==", "!=", "<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
_WORDS = ("reduce", "foreach", "def", "label", "import", "include", "catch", "as")
_ENDS = ("then", "elif", "else", "end", "and", "or", "__loc__")
_INDEX_ERROR = "slices have whole numbers, such as [1:] or [0:2]"

Kind = Literal[
    "this", "every", "literal", "text", "array", "object", "steps", "name", "index", "slice", "values", "pipe", "comma",
    "operator", "minus", "if", "try", "call",
]  # fmt: skip


@dataclass(frozen=True)
class Node:
    """One part of a program.

    ``steps``: a start and what follows it, each a ``name``, ``index``, ``slice`` or ``values``, or a ``try`` of one.
    ``object``: keys and values in turn. ``text``: the parts of a text with holes. ``if``: condition, then, else.
    """

    kind: Kind
    value: Any = None  # a name, an operator's sign, a literal, or a slice's ends
    parts: tuple[Node, ...] = ()
    depth: int = 1


def parse_jq(text: str) -> Node:
    """Read a program. Raises ``ValueError`` with what is wrong and where."""
    return _Parser(text).parse()


def _node(kind: Kind, value: Any = None, *parts: Node) -> Node:
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > MAX_JQ_DEPTH:
        raise ValueError(f"the jq program is nested more than {MAX_JQ_DEPTH} deep")
    return Node(kind, value, parts, depth)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._inside = 0
        self._skip()

    def parse(self) -> Node:
        program = self._pipe()
        return program if self._place == len(self._text) else self._refuse()

    def _refuse(self, why: str = "") -> NoReturn:
        rest = self._text[self._place :][:40]
        name = _NAME.match(rest)
        if name and name[0] in _WORDS:
            why = f"{name[0]} is not supported"
        elif rest[:1] in ("$", "@") or self._sign()[-1:] == "=":
            why = "variables, formats and assignments are not supported"
        raise ValueError(f"the jq program {self._text!r} has an error at {rest!r}{why and ': ' + why}")

    def _skip(self) -> None:
        self._place = _BLANKS.match(self._text, self._place).end()  # type: ignore[union-attr] # it always matches

    def _matches(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._place)
        self._place = match.end() if match else self._place
        return match

    def _accepts(self, sign: str) -> bool:
        """Whether this text comes next; if so, it is consumed."""
        if not self._text.startswith(sign, self._place):
            return False
        self._place += len(sign)
        self._skip()
        return True

    def _expect(self, sign: str) -> None:
        if not self._accepts(sign):
            self._refuse(f"{sign!r} is missing")

    def _closes(self, sign: str) -> None:
        """This text comes next. The text after it may belong to it."""
        if not self._text.startswith(sign, self._place):
            self._refuse(f"{sign!r} is missing")
        self._place += len(sign)

    def _word(self, word: str) -> bool:
        name = _NAME.match(self._text, self._place)
        return name is not None and name[0] == word and self._accepts(word)

    def _pipe(self, commas: bool = True) -> Node:
        self._inside += 1
        if self._inside > MAX_JQ_DEPTH:
            self._refuse(f"it is nested more than {MAX_JQ_DEPTH} deep")
        parts = [self._comma() if commas else self._level(0)]
        while self._sign() == "|" and self._accepts("|"):
            parts.append(self._comma() if commas else self._level(0))
        self._inside -= 1
        return parts[0] if len(parts) == 1 else _node("pipe", None, *parts)

    def _sign(self) -> str:
        match = _SIGN.match(self._text, self._place)
        return match[0] if match else ""

    def _comma(self) -> Node:
        parts = [self._level(0)]
        while self._sign() == "," and self._accepts(","):
            parts.append(self._level(0))
        return parts[0] if len(parts) == 1 else _node("comma", None, *parts)

    def _level(self, level: int) -> Node:
        """What the operators of this level and of tighter ones hold together."""
        if level == len(_LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while (sign := self._sign()) in _LEVELS[level]:
            self._accepts(sign)
            # "//" goes together from the right, all others from the left.
            right = self._level(level if sign == "//" else level + 1)
            left = _node("operator", sign, left, right)
        return left

    def _unary(self) -> Node:
        signs = 0
        while self._accepts("-"):
            signs += 1
        operand = _node("try", None, self._postfix()) if self._word("try") else self._postfix()
        self._skip()
        for _ in range(signs):
            operand = _node("minus", None, operand)
        return operand

    def _postfix(self) -> Node:
        grouped = self._text.startswith("(", self._place)
        start = self._start()
        steps = [self._tried(start) if grouped else start]
        while (step := self._step()) is not None:
            steps.append(self._tried(step))
        return steps[0] if len(steps) == 1 else _node("steps", None, *steps)

    def _tried(self, node: Node) -> Node:
        return _node("try", None, node) if self._matches(_MAY_FAIL) else node

    def _step(self) -> Node | None:
        if self._matches(_DOT_NAME):
            return self._named()
        if not self._text.startswith("[", self._place):
            return None
        if ends := self._matches(_SLICE):
            if ends[1] is None and ends[2] is None:
                self._refuse(_INDEX_ERROR)
            return _node("slice", tuple(None if end is None else int(end) for end in ends.groups()))
        self._accepts("[")
        step = _node("values") if self._text.startswith("]", self._place) else _node("index", None, self._pipe())
        if self._text.startswith(":", self._place):
            self._refuse(_INDEX_ERROR)
        self._closes("]")
        return step

    def _named(self) -> Node:
        if name := self._matches(_NAME):
            return _node("name", name[0])
        return _node("name", self._plain_text())

    def _plain_text(self) -> str:
        match = self._matches(_STRING)
        return _unescape(match[1]) if match else self._refuse("a text literal is missing")

    def _start(self) -> Node:
        """What a term begins with. A name behind a dot is its first step, and the dot belongs to it."""
        if self._text.startswith("..", self._place):
            return _node("every") if self._matches(_EVERY) else self._refuse()
        if number := self._matches(_NUMBER):
            return _node("literal", self._number(number[0]))
        if self._text.startswith(".", self._place):
            self._place += 0 if _DOT_NAME.match(self._text, self._place) else 1
            return _node("this")
        for sign, read in self._STARTS.items():
            if self._text.startswith(sign, self._place):
                return read(self)
        name = self._matches(_NAME)
        return self._called(name[0]) if name else self._refuse()

    def _number(self, text: str) -> int | float:
        number: int | float = float(text) if re.search("[.eE]", text) else int(text)
        return number if isinstance(number, float) or number < 2**63 else self._refuse("the number is too large")

    def _texts(self) -> Node:
        """A text, perhaps with holes."""
        if _STRING.match(self._text, self._place):
            return _node("literal", self._plain_text())
        self._place += 1
        parts = [self._piece()]
        while not self._text.startswith('"', self._place):
            if not self._accepts("\\("):
                self._refuse()
            parts.append(self._pipe())
            self._closes(")")
            parts.append(self._piece())
        self._place += 1
        return _node("text", None, *parts)

    def _piece(self) -> Node:
        match = self._matches(_PIECE)
        return _node("literal", _unescape(match[0] if match else ""))

    def _group(self) -> Node:
        self._accepts("(")
        inner = self._pipe()
        self._closes(")")
        return inner

    def _array(self) -> Node:
        self._accepts("[")
        inner = () if self._text.startswith("]", self._place) else (self._pipe(),)
        self._closes("]")
        return _node("array", None, *inner)

    def _object(self) -> Node:
        self._accepts("{")
        parts: list[Node] = []
        while not self._text.startswith("}", self._place):
            if parts:
                self._expect(",")
            parts += self._member()
        self._place += 1
        return _node("object", None, *parts)

    def _member(self) -> tuple[Node, Node]:
        if self._text.startswith("(", self._place):
            key = self._group()
            self._skip()
            self._expect(":")
            return key, self._pipe(commas=False)
        name = self._matches(_NAME)
        text = name[0] if name else self._plain_text()
        self._skip()
        if self._accepts(":"):
            return _node("literal", text), self._pipe(commas=False)
        return _node("literal", text), _node("steps", None, _node("this"), _node("name", text))

    def _called(self, name: str) -> Node:
        constants = {"null": None, "true": True, "false": False}
        if name in constants:
            return _node("literal", constants[name])
        if name == "if":
            self._skip()
            return self._condition()
        if name in (*_WORDS, *_ENDS):
            self._place -= len(name)
            self._refuse()
        arguments: list[Node] = []
        if self._accepts("("):
            arguments.append(self._pipe())
            while self._accepts(";"):
                arguments.append(self._pipe())
            self._closes(")")
        if (name, len(arguments)) not in FUNCTIONS:
            raise ValueError(
                f"jq's {name} with {len(arguments)} arguments is not supported: use one of {', '.join(_NAMES)}"
            )
        return _node("call", name, *arguments)

    def _condition(self) -> Node:
        condition = self._pipe()
        if not self._word("then"):
            self._refuse("'then' is missing")
        then = self._pipe()
        if self._word("elif"):
            return _node("if", None, condition, then, self._condition())
        if not self._word("else"):
            self._refuse("'else' is missing")
        otherwise = self._pipe()
        name = self._matches(_NAME)
        if not name or name[0] != "end":
            self._refuse("'end' is missing")
        return _node("if", None, condition, then, otherwise)

    _STARTS: dict[str, Callable[[_Parser], Node]] = {'"': _texts, "(": _group, "[": _array, "{": _object}


def _unescape(text: str) -> str:
    unescaped = json.loads(f'"{text}"')
    if any("\ud800" <= letter <= "\udfff" for letter in unescaped):
        raise ValueError("a text of the jq program has half of a surrogate pair")
    return str(unescaped)
