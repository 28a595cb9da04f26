"""The consumer of a share group: the indexers' and the Spark connector's, which may import it too.

It acknowledges a whole poll before the next one. Acknowledgements travel with the next request for records, which
spares the broker a request for each poll.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException, ShareConsumer

POLL_RECORDS = 4_000  # a poll asks for: all that brokers lend of a partition, unless their operator allows more


class ShareGroupConsumer:
    """Of one thread, as its callbacks are. Methods raise ``KafkaException``, ``close`` excepted.

    ``on_answer`` gets a partition, and offsets of it whose acknowledgement the broker took, or refused with an error.
    ``on_error`` gets each ``KafkaError`` that the client does not raise.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        topics: Sequence[str],
        on_answer: Callable[[int, set[int], KafkaException | None], None],
        on_error: Callable[[Any], None],
    ) -> None:
        # Without log_level librdkafka prints the same at every attempt to connect.
        own = {"share.acknowledgement.mode": "explicit", "log_level": 0, "error_cb": on_error}
        self._config = {"max.poll.records": POLL_RECORDS, **config, **own}
        self._topics = list(topics)
        self._on_answer = on_answer
        self._on_error = on_error
        self._client: Any = None  # a ShareConsumer, between join and close
        self._refused: set[Any] = set()  # partitions, by the callback, since the last commit began
        self.polled_at = 0.0  # when the last poll returned, by time.monotonic

    def join(self) -> None:
        """Begin to read, unless it does already. After ``close`` this is a new member of the group."""
        if self._client is None:
            client = ShareConsumer(self._config)
            client.set_acknowledgement_commit_callback(self._answered)
            client.subscribe(self._topics)
            self._client = client

    def poll(self, timeout_s: float) -> list[Any]:
        """Records, all of which must be acknowledged before the next poll."""
        polled = self._client.poll(timeout_s)
        self.polled_at = time.monotonic()
        records = [m for m in polled if m.error() is None]
        if len(records) < len(polled):
            self._on_error(next(m.error() for m in polled if m.error() is not None))
        return records

    def acknowledge(self, messages: Sequence[Any], kinds: Sequence[int] | None = None) -> None:
        """What became of a poll: KIP-932's type for each record, or None when all are accepted. Sends nothing yet."""
        acknowledge = self._client.acknowledge
        if kinds is None:
            for message in messages:
                acknowledge(message)  # ACCEPT; this loop runs for every record
            return
        for message, kind in zip(messages, kinds, strict=True):
            acknowledge(message, kind)

    def commit(self, timeout_s: float) -> list[tuple[int, KafkaException]]:
        """Have the broker take what was acknowledged, now instead of with the next poll.

        Returns the partitions without an answer in time, each with the client's error: their answers come later.
        """
        if self._client is None:
            return []
        self._refused.clear()
        errors = self._client.commit_sync(timeout_s)
        return [(at.partition, e) for at, e in errors.items() if e is not None and at not in self._refused]

    def close(self) -> None:
        """Send what was acknowledged, and leave the group."""
        client, self._client = self._client, None
        if client is not None:
            try:
                client.close()
            except KafkaException:
                pass  # the broker frees what was held when the session ends

    def _answered(self, offsets: Mapping[Any, set[int]], error: KafkaException | None) -> None:
        for at, some in offsets.items():
            if error is not None:
                self._refused.add(at)
            self._on_answer(at.partition, some, error)
