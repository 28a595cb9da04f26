"""``headgate.read``: a datasource's files of one moment through Spark's own Parquet reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError, OptionError
from headgate.publishes.client import ControlPlane
from headgate.publishes.columns import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_TIME = "__time"
_NO_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem not found"


def read(
    spark: SparkSession,
    datasource: str,
    interval: str | None = None,
    *,
    url: str | None = None,
    token: str | None = None,
) -> DataFrame:
    """Its rows, all as of one moment. ``interval``: ISO 8601, ``2026-11-01/2026-11-08``, half-open, in UTC.

    ``url`` and ``token`` are ``HEADGATE_URL`` and ``HEADGATE_TOKEN`` of the environment unless they are given. Raises
    ``HeadgateError``. The schema is given, and no footer is read for it; later changes are not seen.
    """
    site = ControlPlane(url, token)
    window = _window(interval)
    files = list(site.files(datasource, window))
    columns = site.datasource(datasource)["columns"]
    if not files:
        return spark.createDataFrame([], struct_of(columns))
    rows = _union(spark, _groups(files, {c["name"]: c["type"] for c in columns}), columns)
    if not window:
        return rows
    time = rows[_TIME]
    bounds = f"TIMESTAMP '{window['from']}'", f"TIMESTAMP '{window['to']}'"
    from pyspark.sql import functions as f  # not at the top: asks for a session's JVM

    return rows.where((time >= f.expr(bounds[0])) & (time < f.expr(bounds[1])))


def _window(interval: str | None) -> dict[str, str]:
    if interval is None:
        return {}
    start, slash, end = (part.strip() for part in interval.partition("/"))
    if not (start and slash and end) or "'" in interval:
        raise OptionError(f"the interval is {interval!r}: write start/end, such as 2026-11-01/2026-11-08")
    return {"from": _with_zone(start), "to": _with_zone(end)}


def _with_zone(time: str) -> str:
    text = time if "T" in time else f"{time}T00:00:00"
    return text if text.endswith("Z") or "+" in text else f"{text}Z"


def _groups(files: list[dict[str, Any]], types: Mapping[str, str]) -> dict[tuple[tuple[str, str], ...], list[str]]:
    """Addresses by the columns whose type in the file is another one than the datasource's."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for file in files:
        other = ((c["name"], c["type"]) for c in file["columns"] if types.get(c["name"], c["type"]) != c["type"])
        groups.setdefault(tuple(sorted(other)), []).append(file["address"])
    return groups


def _union(
    spark: SparkSession, groups: Mapping[tuple[tuple[str, str], ...], list[str]], columns: list[dict[str, Any]]
) -> DataFrame:
    target = struct_of(columns)
    parts = []
    for other, addresses in groups.items():
        types = dict(other)
        schema = struct_of({**c, "type": types.get(c["name"], c["type"])} for c in columns)
        part = open_files(spark, schema, addresses)
        parts.append(part.select(*(part[c.name].cast(c.dataType).alias(c.name) for c in target)) if other else part)
    union = parts[0]
    for part in parts[1:]:
        union = union.unionByName(part)
    return union


def open_files(spark: SparkSession, schema: StructType, addresses: Sequence[str]) -> DataFrame:
    """Files, of which no footer is read for their columns. Raises ``HeadgateError`` where Spark has no ``s3a``."""
    try:
        with _without_a_listing_job(spark, len(addresses)):
            return spark.read.schema(schema).parquet(*map(_spark_address, addresses))
    except Exception as error:
        if _NO_S3A not in str(error):
            raise
    raise HeadgateError(
        "the files are in S3, and this Spark has no s3a: start it with --packages org.apache.hadoop:hadoop-aws:3.5.0, "
        'or with the version of its Hadoop; or read format("headgate"), which needs no jar'
    )


def _spark_address(address: str) -> str:
    return f"s3a://{address.removeprefix('s3://')}" if address.startswith("s3://") else address


@contextmanager
def _without_a_listing_job(spark: SparkSession, files: int) -> Iterator[None]:
    """Past 32 paths Spark looks at them in a job of its own, which takes longer than to look at each."""
    before = spark.conf.get(_LISTING_THRESHOLD)
    spark.conf.set(_LISTING_THRESHOLD, str(max(files, int(before or 32))))
    try:
        yield
    finally:
        spark.conf.set(_LISTING_THRESHOLD, before or "32")
