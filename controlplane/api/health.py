"""Checks for load balancers and orchestrators. They answer only whether Headgate is up."""

from __future__ import annotations

import logging
from collections.abc import Callable

import psycopg
import redis
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.common.database import ClocksDiffer, ask_directly, refuse_clock

logger = logging.getLogger(__name__)
TIMEOUT_S = 2


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the process answers. Checks nothing else."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 if the metadata store and Redis answer. Else 503, with the one that does not. Also 503 if clocks differ."""
    checks = {"database": _check(lambda: refuse_clock(ask_directly(TIMEOUT_S))), "redis": _check(_ask_redis)}
    ready = all(state == "ok" for state in checks.values())
    body = {"status": "ok" if ready else "unavailable", "checks": checks}
    return JsonResponse(body, status=200 if ready else 503)


def _check(ask: Callable[[], None]) -> str:
    try:
        ask()
    except (psycopg.Error, redis.RedisError, OSError) as error:
        logger.warning("not ready: %s", error)
        return "does not answer"
    except ClocksDiffer as problem:
        logger.warning("not ready: %s", problem)
        return str(problem)
    return "ok"


def _ask_redis() -> None:
    with redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=None
    ) as client:
        client.ping()
