"""SQL as sqlglot's trees, within bounds: for expressions of a spec, and for users' statements."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokens import Token, TokenType

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}


class TooDeep(ValueError):
    """Brackets are nested too deep."""


class TooManySteps(ValueError):
    """The parser would try the text in too many ways: 30 times ``date(`` in itself takes it hours."""


class Bounded:
    """A parser of sqlglot's with this before it gives up after ``most_steps``."""

    def __init__(self, most_steps: int, dialect: Dialect) -> None:
        super().__init__(dialect=dialect)  # type: ignore[call-arg]  # that of sqlglot's parser
        self._steps_left = most_steps

    def _advance(self, times: int = 1) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise TooManySteps
        super()._advance(times)  # type: ignore[misc]  # the same parser's


class _Parser(Bounded, DuckDBParser):
    pass


def parse_bounded(
    text: str,
    *,
    most_steps: int,
    deepest: int,
    parser: type[Bounded] = _Parser,
    dialect: type[Dialect] = DuckDB,
) -> list[exp.Expr | None]:
    """A tree for each statement, None for an empty one.

    Raises ``TooDeep`` and ``TooManySteps``; on odd text, any error at all.
    """
    tokens = dialect().tokenize(text)
    check_depth(tokens, text, deepest)
    found: list[exp.Expr | None] = parser(most_steps, dialect()).parse(tokens, text)  # type: ignore[attr-defined]
    return found


def check_depth(tokens: Sequence[Token], text: str, deepest: int) -> None:
    """Raises ``TooDeep``."""
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > deepest:
            raise TooDeep(text)
