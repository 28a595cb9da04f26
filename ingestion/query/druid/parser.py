"""sqlglot's parser of Druid's SQL. A function stays as it is written: no other dialect's meaning is guessed."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.druid import Druid
from sqlglot.errors import SqlglotError
from sqlglot.parsers.druid import DruidParser
from sqlglot.tokens import TokenType

from ingestion.decode.bounded_parser import Bounded, TooDeep, TooManySteps, check_depth
from ingestion.query.druid.values import Refused, parameter_sql
from ingestion.query.statement import DEEPEST, MAX_STEPS
from ingestion.specs.messages.sql import MAX_STATEMENT, SqlParameter

_OWN_SYNTAX = ("CAST", "CEIL", "EXTRACT", "FLOOR", "JSON_VALUE", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST")


class _Parser(Bounded, DruidParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNC_TOKENS: ClassVar[set[TokenType]] = DruidParser.FUNC_TOKENS | {TokenType.DIV}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser for name, parser in DruidParser.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX
    }


def parse(sql: str, parameters: list[SqlParameter]) -> exp.Expr:
    """The tree of one query, with the parameters in it. Raises ``Refused``."""
    if len(sql) > MAX_STATEMENT:
        raise Refused(f"The statement has more than {MAX_STATEMENT:,} characters.")
    try:
        sql.encode()
        whole = _with_parameters(sql.strip().rstrip(";"), parameters)
        tokens = Druid().tokenize(whole)
        check_depth(tokens, whole, DEEPEST)
        trees = [tree for tree in _Parser(MAX_STEPS, Druid()).parse(tokens, whole) if tree is not None]
    except Refused:
        raise
    except (TooDeep, TooManySteps):
        raise Refused("The statement is too complex. Use fewer brackets.") from None
    except SqlglotError as error:
        raise Refused(f"The statement can't be read: {str(error).splitlines()[0]}") from None
    except Exception:  # sqlglot meets odd text with any error at all
        raise Refused("The statement can't be read.") from None
    if len(trees) != 1:
        raise Refused("Send one statement." if trees else "The statement is empty.")
    [tree] = trees
    if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)):
        raise Refused(f"{_verb(whole)} is not supported: only SELECT is, with WITH before it.")
    return tree


def _verb(sql: str) -> str:
    return " ".join(sql.split()[:1])[:40].upper()


def _with_parameters(sql: str, parameters: list[SqlParameter]) -> str:
    """The text with a literal for each question mark."""
    places = [token for token in Druid().tokenize(sql) if token.token_type is TokenType.PLACEHOLDER]
    if len(places) != len(parameters):
        raise Refused(f"The statement has {len(places)} parameters (?), and the request has {len(parameters)}.")
    parts, position = [], 0
    for token, parameter in zip(places, parameters, strict=True):
        parts += [sql[position : token.start], parameter_sql(parameter.type, parameter.value)]
        position = token.end + 1
    return "".join([*parts, sql[position:]])
