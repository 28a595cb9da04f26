"""Applications that Spark's master no longer lists.

A standalone master that is restarted without recovery has forgotten them. Workers that register anew kill their
executors; their drivers wait for ever, and say that they live.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from django.conf import settings
from django.core.cache import cache

from controlplane.spark import spark_master

PATIENCE_S = 30.0  # a master that takes over, with recovery, lists them again by then
CACHE_S = 86_400
REASON = "Spark's master no longer lists its application. Was the master restarted?"


def unlisted(names: Collection[str], kind: str) -> set[str]:
    """Which of these applications each answer of the last ``PATIENCE_S`` has lacked, and an earlier one has listed.

    ``names``: all of one kind, ``kind``, that run. What was never listed is none of this master's business: it may be
    another cluster's. Empty where there is no cluster.
    """
    if not names or not settings.SPARK_MASTER.startswith("spark://"):
        return set()
    cluster, now = spark_master.cluster(), time.time()
    key = f"tasks.unlisted.{kind}"
    cached: dict[str, float | None] = cache.get(key) or {}  # of each that was listed, since when it is not
    missing_since = {name: at for name, at in cached.items() if name in names}
    if cluster is None:
        missing_since = dict.fromkeys(missing_since)
    else:
        listed = {a.name for a in cluster.applications}
        missing_since = {name: at or now for name, at in missing_since.items() if name not in listed} | {
            name: None for name in names if name in listed
        }
    cache.set(key, missing_since, timeout=CACHE_S)
    return {name for name, at in missing_since.items() if at is not None and now - at >= PATIENCE_S}
