"""The connection to the broker."""

from __future__ import annotations

from typing import Any

from kombu.transport import redis as transport
from redis.exceptions import ConnectionError as ConnectionIsGone


class Channel(transport.Channel):
    """It outlives a broker that goes while a job runs.

    Without this, a channel that was closed raises ``AttributeError`` when it acknowledges a job or gives one back, and
    Celery takes that for an error that ends the worker. The message of such a job is delivered again after the
    visibility timeout.
    """

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection is None or self.connection.client is None:
            raise ConnectionIsGone("the connection of this channel is closed")
        return super()._connparams(asynchronous)


class Transport(transport.Transport):
    Channel = Channel
