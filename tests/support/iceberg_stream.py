"""A datasource with real files and real publishes, for readers of the Iceberg catalog."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from controlplane.datasources.models import Datasource
from controlplane.publishing.publish import publish
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.replace import ReplaceTarget, replace
from controlplane.segments.columns import assign_column_ids
from controlplane.segments.models import Segment
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.local import LocalStorage
from ingestion.specs.messages.compaction import ReplaceRequest
from ingestion.specs.messages.protocol import SegmentFile
from tests.support.desk import JUNE_MS, Desk, schema_of
from tests.support.django_cast import Cast
from tests.support.publishes import TASK, make_source, request, start

JUNE = datetime.fromtimestamp(JUNE_MS / 1000, UTC)
DAY = timedelta(days=1)


class Stream:
    """An indexer of the datasource ``d`` of team alpha, with its files."""

    def __init__(self, place: Path, cast: Cast) -> None:
        make_receipt_partitions()
        self._place = place
        source = make_source("d")
        Datasource.objects.filter(pk=source.datasource_id).update(team=cast.alpha)
        self.datasource = Datasource.objects.get(pk=source.datasource_id)
        self._epoch = start(source)
        self._desks = count()
        self.deep = place / "deep"
        self._offset = 0

    def write(self, rows: pa.Table) -> list[SegmentFile]:
        desk = Desk(self._place / str(next(self._desks)), schema_of())
        desk.offset, desk.deep = self._offset, self.deep
        desk.storage = LocalStorage(self.deep, fsync=False)
        desk.ids = ColumnIds(lambda asked: assign_column_ids(self.datasource.pk, asked))
        desk.add(rows)
        self._offset = desk.offset
        files = desk.write()
        desk.index.close()
        return files

    def publish(self, rows: pa.Table) -> None:
        publish(task_id=TASK, number=0, request=request(self._epoch, segments=self.write(rows)))

    def merge(self, rows: pa.Table) -> None:
        """Replace all segments of the first day by one with these rows."""
        segments = Segment.objects.filter(datasource=self.datasource, interval_start=JUNE, used=True)
        [file] = self.write(rows)
        read = {s.pk: s.rows for s in segments}
        asked = ReplaceRequest(replace_id=uuid.uuid4(), attempt=1, read=read, segments=[file])
        replace(ReplaceTarget(self.datasource, JUNE, JUNE + DAY, "compact_1", False), asked)

    def rows(self) -> list[dict[str, Any]]:
        """Those of the used segments' files."""
        paths = Segment.objects.filter(datasource=self.datasource, used=True).values_list("path", flat=True)
        return [row for path in paths for row in pq.read_table(self.deep / path).to_pylist()]
