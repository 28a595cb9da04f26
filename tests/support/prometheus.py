"""What Prometheus makes of an answer of ``/metrics``."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping

from django.test import Client
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as of_open_metrics
from prometheus_client.parser import text_string_to_metric_families as of_text

SITE_TOKEN = "a-token-that-nobody-guesses"
SITE = {"Authorization": f"Bearer {SITE_TOKEN}"}
OPEN_METRICS = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;q=0.2"
Values = dict[tuple[str, tuple[str, ...]], float]


def read_page(body: bytes, content_type: str) -> Values:
    """Each sample's value by its name and its labels' values, in the order of the labels' names."""
    parse = of_open_metrics if content_type.startswith("application/openmetrics-text") else of_text
    return values_of(parse(body.decode()))


def values_of(metrics: Iterable[Metric]) -> Values:
    """No series stands there twice."""
    found: Values = {}
    for sample in (s for metric in metrics for s in metric.samples):
        key = sample.name, tuple(value for _, value in sorted(sample.labels.items()))
        assert key not in found, f"twice: {key}"
        found[key] = sample.value
    return found


def scrape(path: str = "/metrics", *, client: Client | None = None, headers: Mapping[str, str] | None = None) -> Values:
    """Ask once, in the name of Prometheus: with the site's token, unless a client has one."""
    shown = SITE if client is None else {}
    answer = (client or Client()).get(path, headers={**shown, **(headers or {})})
    assert answer.status_code == 200, answer.content
    body = gzip.decompress(answer.content) if answer.headers.get("Content-Encoding") == "gzip" else answer.content
    return read_page(body, answer.headers["Content-Type"])
