"""The last word of an application."""

from __future__ import annotations

import time

from ingestion.client.base import ControlPlane
from ingestion.client.errors import ClientError, TaskOver
from ingestion.specs.messages.protocol import EndRequest
from ingestion.task.log import OngoingProblem
from ingestion.task.shutdown import Ending

TRIES = 60
PAUSE_S = 1.0


def say_end(client: ControlPlane, request: EndRequest, ending: Ending, silence: OngoingProblem) -> None:
    """Send it until it is heard, for a minute: then the control plane notices by itself."""
    for _ in range(TRIES):
        if ending.is_time_up:
            return
        try:
            client.end(request)
            return
        except TaskOver:
            return
        except ClientError as problem:
            silence.report_failure(str(problem))
            time.sleep(PAUSE_S)
