"""The pool of indexers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView
from controlplane.tasks.slots import slots_for


class CapacitySerializer(serializers.Serializer[Any]):
    capacity = serializers.IntegerField(source="size", allow_null=True, help_text="Null: no limit.")
    used = serializers.IntegerField(help_text="Indexers of all running tasks.")
    free = serializers.IntegerField(allow_null=True)
    waiting_tasks = serializers.SerializerMethodField(
        help_text="Tasks that are not launched yet, or wait for a slot of Spark."
    )
    waiting_indexers = serializers.IntegerField(source="demand", help_text="What these tasks ask for.")

    def get_waiting_tasks(self, pool: Any) -> int:
        return len(pool.waiting)


class PlacedSerializer(serializers.Serializer[Any]):
    indexers = serializers.IntegerField()
    task = serializers.CharField(source="task.pk", default=None, allow_null=True)
    supervisor = serializers.CharField(source="task.supervisor_id", default=None, allow_null=True)
    team = serializers.CharField(source="task.datasource.team.name", default=None, allow_null=True)


class HoldingSerializer(PlacedSerializer):
    who = serializers.CharField(help_text="Who has them if no task of your teams does; empty for a task.")


class WaitingSerializer(PlacedSerializer):
    since = serializers.DateTimeField()
    why = serializers.CharField(help_text="The limit of its team, if that keeps it waiting.")


class PlacesSerializer(CapacitySerializer):
    holders = HoldingSerializer(many=True, help_text="Tasks of your teams by name, all others as one.")
    waiting = WaitingSerializer(many=True, help_text="Tasks of your teams by name, all others as one.")


class CapacityView(HeadgateView):
    @extend_schema(operation_id="get_capacity", tags=["tasks"], responses=PlacesSerializer)
    def get(self, request: Request) -> Response:
        """How many indexers the whole installation may run, runs, and is asked for; who has them and who waits."""
        slots = slots_for(self.actor)
        lists = {
            "holders": HoldingSerializer(slots.holders, many=True).data,
            "waiting": WaitingSerializer(slots.waiting, many=True).data,
        }
        return Response({**CapacitySerializer(slots.pool).data, **lists})
