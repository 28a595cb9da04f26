"""What a spec gives a schema registry's client beside the addresses: a login, and headers of its own.

Source: Druid's ``schema_registry`` decoder, whose ``config`` goes to Confluent's client. Every header is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator

from ingestion.specs.kafka.providers import PROVIDER, Value, parse_secret, provider_entries
from ingestion.specs.limits import MAX_HEADERS

# Name → the values it may have; None: any text.
CONFIG: dict[str, str | None] = {
    "basic.auth.credentials.source": "USER_INFO",
    "basic.auth.user.info": None,
    "bearer.auth.credentials.source": "STATIC_TOKEN",
    "bearer.auth.token": None,
}
SECRET_CONFIG = frozenset(name for name, value in CONFIG.items() if value is None)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_TEXT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]{0,8190}[\x21-\x7e])?")
# These say how the message itself is sent, and to whom.
_RESERVED = ("accept", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "upgrade")
_RESERVED_PREFIX = ("proxy-", "transfer-", "content-")


def _read_entries(written: Any, prefix: str = "") -> Any:
    """Texts and references: Druid's providers taken apart, the longer names of Confluent's configuration cut."""
    if not isinstance(written, dict):
        return written
    properties: dict[str, Value] = {}
    for name, raw in _entries(written):
        short = name.removeprefix(prefix)
        if short in properties:
            raise ValueError(f"{short!r} is given twice")
        properties[short] = _value(short, raw)
    return properties


def _entries(written: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, raw in written.items():
        if name == PROVIDER:
            yield from provider_entries(raw)[1].items()
        else:
            yield name, raw


def _value(name: str, raw: Any) -> Value:
    try:
        return parse_secret(raw)
    except ValueError as error:
        raise ValueError(f"{name!r} {error}") from None


def _config(written: Any) -> Any:
    config = _read_entries(written, "schema.registry.")
    for name, value in config.items() if isinstance(config, dict) else ():
        if name not in CONFIG:
            raise ValueError(f"{name[:200]!r} is not supported: only {', '.join(sorted(CONFIG))} are")
        required = CONFIG[name]
        if required is not None and value != required:
            raise ValueError(f"{name!r} must be {required}")
        if name == "basic.auth.user.info" and isinstance(value, str) and ":" not in value:
            raise ValueError(f"{name!r} must be user:password")
    return config


def _headers(written: Any) -> Any:
    headers = _read_entries(written)
    if isinstance(headers, dict) and len(headers) > MAX_HEADERS:
        raise ValueError(f"there are {len(headers)} headers; {MAX_HEADERS} at most")
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if _HEADER.fullmatch(name) is None:
            raise ValueError(f"{name[:100]!r} is not a header name")
        if name.lower() in _RESERVED or name.lower().startswith(_RESERVED_PREFIX):
            raise ValueError(f"the header {name!r} can't be set: the client sets it")
        if isinstance(value, str) and _HEADER_TEXT.fullmatch(value) is None:
            raise ValueError(f"the value of {name!r} must be visible ASCII, in one line")
    return headers


RegistryConfig = Annotated[dict[str, Value], BeforeValidator(_config)]
RegistryHeaders = Annotated[dict[str, Value], BeforeValidator(_headers)]
