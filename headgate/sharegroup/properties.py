"""The consumer's configuration out of ``kafka.*``: what Headgate's specs may set, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headgate.errors import OptionError
from headgate.sharegroup.options import Options
from ingestion.specs.kafka.key_stores import MAX_BYTES, with_stores
from ingestion.specs.kafka.properties import ALLOWED, librdkafka_properties, missing, quick_to_reconnect

_OF_THE_CONSUMER = ("group.id", "max.poll.records")


def client_config(options: Options) -> dict[str, Any]:
    """For a client that joins no group. Raises ``OptionError``, whose text holds no values."""
    config = consumer_config(options)
    return {name: value for name, value in config.items() if name not in _OF_THE_CONSUMER}


def consumer_config(options: Options) -> dict[str, Any]:
    """For a consumer of the share group. Raises ``OptionError``, as above."""
    properties = options.kafka
    if not properties.get("bootstrap.servers", "").strip():
        raise OptionError("option kafka.bootstrap.servers is missing")
    if unknown := sorted(properties.keys() - ALLOWED):
        raise OptionError(
            f"option kafka.{unknown[0]} is not one of those that may be set: {', '.join(sorted(ALLOWED))}"
        )
    if absent := missing(properties):
        name, why = next(iter(absent.items()))
        raise OptionError(f"option kafka.{name} is missing: {why}")
    try:
        config = {**quick_to_reconnect(properties), **librdkafka_properties(with_stores(properties, _read))}
    except ValueError as error:
        raise OptionError(f"a kafka.* option can't be used: {error}") from None
    return {"client.id": f"kafka-sharegroup-{options.group}", **config, "log_level": 0, "group.id": options.group}


def _read(name: str, path: str) -> bytes:
    """A file with keys or certificates, which must be on the driver's machine."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        raise OptionError(f"option kafka.{name} names no file that can be read on the driver's machine") from None
    if len(data) > MAX_BYTES:
        raise OptionError(f"option kafka.{name} names a file that is larger than {MAX_BYTES} bytes")
    return data
