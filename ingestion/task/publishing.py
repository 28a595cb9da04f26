"""Publishes of one epoch: kept within what one may have, and insisted on until it is known what became of them."""

from __future__ import annotations

import time

from ingestion.client.base import ControlPlane
from ingestion.client.errors import Invalid, PublishRefused, Unacceptable, Unreachable
from ingestion.segments.column_ids import ColumnIds
from ingestion.specs import offsets
from ingestion.specs.messages.column_ids import ColumnsAnswer, ColumnsRequest
from ingestion.specs.messages.protocol import AbandonRequest, PublishRequest, SettledRequest
from ingestion.specs.messages.publish_limits import MAX_SEGMENTS, excess
from ingestion.task.breaker import Breaker
from ingestion.task.control import Control
from ingestion.task.epoch import Epoch
from ingestion.task.errors import DeadlineExceeded, Fenced, Refused
from ingestion.task.parse_exceptions import ParseExceptions

LONGEST_S = 6 * 3600.0  # older files that nobody has registered may be cleaned up as orphans


def check_segments(intervals: int) -> None:
    """Raise ``Unacceptable`` before files are written that no one publish may name."""
    if intervals > MAX_SEGMENTS:
        raise Unacceptable(f"It has rows of {intervals:,} segments, and one publish may have {MAX_SEGMENTS:,}.")


class Publisher:
    """What an epoch asks of the control plane on a batch's way."""

    def __init__(
        self,
        client: ControlPlane,
        epoch: Epoch,
        breaker: Breaker,
        control: Control,
        parse_exceptions: ParseExceptions,
    ) -> None:
        self.epoch = epoch
        self._client = client
        self._breaker = breaker
        self._control = control
        self._parse_exceptions = parse_exceptions

    def settled(self, ranges: dict[int, list[offsets.Range]], give_up: float) -> dict[int, list[offsets.Range]]:
        """Which of these offsets have ended already, by partition. Raises ``DeadlineExceeded``."""
        epoch = self.epoch
        request = SettledRequest(epoch=epoch.number, topic_id=epoch.topic_id, offsets=ranges)
        return self._breaker.retry_until_answered(lambda: self._client.settled(epoch.indexer, request), give_up).settled

    def publish(self, request: PublishRequest, give_up: float) -> None:
        """Register it. Raises ``PublishRefused``, ``Unacceptable``, ``Refused``, and ``DeadlineExceeded`` when it has
        not committed and never will."""
        problem = excess(request)
        if problem:
            raise Unacceptable(problem)
        try:
            answer = self._breaker.retry_until_answered(
                lambda: self._client.publish(self.epoch.indexer, request), give_up
            )
            self._parse_exceptions.set_totals(answer.parse_exceptions)
        except Unacceptable:
            raise
        except Invalid as error:
            raise Refused(f"A publish was refused: {error}") from error
        except DeadlineExceeded:
            if not self._committed_after_all(request):
                raise
            self._breaker.mend()
        self._control.count_publish()

    def _committed_after_all(self, request: PublishRequest) -> bool:
        """Learn whether a publish without an answer has committed, and make sure that it never will if not."""
        question = AbandonRequest(epoch=self.epoch.number, publish_id=request.publish_id)
        while self._control.directive != "stop":
            try:
                return self._client.abandon(self.epoch.indexer, question).committed
            except Unreachable:
                self._control.wait_for_store(time.monotonic(), 1.0)
            except PublishRefused as refused:
                raise Fenced(str(refused)) from None
        return False


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
