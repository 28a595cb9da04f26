"""Addresses that fail in ways that no input can bring about, beside the site's own."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import DataError, IntegrityError, OperationalError
from django.urls import include, path
from redis.exceptions import ConnectionError as RedisConnectionError
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView
from controlplane.api.druid.base import DruidView

ERRORS: dict[str, Exception] = {
    "fault": RuntimeError("canary: select secret from table"),
    "store": OperationalError("canary: connection to 10.0.0.1 refused"),
    "redis": RedisConnectionError("canary"),
    "twice": IntegrityError("canary"),
    "range": DataError("canary"),
    "denied": PermissionDenied("canary"),
}


class Failing(HeadgateView):
    authentication_classes = []
    permission_classes = []

    def get(self, request: Request, kind: str) -> Response:
        raise ERRORS[kind]


class FailingAsDruid(DruidView):
    authentication_classes = []
    permission_classes = []

    def get(self, request: Request, kind: str) -> Response:
        raise ERRORS[kind]


urlpatterns = [
    path("api/failing/<str:kind>/", Failing.as_view()),
    path("druid/failing/<str:kind>", FailingAsDruid.as_view()),
    path("", include("controlplane.config.urls")),
]
