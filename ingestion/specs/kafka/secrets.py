"""A spec's secrets, apart from the spec: taken out before it is stored, masked in answers, put back for clients.

They are named by property where they are Kafka's, and by a path that begins with a slash where they are a schema
registry's. References to the environment are no secrets: they stay in the spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ingestion.specs.kafka.properties import CONNECTION_PREFIXES, SECRET
from ingestion.specs.kafka.providers import MASK
from ingestion.specs.kafka.registry_access import SECRET_CONFIG

Document = dict[str, Any]
_NESTED = ("avroBytesDecoder", "protoBytesDecoder", "valueFormat", "keyFormat")
_MAPS = ("config", "headers")


def split_secrets(document: Document) -> tuple[Document, dict[str, str]]:
    """A canonical spec without its secrets, and those by name."""
    hidden: dict[str, str] = {}

    def take(name: str, value: str) -> str | None:
        hidden[name] = value
        return None

    return _rewrite_secrets(document, take), hidden


def mask_secrets(document: Document) -> Document:
    """A canonical spec fit for an answer or a page. What names no reader, as a task about segments, holds none."""
    return document if "spec" not in document else _rewrite_secrets(document, lambda name, value: MASK)


def kafka_secrets(secrets: Mapping[str, str]) -> dict[str, str]:
    """Those that are Kafka properties."""
    return {name: value for name, value in secrets.items() if not name.startswith("/")}


def with_registry_secrets(
    document: Document, secrets: Mapping[str, str], resolve: Callable[[Document], Document]
) -> Document:
    """A stored spec with what its schema registries need, references resolved. Kafka's secrets stay apart."""

    def filled(decoder: Document, path: str) -> Document:
        maps = {name: dict(decoder.get(name, {})) for name in _MAPS}
        for name, values in maps.items():
            start = f"{path}/{name}/"
            values |= {key.removeprefix(start): value for key, value in secrets.items() if key.startswith(start)}
        return {**decoder, **{name: resolve(values) for name, values in maps.items()}}

    return _with_formats(document, filled)


def with_named_registries(document: Document, find_connection: Callable[[str], Document]) -> Document:
    """A stored spec with what its named schema registries are, in place of their names.

    ``found``: addresses, ``config`` and ``headers`` of the connection of a name.
    """

    def filled(decoder: Document, path: str) -> Document:
        if decoder.get("connection") is None:
            return decoder
        return {**{n: v for n, v in decoder.items() if n != "connection"}, **find_connection(decoder["connection"])}

    return _with_formats(document, filled)


def kept_secrets(before: Document, secrets: Mapping[str, str], after: Document) -> dict[str, str]:
    """Of an earlier version's secrets those that a new one may leave out: it speaks to the same, in the same way.

    With any of that changed, a secret that is kept could go to somebody else.
    """
    old, new = dict(_registries(before)), dict(_registries(after))
    same = _connection(before) == _connection(after)
    return {
        name: value
        for name, value in secrets.items()
        if (any(name.startswith(f"{p}/") and old[p] == new.get(p) for p in old) if name.startswith("/") else same)
    }


def _connection(document: Document) -> Document:
    properties = document["spec"]["ioConfig"]["consumerProperties"]
    return {name: value for name, value in properties.items() if name.startswith(CONNECTION_PREFIXES)}


def _rewrite_secrets(document: Document, change: Callable[[str, str], str | None]) -> Document:
    """The document with every secret as ``change`` has it; None leaves it out."""

    def rewritten(values: Document, is_secret: Callable[[str], bool], start: str) -> Document:
        named = {
            name: change(start + name, value) if isinstance(value, str) and is_secret(name) else value
            for name, value in values.items()
        }
        return {name: value for name, value in named.items() if value is not None}

    def rewrite_registry(decoder: Document, path: str) -> Document:
        config = rewritten(decoder.get("config", {}), SECRET_CONFIG.__contains__, f"{path}/config/")
        headers = rewritten(decoder.get("headers", {}), lambda name: True, f"{path}/headers/")
        return {**decoder, "config": config, "headers": headers}

    with_formats = _with_formats(document, rewrite_registry)
    io_config = with_formats["spec"]["ioConfig"]
    if "consumerProperties" not in io_config:  # of a batch task
        return with_formats
    properties = rewritten(io_config["consumerProperties"], SECRET.__contains__, "")
    return _with_io_config(with_formats, {**io_config, "consumerProperties": properties})


def _with_formats(document: Document, change: Callable[[Document, str], Document]) -> Document:
    """The document with every decoder that asks a schema registry as ``change`` makes it."""

    def walked(value: Document, path: str) -> Document:
        if value.get("type") == "schema_registry":
            return change(value, path)
        inner = {name: walked(value[name], f"{path}/{name}") for name in _NESTED if isinstance(value.get(name), dict)}
        return {**value, **inner}

    io_config = document["spec"]["ioConfig"]
    if "inputFormat" not in io_config:  # of a batch task that reads segments
        return document
    written = walked(io_config["inputFormat"], "/inputFormat")
    return _with_io_config(document, {**io_config, "inputFormat": written})


def _registries(document: Document) -> Iterator[tuple[str, Document]]:
    decoders: list[tuple[str, Document]] = []

    def note(decoder: Document, path: str) -> Document:
        decoders.append((path, decoder))
        return decoder

    _with_formats(document, note)
    yield from decoders


def _with_io_config(document: Document, io_config: Document) -> Document:
    return {**document, "spec": {**document["spec"], "ioConfig": io_config}}
