"""The REST addresses: Headgate's, Druid's, the indexers', health and the OpenAPI document."""

from django.urls import include, path, re_path

from controlplane.api.docs import SchemaView, swagger
from controlplane.api.fallback import fallback
from controlplane.api.health import healthz, readyz
from controlplane.api.metrics import PROCESS, STORE, metrics
from controlplane.api.v1.sampling import ShortSamplerView

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("metrics/store", metrics, {"part": STORE}, name="metrics-store"),
    path("metrics/process", metrics, {"part": PROCESS}, name="metrics-process"),
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", swagger, name="docs"),
    path("api/sampler/", ShortSamplerView.as_view(), name="short-sampler"),
    path("api/v1/", include("controlplane.api.v1.urls")),
    path("druid/indexer/v1/", include("controlplane.api.druid.urls")),
    path("druid/v2/", include("controlplane.api.druid.sql_urls")),
    path("druid/coordinator/v1/", include("controlplane.api.druid.coordinator_urls")),
    path("iceberg/v1/", include("controlplane.api.iceberg.urls")),
    path("internal/", include("controlplane.api.internal.urls")),
    path("", include("controlplane.api.druid.node_urls")),
    re_path(r"^(?:api|druid|status)(?:/(?P<rest>[\s\S]*))?\Z", fallback, name="fallback"),
]
