"""Why a batch or an indexer can't go on.

Fenced                  a newer epoch runs: end
Lapsed                  the lock is about to end without an outcome: give the batch up
StorageRefused          the deep storage refuses for good, or for too long: the task fails
Refused                 publishes are refused for what they say, and no record is at fault: the task fails
TooManyParseExceptions  the spec says that the task fails then
"""

from __future__ import annotations


class Fenced(Exception):
    """A newer epoch of this indexer runs: nothing of this one may be published any more."""


class Lapsed(Exception):
    """The lock is about to end and there is no outcome yet."""


class StorageRefused(Exception):
    """The deep storage refuses, and waiting does not help: the task must end as failed, with this reason."""


class Refused(Exception):
    """The control plane refuses publishes for what they say, and cutting them up does not help: the task must fail."""


class TooManyParseExceptions(Exception):
    """More records could not be read, or only in part, than the spec allows: the task is to fail."""
