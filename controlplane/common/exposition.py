"""How Prometheus gets metrics over HTTP: who may, in which format, and how the answer is packed."""

from __future__ import annotations

import gzip
import hmac
from dataclasses import dataclass

from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

PATHS = ("/metrics", "/metrics/store", "/metrics/process")
REFUSED = "Metrics need a token: send 'Authorization: Bearer TOKEN'.\n"
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="headgate metrics"', "Cache-Control": "no-store"}
TEXT = "text/plain; charset=utf-8"
_GZIP_LEVEL = 1  # takes a third of the time of the highest, and is a fifth larger


@dataclass(frozen=True)
class Page:
    """An answer that Prometheus reads."""

    body: bytes
    headers: dict[str, str]


def page_of(metrics: Collector, accept: str, accept_encoding: str) -> Page:
    """In the format and packing that the scraper asks for: its headers ``Accept`` and ``Accept-Encoding``."""
    encode, content_type = choose_encoder(accept)
    body, headers = encode(metrics), {"Content-Type": content_type, "Cache-Control": "no-store"}
    if gzip_accepted(accept_encoding):
        body, headers["Content-Encoding"] = gzip.compress(body, _GZIP_LEVEL), "gzip"
    return Page(body, headers)


def shows_token(authorization: str, token: str) -> bool:
    """Whether the header has this token; compared in constant time. Without a token nobody has it."""
    scheme, _, shown = authorization.partition(" ")
    same = hmac.compare_digest(shown.strip().encode("utf-8", "replace"), token.encode())
    return bool(token) and scheme.lower() == "bearer" and same
