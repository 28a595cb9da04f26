"""The columns of one datasource in memory, their ids handed out as the control plane does."""

from __future__ import annotations

import threading

from ingestion.client.errors import Unacceptable
from ingestion.specs.messages.column_ids import TIME_ID, ColumnId, ColumnsAnswer, ColumnsRequest, assign_ids


class MemoryColumns:
    """``asked`` keeps every request, in order."""

    def __init__(self) -> None:
        self.asked: list[ColumnsRequest] = []
        self._ids: dict[tuple[str, str], ColumnId] = {}
        self._lock = threading.Lock()

    def ids(self, request: ColumnsRequest) -> ColumnsAnswer:
        """Those of these columns; new ones get theirs now. Raises ``Unacceptable`` for too many at once."""
        if request.excess:
            raise Unacceptable(request.excess)
        with self._lock:
            self.asked.append(request)
            new = {(c.name, c.type): c for c in request.columns if (c.name, c.type) not in self._ids}
            last = max((column_id.last for column_id in self._ids.values()), default=TIME_ID)
            self._ids.update(zip(new, assign_ids(new.values(), last), strict=True))
            return ColumnsAnswer(ids=[self._ids[c.name, c.type] for c in request.columns])
