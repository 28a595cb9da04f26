"""Fixtures of the tests of the Spark data source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.broker import Broker
from tests.support.spark_session import Desk, spark_session

Session = tuple[SparkSession, Path]  # with its folder


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Spark in a process of its own, once for a file's tests: it takes ten seconds to start."""
    folder = tmp_path_factory.mktemp("connector")
    with spark_session(folder) as spark:
        yield spark, folder


@pytest.fixture
def desk(broker: Broker, session: Session) -> Desk:
    return Desk(broker, *session)
