"""The addresses under /status that every Druid process has."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http.request import split_domain_port
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.druid import openapi
from controlplane.api.druid.base import DruidView

DRUID_VERSION = "33.0.0"  # whose answers ours are held against: clients choose what they ask for by it


def _own_version() -> str:
    return str(settings.SPECTACULAR_SETTINGS["VERSION"])


class StatusView(DruidView):
    @extend_schema(
        operation_id="druid_status", tags=["Druid-shaped"], responses={(200, "application/json"): openapi.NODE}
    )
    def get(self, request: Request) -> Response:
        """The version of Druid that Headgate imitates, and Headgate's own version as a module. Memory is always 0."""
        ours = {"name": "headgate", "artifact": "headgate", "version": _own_version()}
        memory = dict.fromkeys(openapi.MEMORY, 0)
        return Response({"version": DRUID_VERSION, "modules": [ours], "memory": memory})


class HealthView(DruidView):
    """For load balancers. Needs no login, as in Druid."""

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="druid_status_health",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.FLAG},
        auth=[],
    )
    def get(self, request: Request) -> Response:
        """`true` while the process answers."""
        return Response(True)


class PropertiesView(DruidView):
    @extend_schema(
        operation_id="druid_status_properties",
        tags=["Druid-shaped"],
        responses={(200, "application/json"): openapi.PROPERTIES},
    )
    def get(self, request: Request) -> Response:
        """The properties that Druid's clients need: service name, host and port. No settings of the installation."""
        host, port = split_domain_port(request.get_host())
        return Response(
            {
                "druid.service": "druid/overlord",
                "druid.host": host,
                "druid.plaintextPort": port or ("443" if request.is_secure() else "80"),
                "headgate.version": _own_version(),
            }
        )
