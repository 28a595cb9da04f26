"""A datasource's files as others read them: with full addresses, all as of one moment.

A moment is chosen before which every publish has come to its end, so that pages asked for one after the other show the
files of whole publishes, and the same ones, however long that takes. What is published meanwhile is not among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from controlplane.common.database import clock
from controlplane.common.errors import InvalidInput
from controlplane.datasources.masking import require_record_access
from controlplane.datasources.models import Datasource
from controlplane.segments.models import KilledSegment, Segment
from controlplane.segments.selectors.lists import list_segments
from controlplane.teams.models import User
from ingestion.specs.messages.deep_storage import local_folder

_CHUNK_SIZE = 1_000
SPARK_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
_IMPORTS = "from urllib.request import Request, urlopen"
# Whoever publishes, merges or marks takes a row's lock in one of these tables first, and its time after that, by the
# database's clock. Who only reads them holds a lock of another kind; so does a vacuum.
_WATERMARK = """
    SELECT least(statement_timestamp(), min(a.xact_start)) - interval '1 microsecond'
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.relation = ANY('{publishing_indexerfence, segments_interval, segments_segment}'::regclass[])
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.mode IN ('RowShareLock', 'RowExclusiveLock') AND l.pid <> pg_backend_pid()
"""


def publish_watermark() -> datetime:
    """A time up to which all publishes have come to their end: now, or when the first of those under way began."""
    with connection.cursor() as cursor:
        cursor.execute(_WATERMARK)
        [oldest] = cursor.fetchone()
    watermark: datetime = oldest
    return watermark


def manifest(
    user: User, datasource: Datasource, *, as_of: datetime, start: datetime | None = None, end: datetime | None = None
) -> QuerySet[Segment]:
    """Its segments that were in use at a ``publish_watermark`` and touch ``[start, end)``, newest interval first.

    Who reads a file reads all its columns: raises ``NotAllowed`` where some are masked for the user, and
    ``InvalidInput`` for a moment that is yet to come, and for one whose files are deleted in part.
    """
    require_record_access(user, datasource, "listing its files (they hold all columns in plain)")
    if as_of > clock():
        raise InvalidInput("as_of is in the future.")
    if start is not None and end is not None and start >= end:
        raise InvalidInput("The window is empty: 'from' must be before 'to'.")
    if KilledSegment.objects.filter(datasource=datasource, created_at__lte=as_of, unused_at__gt=as_of).exists():
        raise InvalidInput("Some files of that moment are deleted. Ask for the current segments.")
    segments = list_segments(datasource, interval_start=start, interval_end=end, as_of=as_of)
    return segments.select_related("datasource", "schema")


def address_chunks(
    user: User, datasource: Datasource, start: datetime | None = None, end: datetime | None = None
) -> Iterator[bytes]:
    """The address of each file, one a line, as of one moment, in chunks. Raises ``NotAllowed`` at once."""
    return _address_chunks(manifest(user, datasource, as_of=publish_watermark(), start=start, end=end))


def _address_chunks(files: QuerySet[Segment]) -> Iterator[bytes]:
    root = root_address()
    paths = files.values_list("path", flat=True)
    chunk: list[str] = []
    for path in paths.iterator(_CHUNK_SIZE):
        chunk.append(f"{root}/{path}\n")
        if len(chunk) == _CHUNK_SIZE:
            yield "".join(chunk).encode()
            chunk.clear()
    yield "".join(chunk).encode()


def root_address() -> str:
    """Deep storage's own address, without what only Headgate's clients need: ``file:///…``, ``s3://bucket/folder``."""
    location: str = settings.DEEP_STORAGE
    folder = local_folder(location)
    if folder is not None:  # not quoted: those who read Parquet take what follows ``file://`` for the path as it is
        return f"file://{folder.resolve()}"
    parts = urlsplit(location)
    return f"{parts.scheme.lower()}://{parts.netloc}{parts.path}".rstrip("/")


def open_snippets(team: str, datasource: str, site: str) -> dict[str, str]:
    """Python that opens a team's datasource, by the name of the tool; needs an API token in ``HEADGATE_TOKEN``.

    ``site``: the address of Headgate, without a slash at the end.
    """
    url = f"{site}/api/v1/datasources/{datasource}/manifest/addresses/"
    request = f'Request("{url}", headers={{"Authorization": "Bearer " + os.environ["HEADGATE_TOKEN"]}})'
    files = f"files = urlopen({request}).read().decode().splitlines()"
    catalog = f'load_catalog("headgate", type="rest", uri="{site}/iceberg", token=os.environ["HEADGATE_TOKEN"])'
    table = f'{catalog}.load_table(("{team}", "{datasource}"))'
    return {
        "PyIceberg": "import os, pyarrow; from pyiceberg.catalog import load_catalog; "
        f'pyarrow.unregister_extension_type("arrow.json"); rows = {table}.scan().to_arrow()',
        "DuckDB": f"import os, duckdb; {_IMPORTS}; {files}; rows = duckdb.read_parquet(files, union_by_name=True)",
        "pandas": f"import os, pandas; {_IMPORTS}; {files}; rows = pandas.concat(map(pandas.read_parquet, files))",
        "Spark": f'import os; {_IMPORTS}; {files}; rows = spark.read.option("mergeSchema", "true").parquet(*files)',
        "Iceberg in Spark 4.1": _spark_snippet(team, datasource, site),
    }


def _spark_snippet(team: str, datasource: str, site: str) -> str:
    catalog = "spark.sql.catalog.headgate"
    options = {
        "spark.jars.packages": f'"{SPARK_RUNTIME}"',
        catalog: '"org.apache.iceberg.spark.SparkCatalog"',
        f"{catalog}.type": '"rest"',
        f"{catalog}.uri": f'"{site}/iceberg"',
        f"{catalog}.rest.auth.type": '"oauth2"',
        f"{catalog}.token": 'os.environ["HEADGATE_TOKEN"]',
        f"{catalog}.token-refresh-enabled": '"false"',
        f"{catalog}.cache-enabled": '"false"',  # else a session that goes on asking never loads a table again
    }
    configured = "".join(f'.config("{name}", {value})' for name, value in options.items())
    return (
        "import os; from pyspark.sql import SparkSession; "
        f"spark = SparkSession.builder{configured}.getOrCreate(); "
        f'rows = spark.table("headgate.`{team}`.`{datasource}`")'
    )


def trino_properties(site: str) -> str:
    """A file of Trino for the catalog, whose name is that of the file; needs an API token in ``HEADGATE_TOKEN``."""
    catalog = "iceberg.rest-catalog"
    lines = [
        "connector.name=iceberg",
        "iceberg.catalog.type=rest",
        f"{catalog}.uri={site}/iceberg",
        f"{catalog}.security=OAUTH2",
        f"{catalog}.oauth2.token=${{ENV:HEADGATE_TOKEN}}",
        f"{catalog}.oauth2.token-refresh-enabled=false",
        f"{catalog}.case-insensitive-name-matching=true",
        f"{catalog}.view-endpoints-enabled=false",
    ]
    return "\n".join([*lines, "fs.native-s3.enabled=true"] if root_address().startswith("s3:") else lines)
