"""What an application asks of the control plane."""

from __future__ import annotations

from typing import Protocol

from ingestion.specs.messages.column_ids import ColumnsAnswer, ColumnsRequest
from ingestion.specs.messages.protocol import (
    AbandonAnswer,
    AbandonRequest,
    Assignment,
    ClaimAnswer,
    ClaimRequest,
    EndRequest,
    HeartbeatAnswer,
    HeartbeatRequest,
    PublishAnswer,
    PublishRequest,
    SettledAnswer,
    SettledRequest,
    StartAnswer,
    StartRequest,
)


class ControlPlane(Protocol):
    """One task's view. Every call blocks until answered or its deadline; all raise ``ClientError`` subclasses."""

    def assignment(self) -> Assignment:
        """What to do."""

    def start(self, number: int, request: StartRequest) -> StartAnswer:
        """Take a new epoch for an indexer; the older ones are fenced from here on. Raises ``PublishRefused``
        (predecessor) while another task of the same supervisor has begun and not ended."""

    def claim(self, number: int, request: ClaimRequest) -> ClaimAnswer:
        """Where to go on with some partitions. Raises ``PublishRefused`` (fenced)."""

    def settled(self, number: int, request: SettledRequest) -> SettledAnswer:
        """Which of some offsets have ended already."""

    def columns(self, request: ColumnsRequest) -> ColumnsAnswer:
        """The ids of columns of the task's datasource; new ones get theirs now, and keep them."""

    def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
        """Register a batch; idempotent by its publish id. Raises ``PublishRefused``."""

    def abandon(self, number: int, request: AbandonRequest) -> AbandonAnswer:
        """Make sure that a publish never commits, or learn that it has."""

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatAnswer:
        """State up, directive down."""

    def end(self, request: EndRequest) -> None:
        """The application ends."""
