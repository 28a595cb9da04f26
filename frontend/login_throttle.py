"""How often a login may fail: per name from one address, and per address. Counted in the shared cache.

Never per name alone: then anybody who knows a name could keep its owner out.

Without the cache logging in still works: an attacker who can stop the cache gains tries, a team does not lose its site.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator

from django.core.cache import cache
from django.http import HttpRequest
from redis.exceptions import RedisError

from controlplane.common.client_address import client_address, rate_limit_key

log = logging.getLogger(__name__)

WINDOW_S = 300
FAILURES_PER_NAME = 8
FAILURES_PER_ADDRESS = 60


def seconds_to_wait(request: HttpRequest, username: str | None = None) -> int:
    """0 when another try is allowed. ``username``: whose, where it does not stand in the form."""
    try:
        return WINDOW_S if any(int(cache.get(key, 0)) >= limit for key, limit in _counters(request, username)) else 0
    except (RedisError, OSError):
        log.warning("the cache does not answer: failed logins are not counted")
        return 0


def count_failure(request: HttpRequest, username: str | None = None) -> None:
    """Remember one failure; the window begins with the first."""
    try:
        for key, _ in _counters(request, username):
            cache.add(key, 0, WINDOW_S)
            cache.incr(key)
    except (RedisError, OSError, ValueError):  # ValueError: the window ended between the two
        log.warning("a failed login could not be counted")


def clear_failures(request: HttpRequest, username: str | None = None) -> None:
    """A login that works clears its name's count; the address's stays."""
    try:
        cache.delete(next(_counters(request, username))[0])
    except (RedisError, OSError):
        log.warning("failed logins could not be cleared")


def _counters(request: HttpRequest, username: str | None) -> Iterator[tuple[str, int]]:
    address = rate_limit_key(client_address(request))
    name = (request.POST.get("username", "") if username is None else username).strip().lower()
    yield f"login:{_digest(address, name)}", FAILURES_PER_NAME
    yield f"login:{_digest(address)}", FAILURES_PER_ADDRESS


def may_send_mail(request: HttpRequest, email: str) -> bool:
    """Whether a mail may be asked for: few to one address, and few from one. Each question counts."""
    limits = (
        (_digest("mail", email.strip().lower()), 3),
        (_digest("from", rate_limit_key(client_address(request))), 20),
    )
    try:
        for name, most in limits:
            cache.add(f"mail:{name}", 0, WINDOW_S)
            if cache.incr(f"mail:{name}") > most:
                return False
    except (RedisError, OSError, ValueError):
        log.warning("the cache does not answer: no mail is sent")
        return False
    return True


def _digest(*parts: str) -> str:
    """What a user typed may hold anything: no part of it becomes a key as it is."""
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()
