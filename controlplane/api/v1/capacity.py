"""The pool of indexers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView
from controlplane.tasks.capacity import shown


class CapacitySerializer(serializers.Serializer[Any]):
    capacity = serializers.IntegerField(source="size", allow_null=True, help_text="Null: no limit.")
    used = serializers.IntegerField(help_text="Indexers of all running tasks.")
    free = serializers.IntegerField(allow_null=True)
    waiting_tasks = serializers.SerializerMethodField(
        help_text="Tasks that are not launched yet, or wait for a slot of Spark."
    )
    waiting_indexers = serializers.IntegerField(source="asked", help_text="What these tasks ask for.")

    def get_waiting_tasks(self, pool: Any) -> int:
        return len(pool.waiting)


class CapacityView(HeadgateView):
    @extend_schema(operation_id="get_capacity", tags=["tasks"], responses=CapacitySerializer)
    def get(self, request: Request) -> Response:
        """How many indexers the whole installation may run, runs, and is asked for."""
        return Response(CapacitySerializer(shown()).data)
