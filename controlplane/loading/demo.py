"""The demo's topic, with which a new site can begin: whether the stack's own Kafka has it."""

from __future__ import annotations

from enum import StrEnum

from django.conf import settings
from django.core.cache import cache

from controlplane.connections import kafka

TOPIC = "flights"  # as the demo calls it
CACHE_S = 5  # a page that stays open asks again and again


class DemoTopic(StrEnum):
    """What is known of it."""

    THERE = "there"
    MISSING = "missing"
    UNKNOWN = "unknown"  # Kafka does not answer
    NO_KAFKA = "no_kafka"  # the stack has none of its own


def demo_topic() -> DemoTopic:
    """Asks Kafka, at most every few seconds."""
    if not settings.DEFAULT_BOOTSTRAP:
        return DemoTopic.NO_KAFKA
    key = f"demo-topic:{settings.DEFAULT_BOOTSTRAP}"
    cached = cache.get(key)
    if cached is None:
        cached = _query_topic(settings.DEFAULT_BOOTSTRAP).value
        cache.set(key, cached, CACHE_S)
    return DemoTopic(cached)


def _query_topic(servers: str) -> DemoTopic:
    try:
        partitions = kafka.partition_count({"bootstrap.servers": servers}, TOPIC)
    except kafka.KafkaProblem:
        return DemoTopic.UNKNOWN
    return DemoTopic.THERE if partitions else DemoTopic.MISSING
