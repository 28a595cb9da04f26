"""Whether heartbeats can be heard: a task must not be called lost because the control plane itself was away."""

from __future__ import annotations

from datetime import datetime, timedelta

import httpx2
from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

KEY = "tasks.hearing"
LONGEST_GAP = timedelta(seconds=15)  # rounds further apart than this are not one stretch of time
JUST_NOW = timedelta(seconds=1.5)  # several rounds of a host ask within a second: one answer serves them
ASK_TIMEOUT_S = 5.0


def heartbeats_accepted_since() -> datetime | None:
    """Since when the web process has answered at every look; None while it does not."""
    now, key = timezone.now(), key_here()
    since, last = cache.get(key) or (now, now)
    if timedelta() < now - last < JUST_NOW:
        return since
    if not _web_answers():
        cache.delete(key)
        return None
    if now - last > LONGEST_GAP:
        since = now
    cache.set(key, (since, now), timeout=3600)
    return since


def key_here() -> str:
    """Each host has its own: one that does not reach the web process says nothing for the others."""
    return f"{KEY}.{settings.HOST_NAME}"


def _web_answers() -> bool:
    url = f"{settings.INTERNAL_URL}/readyz"
    try:
        # With SSL_CERT_FILE, as applications have it. To load authorities takes longer than all else.
        trusted = httpx2.create_ssl_context() if url.startswith("https:") else False
        answer = httpx2.get(url, timeout=ASK_TIMEOUT_S, verify=trusted, trust_env=False)
    except httpx2.HTTPError:
        return False
    return answer.status_code == 200
