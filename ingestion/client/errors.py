"""What can go wrong between an indexer and the control plane, split by what the indexer can do.

ClientError
├── Unreachable     no answer, or 5xx: nothing is known of the outcome; send the same message again
├── PublishRefused  409: nothing was changed; the refusal says why
├── TaskOver        401, 404, 410: the task has ended or is not this one's; stop
└── Invalid         other 4xx: a fault in the program or the set-up; sending it again won't help
    └── Unacceptable    400, 413: for what the message says; of a publish, less of it may be taken
"""

from __future__ import annotations

from ingestion.specs.protocol import Refusal


class ClientError(Exception):
    """Base of what this package raises."""


class Unreachable(ClientError):
    """No answer, or a server error: the message may or may not have had an effect."""


class PublishRefused(ClientError):
    """The publish changed nothing."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.detail)


class TaskOver(ClientError):
    """The task has ended, or the token is not (or no longer) its own."""


class Invalid(ClientError):
    """The control plane does not accept the message."""


class Unacceptable(Invalid):
    """The control plane does not accept what the message says, or how much; nothing was changed."""
