"""Addresses under /druid/coordinator/v1/, without a slash at the end, as Druid has them."""

from django.urls import path

from controlplane.api.druid import compaction

app_name = "druid-coordinator"
urlpatterns = [
    path("config/compaction", compaction.ConfigsView.as_view(), name="compaction-configs"),
    path("config/compaction/<str:name>", compaction.ConfigView.as_view(), name="compaction-config"),
    path("config/compaction/<str:name>/history", compaction.HistoryView.as_view(), name="compaction-history"),
    path("compaction/status", compaction.StatusView.as_view(), name="compaction-status"),
    path("compaction/progress", compaction.ProgressView.as_view(), name="compaction-progress"),
]
