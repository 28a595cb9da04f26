"""sqlglot's parser of Druid's SQL. A function stays as it is written: no other dialect's meaning is guessed."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.druid import Druid
from sqlglot.parsers.druid import DruidParser
from sqlglot.tokens import TokenType

from ingestion.decode.bounded_parser import Bounded, parse_bounded
from ingestion.query.druid.values import Refused, parameter_sql
from ingestion.query.statement import DEEPEST, MAX_STEPS, check_text, one_query
from ingestion.specs.messages.sql import SqlParameter

_OWN_SYNTAX = ("CAST", "CEIL", "EXTRACT", "FLOOR", "JSON_VALUE", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST")


class _Parser(Bounded, DruidParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNC_TOKENS: ClassVar[set[TokenType]] = DruidParser.FUNC_TOKENS | {TokenType.DIV}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser for name, parser in DruidParser.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX
    }


def parse(sql: str, parameters: list[SqlParameter]) -> exp.Expr:
    """The tree of one query, with the parameters in it. Raises ``Refused``."""
    check_text(sql)
    return one_query(
        lambda: parse_bounded(
            _with_parameters(sql, parameters), most_steps=MAX_STEPS, deepest=DEEPEST, parser=_Parser, dialect=Druid
        )
    )


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
