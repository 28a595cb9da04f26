"""The consumer's configuration out of ``kafka.*``: what Headgate's specs may set, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate.errors import OptionError
from headgate.sharegroup.options import Options
from ingestion.specs.kafka_properties import ALLOWED, keen, librdkafka_properties, missing

_STORES = {"ssl.truststore.location": "ssl.ca.location", "ssl.keystore.location": "ssl.keystore.location"}
_STORE_PASSWORDS = {"ssl.keystore.password": "ssl.keystore.password"}
RECORDS = 4_000  # a poll asks for: all that brokers lend of a partition, unless their operator allows more


def client_config(options: Options) -> dict[str, Any]:
    """For any client. Raises ``OptionError``, whose text holds no values."""
    properties = options.kafka
    if not properties.get("bootstrap.servers", "").strip():
        raise OptionError("option kafka.bootstrap.servers is missing")
    if unknown := sorted(properties.keys() - ALLOWED):
        raise OptionError(
            f"option kafka.{unknown[0]} is not one of those that may be set: {', '.join(sorted(ALLOWED))}"
        )
    if lacking := missing(properties):
        name, why = next(iter(lacking.items()))
        raise OptionError(f"option kafka.{name} is missing: {why}")
    try:
        config = {**keen(properties), **librdkafka_properties(_without_stores(properties)), **_stores(properties)}
    except ValueError as error:
        raise OptionError(f"a kafka.* option can't be used: {error}") from None
    config.pop("max.poll.records", None)
    return {"client.id": f"kafka-sharegroup-{options.group}", **config, "log_level": 0}


def consumer_config(options: Options) -> dict[str, Any]:
    """For a share consumer of the group."""
    return {
        "max.poll.records": int(options.kafka.get("max.poll.records", RECORDS)),
        **client_config(options),
        "group.id": options.group,
        "share.acknowledgement.mode": "explicit",
    }


def _without_stores(properties: Mapping[str, str]) -> dict[str, str]:
    return {n: v for n, v in properties.items() if n not in _STORES and n not in _STORE_PASSWORDS}


def _stores(properties: Mapping[str, str]) -> dict[str, str]:
    """Files with certificates, which must be on the driver's machine."""
    found = {}
    for name, to in _STORES.items():
        if name in properties:
            if not Path(properties[name]).is_file():
                raise OptionError(f"option kafka.{name} names no file on the driver's machine")
            found[to] = properties[name]
    return {**found, **{to: properties[n] for n, to in _STORE_PASSWORDS.items() if n in properties}}
