"""Asks the control plane where to go on with some partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ingestion.client.base import ControlPlane
from ingestion.client.errors import PublishRefused, Unreachable
from ingestion.sources.base import SourceProblem
from ingestion.specs.messages.protocol import ClaimAnswer, ClaimRequest, Reset
from ingestion.task.control import Control
from ingestion.task.epoch import Epoch
from ingestion.task.errors import Fenced

RETRY_S = 0.5


@dataclass(frozen=True)
class Claims:
    """See ``ingestion.sources.stored_offsets.Claim``. Waits for the control plane; raises ``Fenced``."""

    client: ControlPlane
    control: Control
    epoch: Epoch

    @property
    def topic_id(self) -> str:
        return self.epoch.topic_id

    def __call__(
        self,
        partitions: Iterable[int],
        *,
        new_generation: bool = False,
        new_process: bool = False,
        first_run: bool = False,
        starts: Mapping[int, int] | None = None,
        resets: Mapping[int, Reset] | None = None,
    ) -> ClaimAnswer:
        request = ClaimRequest(
            epoch=self.epoch.number,
            topic_id=self.topic_id,
            partitions=list(partitions),
            new_generation=new_generation,
            new_process=new_process,
            first_run=first_run,
            starts=dict(starts or {}),
            resets=dict(resets or {}),
        )
        unanswered = False
        while True:
            try:
                answer = self.client.claim(self.epoch.indexer, request)
                if unanswered:
                    self.control.show(state="reading", message="")
                return answer
            except Unreachable as error:
                unanswered = True
                if self.control.directive != "continue":
                    raise SourceProblem(
                        f"the task was asked to end while the control plane did not answer: {error}"
                    ) from None
                self.control.show(state="paused", message=f"The control plane does not answer: {error}")
                self.control.pause(RETRY_S)
            except PublishRefused as refused:
                raise Fenced(str(refused)) from None
