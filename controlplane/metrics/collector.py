"""Prometheus' collector of what the metadata store holds, and its cache: one read serves all scrapes of ten seconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from threading import Lock
from time import monotonic

import psycopg
from django.db import DatabaseError, InterfaceError
from prometheus_client.core import Metric

from controlplane.common.database import ask_directly
from controlplane.common.errors import Unavailable
from controlplane.metrics.families import FAMILIES, Reach, Samples
from controlplane.metrics.snapshot import take_snapshot

logger = logging.getLogger(__name__)
KEPT_S = 10.0
CONNECT_S = 2
FAILURE_KEPT_S = 2.0  # so that those that have waited for a read that failed do not each wait for one of their own
_Read = Callable[[], Samples]


class SnapshotCache:
    """The last snapshot. One thread reads at a time, the others wait for its result."""

    def __init__(self, read: _Read = take_snapshot) -> None:
        self._read = read
        self._lock = Lock()
        self._samples: Samples | None = None
        self._good_until = 0.0

    def samples(self) -> Samples:
        """No older than ten seconds. Raises ``Unavailable`` if the metadata store fails."""
        with self._lock:
            if monotonic() >= self._good_until:
                self._samples = self._try_read()
                self._good_until = monotonic() + (FAILURE_KEPT_S if self._samples is None else KEPT_S)
            if self._samples is None:
                raise Unavailable("The metadata store does not answer, so nothing is known of supervisors and data.")
            return self._samples

    def clear(self) -> None:
        with self._lock:
            self._good_until = 0.0

    def _try_read(self) -> Samples | None:
        try:
            ask_directly(CONNECT_S)
            return self._read()
        except (DatabaseError, InterfaceError, psycopg.Error, OSError):
            logger.exception("the metrics of the metadata store can't be read")
            return None


cache = SnapshotCache()


class StoreCollector:
    """What somebody may read of a snapshot."""

    def __init__(self, samples: Samples, reach: Reach) -> None:
        self._samples, self._reach = samples, reach

    def collect(self) -> Iterator[Metric]:
        """Each metric that has values."""
        for name, family in FAMILIES.items():
            covered = [s for s in self._samples.get(name, ()) if self._reach.covers(family, s[0])]
            if covered:
                yield family.metric(covered)
