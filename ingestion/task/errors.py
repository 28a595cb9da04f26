"""Why a batch or an indexer can't go on; see ``ingestion.errors``."""

from __future__ import annotations

from collections.abc import Sequence

from ingestion.errors import IngestionError
from ingestion.specs.counters import Counters
from ingestion.specs.messages.protocol import UnreadRecord

_NOTHING = Counters()


class Fenced(IngestionError):
    """A newer epoch of this indexer runs: nothing of this one may be published any more."""

    is_failure = False


class StoreWentBack(IngestionError):
    """The metadata store has lost publishes of this epoch that it had answered: what is stored now is read on from."""


class DeadlineExceeded(IngestionError):
    """The lock is about to end and there is no outcome yet."""


class PermanentRefusal(IngestionError):
    """What all records need is refused, and waiting does not help: the task must end as failed, with this reason."""

    permanent = True


class RegistryRefused(PermanentRefusal):
    """The schema registry does not take the spec's login, and has not for a while."""


class StorageRefused(PermanentRefusal):
    """The deep storage refuses for good, or has for too long."""

    directive_for_others = "stop"  # what others hold can't be stored either


class Refused(IngestionError):
    """The control plane refuses publishes for what they say, and cutting them up does not help: the task must fail."""

    permanent = True


class TooManyParseExceptions(IngestionError):
    """More records could not be read, or only in part, than the spec allows: the task is to fail."""

    permanent = True

    def __init__(self, message: str = "", given_up: Counters = _NOTHING, unread: Sequence[UnreadRecord] = ()) -> None:
        """``given_up``: what was read and is not published for this; ``unread``: the first of the bad ones."""
        super().__init__(message)
        self.given_up = given_up
        self.unread = tuple(unread)
