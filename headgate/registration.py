"""Making the data sources known to a session, and reading what they say of themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headgate.publishes.source import PublishesDataSource
from headgate.sharegroup.source import ShareGroupDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery


def register(spark: SparkSession) -> None:
    """Once in each session; tables and views in SQL know them then, too."""
    spark.dataSource.register(ShareGroupDataSource)
    spark.dataSource.register(PublishesDataSource)


def metrics(query: StreamingQuery) -> list[dict[str, Any]]:
    """Of each source of this package, what the query's last progress says."""
    progress = query.lastProgress
    return metrics_in(progress) if progress is not None else []


def metrics_in(progress: StreamingQueryProgress) -> list[dict[str, Any]]:
    """Of each source of this package, what a progress says: Spark lets a Python source say it in ``latestOffset``."""
    latest = [source.get("latestOffset") for source in json.loads(progress.json)["sources"]]
    offsets = [json.loads(offset) if isinstance(offset, str) else offset for offset in latest]
    return [offset["metrics"] for offset in offsets if isinstance(offset, dict) and "metrics" in offset]
