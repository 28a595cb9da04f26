"""The ids of the columns that an indexer writes."""

from __future__ import annotations

from ingestion.client.base import ControlPlane
from ingestion.client.errors import Invalid, Unacceptable
from ingestion.segments.column_ids import ColumnIds
from ingestion.specs.messages.column_ids import ColumnsAnswer, ColumnsRequest
from ingestion.task.errors import Refused


def column_ids(client: ControlPlane) -> ColumnIds:
    """Asking raises what a publish does: ``Unreachable``; ``Unacceptable`` for a record's sake, else ``Refused``."""

    def ask(request: ColumnsRequest) -> ColumnsAnswer:
        try:
            return client.columns(request)
        except Unacceptable:
            raise
        except Invalid as error:
            raise Refused(f"New columns were refused: {error}") from error

    return ColumnIds(ask)
