"""``kafka-sharegroup`` as Spark sees it."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headgate.folders import open_folder
from headgate.sharegroup.columns import DDL, HEADERS_DDL
from headgate.sharegroup.options import Options, read_options
from headgate.sharegroup.slices import Slice, slices

NAME = "kafka-sharegroup"


class ShareGroupDataSource(DataSource):
    """See docs/reference/spark-connector.md for the options."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._read = read_options(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return DDL + (HEADERS_DDL if self._read.with_headers else "")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ShareGroupStreamReader(self._read, schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return ShareGroupBatchReader(self._read, schema)


class _Slices(InputPartition):
    """Rows of some files."""

    def __init__(self, task_slices: Sequence[Slice]) -> None:
        super().__init__(tuple(task_slices))


class _FileReader:
    """What executors do: they get the location and the columns, and nothing of the login."""

    def __init__(self, location: str, schema: StructType) -> None:
        self.location = location
        self.schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark asks for one where there is none
            return
        folder = open_folder(self.location)
        columns = to_arrow_schema(self.schema, timezone="UTC")
        for part in partition.value:
            with folder.open(f"files/{part.name}") as file:
                batch = pa.ipc.open_file(file).get_batch(0)
            rows = batch.slice(part.first, part.end - part.first)
            yield pa.RecordBatch.from_arrays(rows.columns, schema=columns)


def _require_options(options: Options | None) -> Options:
    if options is None:
        raise RuntimeError("executors are not told the options")
    return options


class ShareGroupStreamReader(_FileReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in the source process; copies of it without a session go to the executors."""

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options.location, schema)
        self._options: Options | None = options
        self._session: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"location": self.location, "schema": self.schema, "_options": None, "_session": None}

    def initialOffset(self) -> dict[str, Any]:
        session = self._opened()
        return self._offset(session.ledger.done)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        session = self._opened()
        session.check_store(start["store"])
        return self._offset(session.latest(start["files"], limit.max_rows if isinstance(limit, ReadMaxRows) else None))

    def getDefaultReadLimit(self) -> ReadLimit:
        most = _require_options(self._options).max_records
        return ReadMaxRows(most) if most else ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any]:
        session = self._opened()
        return {**self._offset(session.ledger.ready), "metrics": session.metrics()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        session = self._opened()
        session.check_store(end["store"])
        files = session.files(start["files"], end["files"])
        return [_Slices(task_slices) for task_slices in slices(files, _require_options(self._options).tasks)]

    def commit(self, end: dict[str, Any]) -> None:
        self._opened().commit(end["files"])

    def prepareForTriggerAvailableNow(self) -> None:
        self._opened().end_at_current_offsets()

    def stop(self) -> None:
        if self._session is not None:
            self._session.close()

    def _offset(self, number: int) -> dict[str, Any]:
        return {"store": self._session.ledger.store_id, "files": number}

    def _opened(self) -> Any:
        """The session, begun at the first question: Spark makes readers that it asks nothing."""
        if self._session is None:
            from headgate.sharegroup.session import Session  # not at the top: executors need no client of Kafka

            self._session = Session(_require_options(self._options))
        return self._session


class ShareGroupBatchReader(_FileReader, DataSourceReader):
    """What there is now. Rows stay in the buffer location: a later read gets them again, and what came since."""

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options.location, schema)
        self._options: Options | None = options

    def __getstate__(self) -> dict[str, Any]:
        return {"location": self.location, "schema": self.schema, "_options": None}

    def partitions(self) -> Sequence[InputPartition]:
        from headgate.sharegroup.session import Session  # not at the top: executors need no client of Kafka

        options = _require_options(self._options)
        session = Session(options)
        try:
            session.end_at_current_offsets()
            session.await_end(lambda: session.ledger.bytes_from(0) >= options.max_bytes)
        finally:
            session.close()
        all_slices = slices(session.ledger.between(0, session.ledger.ready), options.tasks)
        return [_Slices(task_slices) for task_slices in all_slices]
