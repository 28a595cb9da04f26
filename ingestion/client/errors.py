"""What can go wrong between an indexer and the control plane, by the answer's status; see ``ingestion.errors``."""

from __future__ import annotations

from ingestion.errors import IngestionError
from ingestion.specs.messages.protocol import Refusal


class ClientError(IngestionError):
    """Base of what this package raises."""


class Unreachable(ClientError):
    """No answer, or 408, 429, 5xx: the message may or may not have had an effect. Send the same one again."""


class PublishRefused(ClientError):
    """409: the publish changed nothing, and the refusal says why."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.detail)


class TaskOver(ClientError):
    """401, 404, 410: the task has ended, or the token is not (or no longer) its own."""

    permanent = True
    is_failure = False


class Invalid(ClientError):
    """Other 4xx: a fault in the program or the set-up. The same message would be answered the same way now.

    Not ``permanent``: an indexer that starts anew may find the set-up mended.
    """


class Unacceptable(Invalid):
    """400, 413: for what the message says, or how much; nothing was changed. Of a publish, less of it may be taken."""
