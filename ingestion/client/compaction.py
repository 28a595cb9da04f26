"""What a compaction application says to the control plane, and hears."""

from __future__ import annotations

from ingestion.client.http import HttpClient
from ingestion.specs.messages.column_ids import ColumnsAnswer, ColumnsRequest
from ingestion.specs.messages.compaction import (
    DepartureRequest,
    Done,
    FailedRequest,
    ReplaceAnswer,
    ReplaceRequest,
    WorkAnswer,
    WorkRequest,
)


class CompactionControlPlane(HttpClient):
    """Thread-safe; keeps connections open. ``token`` is sent in a header and never logged."""

    def __init__(self, url: str, application: str, token: str) -> None:
        super().__init__(url, f"/internal/compaction/{application}", token)

    def work(self, request: WorkRequest) -> WorkAnswer:
        """Once a second: what is worked on, and what there is to do."""
        return self.request("POST", "/work", request, WorkAnswer)

    def columns(self, job: str, request: ColumnsRequest) -> ColumnsAnswer:
        """The ids of columns of the job's datasource. Raises ``PublishRefused`` (fenced)."""
        return self.request("POST", f"/jobs/{job}/columns", request, ColumnsAnswer)

    def replace(self, job: str, request: ReplaceRequest) -> ReplaceAnswer:
        """Have the segments read replaced by those written. Raises ``PublishRefused`` (fenced, changed)."""
        return self.request("POST", f"/jobs/{job}/replace", request, ReplaceAnswer)

    def failed(self, job: str, request: FailedRequest) -> None:
        """An attempt came to nothing."""
        self.request("POST", f"/jobs/{job}/failed", request, Done)

    def end(self, request: DepartureRequest) -> None:
        """The last word."""
        self.request("POST", "/end", request, Done)
