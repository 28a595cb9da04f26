"""The stack of a benchmark: its own, on free ports in a temporary folder, or with parts of a running one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.embedded.home import temporary_home
from controlplane.embedded.spark_classes import prepare_classes
from tests.support.house import House


def add_stack_options(parser: argparse.ArgumentParser) -> None:
    """Where Kafka and PostgreSQL are, when not its own."""
    parser.add_argument("--bootstrap", help="use this Kafka instead of an own one, for example 127.0.0.1:9092")
    parser.add_argument("--database", help="use this PostgreSQL instead of an own one: postgresql://…")


@contextmanager
def stack(options: argparse.Namespace) -> Iterator[House]:
    """All services, with the broker's default limits."""
    with temporary_home() as home:
        prepare_classes(home.log("spark-classes"))
        house = House(home, broker={}, bootstrap=options.bootstrap, database=options.database, with_proxy=False)
        try:
            yield house
        finally:
            house.close()
