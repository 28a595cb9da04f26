"""What a batch task's driver says to the control plane, and hears."""

from __future__ import annotations

from ingestion.client.http import HttpControlPlane
from ingestion.specs.messages.batch_protocol import BatchAssignment, BatchPublishAnswer, BatchPublishRequest
from ingestion.specs.messages.replays import KeptPublishAnswer, KeptPublishRequest

# A publish registers thousands of segments, and replaces as many.
TIMEOUT_S = 120.0


class BatchControlPlane(HttpControlPlane):
    """Thread-safe; keeps connections open. ``token`` is sent in a header and never logged."""

    def __init__(self, url: str, task_id: str, token: str) -> None:
        super().__init__(url, task_id, token, TIMEOUT_S)

    def start_batch(self) -> BatchAssignment:
        """What to do; whoever asked before may publish no more."""
        return self.request("POST", "/batch/start", None, BatchAssignment)

    def publish_batch(self, request: BatchPublishRequest) -> BatchPublishAnswer:
        """Have all of it registered, and the task end. Raises ``PublishRefused`` (fenced, changed); ``TaskOver`` also
        when an earlier attempt to say the same was taken.
        """
        return self.request("POST", "/batch/publish", request, BatchPublishAnswer)

    def publish_kept(self, request: KeptPublishRequest) -> KeptPublishAnswer:
        """Of a replay: have registered what some of its records have become. Raises ``PublishRefused`` (fenced,
        changed).
        """
        return self.request("POST", "/kept/publish", request, KeptPublishAnswer)
