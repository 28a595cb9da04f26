"""Addresses under /status, without a slash at the end, as Druid has them."""

from django.urls import path

from controlplane.api.druid import node

app_name = "druid-node"
urlpatterns = [
    path("status", node.StatusView.as_view(), name="status"),
    path("status/health", node.HealthView.as_view(), name="health"),
    path("status/properties", node.PropertiesView.as_view(), name="properties"),
]
