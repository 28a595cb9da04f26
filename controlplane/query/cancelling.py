"""Cancelling a query, which another web process may run: a key in Valkey. Without Valkey nobody can cancel by id."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from controlplane.common.errors import Conflict, NotFound
from controlplane.teams.models import User

logger = logging.getLogger(__name__)
_TIMEOUT_S = 0.5
_RUNNING, _CANCELLED = b"running", b"cancelled"


def register(user: User, query_id: str, seconds: float) -> None:
    """From now on the user can cancel it by its id. Raises ``Conflict`` if the user runs one with this id."""
    try:
        is_new = client().set(_key(user, query_id), _RUNNING, ex=int(seconds) + 1, nx=True)
    except redis.RedisError as error:
        logger.warning("a query can't be cancelled by its id: %s", error)
        return
    if not is_new:
        raise Conflict(f"You are running a query with the id {query_id!r}. Choose another id.")


def forget(user: User, query_id: str) -> None:
    """It has ended."""
    try:
        client().delete(_key(user, query_id))
    except redis.RedisError as error:
        logger.warning("the id of a query stays until its time is over: %s", error)


def is_cancelled(user: User, query_id: str) -> bool:
    try:
        return bool(client().get(_key(user, query_id)) == _CANCELLED)
    except redis.RedisError:
        return False


def cancel(user: User, query_id: str) -> None:
    """End one of the user's queries within a second. Raises ``NotFound``, and Redis' errors."""
    if not client().set(_key(user, query_id), _CANCELLED, xx=True, keepttl=True):
        raise NotFound(f"You are running no query with the id {query_id!r}.")


def _key(user: User, query_id: str) -> str:
    return f"headgate:sql:{user.pk}:{query_id}"


@cache
def client() -> Any:
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
    )
