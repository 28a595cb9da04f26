"""``sasl.jaas.config``, as far as it is a user name and a password, a client of a token endpoint, or Amazon MSK's.

Reads what Java's own reader takes: a login module's class, a flag, options, a semicolon; words, texts in single or
double quotes with escapes, comments. Messages never repeat what was written: it may be a part of the password.
"""

from __future__ import annotations

import re

from ingestion.specs.kafka import msk_login
from ingestion.specs.kafka.token_endpoint import CLIENT_ID, CLIENT_SECRET, EXTENSIONS, MECHANISM, SCOPE, extensions_of

_PACKAGE = "org.apache.kafka.common.security"
_MODULES = {
    f"{_PACKAGE}.plain.PlainLoginModule": "PLAIN",
    f"{_PACKAGE}.scram.ScramLoginModule": "SCRAM",
    f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule": MECHANISM,
    msk_login.MODULE: msk_login.MECHANISM,
}
# Seen in the wild, and by name in an attack; their names are safe to repeat.
_KNOWN = ("Krb5LoginModule", "JndiLoginModule", "LdapLoginModule")
_OF_CLIENT = {"clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET, "scope": SCOPE}
_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""\s+ | //[^\n\r]* | /\*.*?\*/
    | "(?P<double>(?:[^"\\\n\r]|\\[^\n\r])*)"
    | '(?P<single>(?:[^'\\\n\r]|\\[^\n\r])*)'
    | (?P<word>[A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9_$.\-\xa0-\U0010ffff]*)
    | (?P<sign>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
EXAMPLE = f'{_PACKAGE}.plain.PlainLoginModule required username="me" password="secret";'


def parse_login(text: str, mechanism: str = "") -> dict[str, str]:
    """The login as librdkafka's properties. ``mechanism``: what the module must fit; empty: not said.

    Raises ``ValueError``.
    """
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ("sign", ";"):
        raise ValueError(f"must be one login module and end with a semicolon, for example {EXAMPLE}")
    kind = _module_purpose(tokens[0], mechanism)
    if tokens[1][0] != "word" or tokens[1][1].lower() not in _FLAGS:
        raise ValueError(f"the login module must be followed by a flag: {', '.join(_FLAGS)}")
    options = _options(tokens[2:-1])
    if kind == MECHANISM:
        return _client_options(options)
    if kind == msk_login.MECHANISM:
        return _msk_options(options)
    unknown = set(options) - {"username", "password"}
    if unknown:
        raise ValueError("has options other than username and password, which are not supported")
    if set(options) != {"username", "password"}:
        raise ValueError("must have both options, username and password")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _client_options(options: dict[str, str]) -> dict[str, str]:
    """Of a token endpoint. The module may hold nothing at all: then the properties beside it do."""
    unknown = [n for n in options if n not in _OF_CLIENT and not n.startswith("extension_")]
    if unknown:
        raise ValueError(
            "has options other than clientId, clientSecret, scope and extension_*, which are not supported"
        )
    if ("clientId" in options) != ("clientSecret" in options):
        raise ValueError("must have both options, clientId and clientSecret, or neither")
    extensions = extensions_of(options)
    client = {property_name: options[name] for name, property_name in _OF_CLIENT.items() if name in options}
    return {**client, **({EXTENSIONS: extensions} if extensions else {})}


def _msk_options(options: dict[str, str]) -> dict[str, str]:
    """Nothing: its keys are properties beside it, as they are system properties beside Java's."""
    if set(options) - set(msk_login.OPTIONS_WITHOUT_EFFECT):
        raise ValueError(
            "has options that name a profile or a role, which are not supported: give the keys themselves, as "
            f"{msk_login.ACCESS_KEY} and {msk_login.SECRET_KEY}"
        )
    return {}


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(
                f"has an error at character {position + 1}: put values into double quotes, and a backslash before each "
                "quote or backslash in a value"
            )
        position = match.end()
        kind = match.lastgroup
        if kind in ("double", "single"):
            tokens.append(("text", _ESCAPE.sub(_unescape, match[kind])))
        elif kind is not None:
            tokens.append((kind, match[kind]))
    return tokens


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _LETTERS.get(escape, escape)


def _module_purpose(token: tuple[str, str], mechanism: str) -> str:
    """What it is for."""
    kind = _MODULES.get(token[1]) if token[0] == "word" else None
    if kind is None:
        module_name = next((name for name in _KNOWN if token[1].endswith(f".{name}")), "this login module")
        names = ", ".join(name.rpartition(".")[2] for name in _MODULES)
        raise ValueError(f"{module_name} is not allowed: use {names}. Others run code or fetch addresses")
    if mechanism and not mechanism.upper().startswith(kind):
        raise ValueError(f"the login module is for {kind}, but sasl.mechanism is {mechanism}")
    return kind


def _options(tokens: list[tuple[str, str]]) -> dict[str, str]:
    options: dict[str, str] = {}
    if len(tokens) % 3:
        raise ValueError('options must be written as name="value", and be followed by one semicolon')
    for name, sign, value in zip(tokens[::3], tokens[1::3], tokens[2::3], strict=True):
        if name[0] != "word" or sign != ("sign", "=") or value[0] == "sign":
            raise ValueError('options must be written as name="value", and be followed by one semicolon')
        if name[1] in options:
            raise ValueError("has an option twice")
        options[name[1]] = value[1]
    return options
