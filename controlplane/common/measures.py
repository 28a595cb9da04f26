"""What this process does, as Prometheus counts it: requests, publishes, background jobs, questions to Kafka.

Values are this process's own. Where several processes share one port they are in files of one folder,
``PROMETHEUS_MULTIPROC_DIR``, and the one that answers adds them up: see ``shared_values``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from controlplane.common.shared_values import FOLDER_VARIABLE

OK, FAILED = "ok", "failed"
disable_created_metrics()  # a series more for each of others, which says when its process began to count
_QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300)

HTTP_REQUESTS = Histogram(
    "headgate_http_request_duration_seconds",
    "Time until the answer to an HTTP request begins.",
    ["view", "method", "status"],
    buckets=_QUICK,
)
PUBLISHES = Histogram(
    "headgate_publish_duration_seconds",
    "Time that the control plane takes for a publish of segments.",
    ["kind", "outcome"],
    buckets=_QUICK,
)
CELERY_TASKS = Histogram(
    "headgate_celery_task_duration_seconds",
    "Time that a background job takes.",
    ["task", "outcome"],
    buckets=_SLOW,
)
CELERY_TASKS_SENT = Counter(
    "headgate_celery_tasks_sent_total", "Background jobs that this process has put into the queue.", ["task"]
)
KAFKA_REQUESTS = Histogram(
    "headgate_kafka_request_duration_seconds",
    "Time that Kafka's brokers take to answer a question of the control plane.",
    ["request", "outcome"],
    buckets=_SLOW,
)
METRICS = (HTTP_REQUESTS, PUBLISHES, CELERY_TASKS, CELERY_TASKS_SENT, KAFKA_REQUESTS)


@contextmanager
def timed(histogram: Histogram, what: str, outcome_of: Callable[[Exception], str] = lambda _: FAILED) -> Iterator[None]:
    """Measure what is done within; ``outcome_of`` names an exception, which is raised again."""
    began, outcome = perf_counter(), OK
    try:
        yield
    except Exception as error:
        outcome = outcome_of(error)
        raise
    finally:
        histogram.labels(what, outcome).observe(perf_counter() - began)


def process_registry() -> Collector:
    """What is known of this process, or of all that share its folder."""
    if not os.environ.get(FOLDER_VARIABLE):
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return registry
