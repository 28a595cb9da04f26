"""One Spark cluster for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controlplane.embedded.home import temporary_home
from controlplane.embedded.spark_classes import prepare_classes
from tests.support.s3 import CREDENTIALS
from tests.support.spark_cluster import SparkCluster, spark_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[SparkCluster]:
    """It has two workers; a test resizes it before it uses it."""
    hosts = ["127.0.0.2", "127.0.0.3"]
    with temporary_home() as home:
        prepare_classes(home.log("spark-classes"))
        with spark_cluster(home.path / "spark", hosts, CREDENTIALS) as cluster:
            yield cluster
