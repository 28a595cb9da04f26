"""The worker's connection to its broker."""

from __future__ import annotations

import logging

from celery.worker.consumer import Consumer

logger = logging.getLogger(__name__)


class LastingConsumer(Consumer):
    """It outlives a broker that goes while a job runs.

    Then kombu's Redis transport raises ``AttributeError`` when a channel is closed, because its connection is gone
    already, and Celery takes that for an error that ends the worker.
    """

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        try:
            super().on_connection_error_after_connected(exc)
        except AttributeError:  # the job's message is delivered again after the visibility timeout
            logger.warning("the broker went while a job ran; connecting again")
