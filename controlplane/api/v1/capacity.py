"""The capacity: slots for indexers, their tasks and the waiting tasks."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView
from controlplane.tasks.slots import slots_for


class CapacitySerializer(serializers.Serializer[Any]):
    capacity = serializers.IntegerField(
        source="size", allow_null=True, help_text="Number of slots. Null if there is no limit."
    )
    used = serializers.IntegerField(help_text="Number of indexers of all running tasks.")
    free = serializers.IntegerField(allow_null=True)
    waiting_tasks = serializers.SerializerMethodField(
        help_text="Number of tasks that were not launched yet or that wait for a slot of Spark."
    )
    waiting_indexers = serializers.IntegerField(source="demand", help_text="Number of indexers that these tasks need.")

    def get_waiting_tasks(self, pool: Any) -> int:
        return len(pool.waiting)


class PlacedSerializer(serializers.Serializer[Any]):
    indexers = serializers.IntegerField()
    task = serializers.CharField(source="task.pk", default=None, allow_null=True)
    supervisor = serializers.CharField(source="task.supervisor_id", default=None, allow_null=True)
    team = serializers.CharField(source="task.datasource.team.name", default=None, allow_null=True)


class HoldingSerializer(PlacedSerializer):
    who = serializers.CharField(help_text="Who holds the slots if it is no task of your teams. Else empty.")


class WaitingSerializer(PlacedSerializer):
    since = serializers.DateTimeField()
    why = serializers.CharField(help_text="The team's limit that makes it wait. Empty if no such limit does.")


class PlacesSerializer(CapacitySerializer):
    holders = HoldingSerializer(many=True, help_text="One item for each task of your teams, and one for all others.")
    waiting = WaitingSerializer(many=True, help_text="One item for each task of your teams, and one for all others.")


class CapacityView(HeadgateView):
    @extend_schema(operation_id="get_capacity", tags=["tasks"], responses=PlacesSerializer)
    def get(self, request: Request) -> Response:
        """The slots of the whole installation, the tasks that hold them, and the tasks that wait for some."""
        slots = slots_for(self.actor)
        lists = {
            "holders": HoldingSerializer(slots.holders, many=True).data,
            "waiting": WaitingSerializer(slots.waiting, many=True).data,
        }
        return Response({**CapacitySerializer(slots.pool).data, **lists})
