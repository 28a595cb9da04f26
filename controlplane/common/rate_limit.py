"""What is to happen once in a while only, whichever process it comes up in."""

from __future__ import annotations

from hashlib import sha256

from django.core.cache import cache
from redis.exceptions import RedisError


def is_first(what: str, seconds: int) -> bool:
    """Whether nobody has asked this for so long. Without the cache that is not known: False."""
    try:
        return bool(cache.add(f"once:{sha256(what.encode()).hexdigest()}", True, seconds))
    except RedisError:
        return False
