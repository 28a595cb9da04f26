"""How many queries run at a time in all web processes together: a sorted set in Valkey for each user and team.

A member is a query, and its score is when its lease ends: a process that dies keeps no place for longer. Without Valkey
each web process counts its own queries alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Self
from uuid import uuid4

import redis

from controlplane.query.cancelling import client

log = logging.getLogger(__name__)
# All sets or none. A query that finds no room leaves those that it was in: who waits keeps nobody else waiting.
_TAKE = """
local time = redis.call('TIME')
local now, lease, free = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[2]), 1
for i, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  redis.call('ZREM', key, ARGV[1])
  if redis.call('ZCARD', key) >= tonumber(ARGV[i + 2]) then free = 0 end
end
if free == 0 then return 0 end
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, now + lease, ARGV[1])
  if redis.call('PTTL', key) < lease then redis.call('PEXPIRE', key, lease) end
end
return 1
"""


class SharedPlace:
    """The place of one query in several groups, ``lease_s`` long from each time that it is taken."""

    def __init__(self, lease_s: float) -> None:
        self._member, self._lease_ms = str(uuid4()), int(lease_s * 1000)
        self._most: dict[str, int] = {}

    def take(self, most: Mapping[str, int]) -> bool:
        """Whether there was room in all groups, these and the earlier ones. ``most`` has the places of each group."""
        self._most |= {f"headgate:{{sql}}:{group}": count for group, count in most.items()}
        try:
            return bool(
                client().eval(_TAKE, len(self._most), *self._most, self._member, self._lease_ms, *self._most.values())
            )
        except redis.RedisError as error:
            log.warning("a query is counted in this web process alone: %s", error)
            return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            pipeline = client().pipeline()
            for key in self._most:
                pipeline.zrem(key, self._member)
            pipeline.execute()
        except redis.RedisError as fault:
            log.warning("the place of a query is held until its lease ends: %s", fault)
