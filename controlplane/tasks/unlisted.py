"""Applications that Spark's master no longer lists.

A standalone master that is restarted without recovery has forgotten them. Workers that register anew kill their
executors; their drivers wait for ever, and say that they live.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from django.core.cache import cache

from controlplane.tasks import spark_master

PATIENCE_S = 30.0  # a master that takes over, with recovery, lists them again by then
REASON = "Spark's master no longer lists its application: it was restarted, and has forgotten it."


def unlisted(names: Collection[str], of: str) -> set[str]:
    """Which of these applications each answer of the last ``PATIENCE_S`` has lacked; none where there is no cluster.

    ``names``: all of one kind, ``of``, that have been seen to run.
    """
    cluster = spark_master.cluster() if names else None
    if cluster is None:
        return set()
    key, now = f"tasks.unlisted.{of}", time.time()
    known: dict[str, float] = cache.get(key) or {}
    listed = {a.name for a in cluster.applications}
    since = {name: known.get(name, now) for name in names if name not in listed}
    if since or known:
        cache.set(key, since, timeout=10 * PATIENCE_S)
    return {name for name, at in since.items() if now - at >= PATIENCE_S}
