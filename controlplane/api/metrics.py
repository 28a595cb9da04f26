"""``GET /metrics``: metrics for Prometheus. See ``docs/reference/prometheus.md``."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from rest_framework.exceptions import AuthenticationFailed

from controlplane.api.authentication import TokenAuthentication
from controlplane.common.errors import Unavailable
from controlplane.common.exposition import CHALLENGE, REFUSED, TEXT, page_of, shows_token
from controlplane.common.measures import process_registry
from controlplane.datasources.models import Datasource
from controlplane.metrics.collector import StoreCollector, cache
from controlplane.metrics.families import Reach
from controlplane.teams.permissions import teams_of

STORE, PROCESS = "store", "process"
SITE = Reach(whole=True)
_ONLY_SITE = "These metrics are of the whole site. They need the token that HEADGATE_METRICS_TOKEN sets.\n"
_NO_STORE = {"Cache-Control": "no-store"}


class Together:
    """The metrics of several collectors."""

    def __init__(self, *collectors: Collector) -> None:
        self._collectors = collectors

    def collect(self) -> Iterator[Metric]:
        for collector in self._collectors:
            yield from collector.collect()


@require_safe
def metrics(request: HttpRequest, part: str = "") -> HttpResponse:
    """The metrics of the metadata store, of this process, or of both. A team's token gets its team's metrics."""
    if not settings.METRICS:
        return _refusal(404, "Metrics are off: HEADGATE_METRICS is 0.\n")
    try:
        collected = _collected(request, part)
    except AuthenticationFailed:
        return _refusal(401, _ONLY_SITE if part == PROCESS else REFUSED)
    except Unavailable as failed:
        return _refusal(failed.status, f"{failed.detail} /metrics/process has the metrics of this process.\n")
    page = page_of(collected, request.headers.get("Accept", ""), request.headers.get("Accept-Encoding", ""))
    return HttpResponse(page.body, headers=page.headers)


def _refusal(status: int, text: str) -> HttpResponse:
    return HttpResponse(text, status=status, content_type=TEXT, headers=CHALLENGE if status == 401 else _NO_STORE)


def _collected(request: HttpRequest, part: str) -> Collector:
    """Raises ``AuthenticationFailed``, ``Unavailable``."""
    is_site = shows_token(request.headers.get("Authorization", ""), settings.METRICS_TOKEN)
    if part == PROCESS:
        if not is_site:
            raise AuthenticationFailed
        return process_registry()
    if is_site:
        store = StoreCollector(cache.samples(), SITE)
        return store if part == STORE else Together(store, process_registry())
    if "Authorization" not in request.headers:
        raise AuthenticationFailed
    samples = cache.samples()  # first: where the store does not answer, a token can't be looked up either
    return StoreCollector(samples, _reach_of_token(request))


def _reach_of_token(request: HttpRequest) -> Reach:
    """The data that the user of a REST token may see. Raises ``AuthenticationFailed``."""
    user_and_token = TokenAuthentication().authenticate(request)
    if user_and_token is None:
        raise AuthenticationFailed
    user = user_and_token[0]
    datasources = Datasource.objects.visible_to(user).values_list("name", flat=True)
    return Reach(teams=frozenset(t.name for t in teams_of(user)), datasources=frozenset(datasources))
