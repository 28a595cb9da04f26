"""``format("headgate")`` as Spark sees it: offsets are numbers of publishes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headgate.errors import DataLoss, OptionError
from headgate.folders import open_folder
from headgate.publishes.client import ControlPlane
from headgate.publishes.columns import struct_of

NAME = "headgate"
BYTES_A_TASK = 64 * 1024**2
_OPTIONS = ("url", "token", "datasource", "startingPublish", "maxPublishesPerTrigger", "columns")
_NAMES = {name.lower() for name in _OPTIONS} | {"path"}


@dataclass(frozen=True)
class Options:
    """What a query asked for."""

    site: ControlPlane = field(repr=False)
    datasource: str
    starting: str
    max_publishes: int | None
    columns: tuple[str, ...]


def read_options(raw_options: Mapping[str, str]) -> Options:
    """Raises ``OptionError``."""
    options = {key.lower(): value for key, value in raw_options.items()}
    if unknown := sorted(options.keys() - _NAMES):
        raise OptionError(f"unknown option {', '.join(unknown)}; there are {', '.join(_OPTIONS)}")
    datasource = options.get("datasource") or options.get("path")
    if not datasource:
        raise OptionError("option datasource is missing")
    starting = options.get("startingpublish", "earliest").strip().lower()
    if starting not in ("earliest", "latest") and not starting.isdecimal():
        raise OptionError(f"option startingPublish is {starting!r}: write earliest, latest, or a publish's number")
    most = options.get("maxpublishespertrigger", "").strip()
    if most and (not most.isdecimal() or not int(most)):
        raise OptionError(f"option maxPublishesPerTrigger is {most!r}: write a whole number from 1")
    columns = tuple(c.strip() for c in options.get("columns", "").split(",") if c.strip())
    site = ControlPlane(options.get("url"), options.get("token"))
    return Options(site, datasource, starting, int(most) if most else None, columns)


class PublishesDataSource(DataSource):
    """See docs/reference/spark-connector.md for the options."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._read = read_options(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        struct = struct_of(self._read.site.datasource(self._read.datasource)["columns"])
        if not self._read.columns:
            return struct
        if missing := sorted(set(self._read.columns) - set(struct.names)):
            raise OptionError(f"{self._read.datasource} has no column {', '.join(missing)}")
        return StructType([struct[name] for name in self._read.columns])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return PublishesStreamReader(self._read, schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return PublishesBatchReader(self._read, schema)


class _FileReader:
    """What executors do: they get addresses and columns, and no token."""

    def __init__(self, options: Options | None, schema: StructType) -> None:
        self._options = options
        self.schema = schema

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_options": None}

    @property
    def options(self) -> Options:
        """Of the query, on the driver."""
        if self._options is None:
            raise RuntimeError("executors are not told the options")
        return self._options

    def plan(self, files: Sequence[Mapping[str, Any]]) -> list[InputPartition]:
        """Tasks of about as many bytes, in order."""
        tasks: list[list[str]] = []
        size = BYTES_A_TASK
        for file in files:
            if size >= BYTES_A_TASK:
                tasks.append([])
                size = 0
            tasks[-1].append(file["address"])
            size += file["size_bytes"]
        return [InputPartition(tuple(task)) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark asks for one where there is none
            return
        arrow_schema = to_arrow_schema(self.schema, timezone="UTC")
        for address in partition.value:
            folder, _, name = address.rpartition("/")
            with open_folder(folder).open(name) as opened, pq.ParquetFile(opened) as file:
                present = [n for n in arrow_schema.names if n in file.schema_arrow.names]
                for batch in file.iter_batches(columns=present):
                    yield _with_schema(batch, arrow_schema)


def _with_schema(batch: pa.RecordBatch, arrow_schema: pa.Schema) -> pa.RecordBatch:
    """With all columns: those that the file lacks are null, and an extension's values are their storage."""
    columns = []
    for arrow_field in arrow_schema:
        if arrow_field.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, arrow_field.type))
            continue
        column = batch[arrow_field.name]
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        columns.append(column.cast(arrow_field.type))
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema)


class PublishesStreamReader(_FileReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the number of the last publish that was taken."""

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self._until: int | None = None

    def initialOffset(self) -> dict[str, int]:
        starting = self.options.starting
        if starting.isdecimal():
            return {"publish": max(0, int(starting) - 1)}
        return {"publish": self._latest(0) if starting == "latest" else 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self.options.max_publishes) if self.options.max_publishes else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        latest = self._latest(start["publish"]) if self._until is None else self._until
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else latest
        return {"publish": max(start["publish"], min(latest, start["publish"] + most))}

    def reportLatestOffset(self) -> dict[str, int]:
        return {"publish": self._latest(0)}

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._latest(0)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        publishes = self.options.site.publishes_between(self.options.datasource, start["publish"], end["publish"])
        files: list[dict[str, Any]] = []
        for publish in publishes:
            if not publish["complete"]:
                raise DataLoss(
                    f"files of publish {publish['number']} of {self.options.datasource} were deleted since; begin at a "
                    "later one with startingPublish and another checkpoint"
                )
            files += publish["files"]
        return self.plan(files)

    def _latest(self, after: int) -> int:
        return int(self.options.site.publishes(self.options.datasource, after)["latest"])


class PublishesBatchReader(_FileReader, DataSourceReader):
    """All that the datasource holds now."""

    def partitions(self) -> Sequence[InputPartition]:
        return self.plan(list(self.options.site.files(self.options.datasource, {})))
