"""What needs a person now, and how all stands: what the home page shows."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, QuerySerializer, query_of
from controlplane.api.v1.capacity import CapacitySerializer
from controlplane.common.health import Kind
from controlplane.supervisors.overview import Overview, TeamShare, overview


class OverviewQuery(QuerySerializer):
    team = serializers.CharField(required=False, max_length=63, help_text="One of your teams; all if it is left out.")


class NeedSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField([Kind.FAILED.value, Kind.NEEDS_ATTENTION.value], source="health.kind")
    code = serializers.CharField(
        source="health.code", help_text="A health code, `quarantined`, `capacity_full`, or an event's kind."
    )
    subject = serializers.ChoiceField(["supervisor", "datasource", "pool"])
    name = serializers.CharField(help_text="The subject's; empty for the pool.")
    text = serializers.CharField(source="health.text", help_text="The cause, and what to do.")
    cause = serializers.CharField(source="health.cause", help_text="Why it is so.")
    action = serializers.CharField(source="health.action", help_text="What to do next.")
    since = serializers.DateTimeField(source="health.since", allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True, help_text="Of what happens again and again.")
    event = serializers.IntegerField(allow_null=True, help_text="Of an alarm: the newest event, to be acknowledged.")


class DayPointSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField(help_text="Where the stretch of time begins.")
    lag = serializers.IntegerField()
    records_per_s = serializers.FloatField()


RATE = "Records stored per second, in the last minute. `null`: not known, because no reader was looked at."


class KindsSerializer(serializers.Serializer[Any]):
    """What an overview and a team's share of it both have."""

    supervisors = serializers.SerializerMethodField(help_text="Kind of health → how many.")
    behind = serializers.IntegerField(help_text="Offsets that are not settled.")

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_supervisors(self, shown: Overview | TeamShare) -> dict[str, int]:
        return {kind.value: number for kind, number in shown.kinds.items()}


class TeamShareSerializer(KindsSerializer):
    team = serializers.CharField(source="name")
    records_per_s = serializers.FloatField(allow_null=True, help_text=RATE)
    day = DayPointSerializer(many=True, help_text="Of the last 24 hours, the team's sources summed.")


class FreshnessSerializer(serializers.Serializer[Any]):
    datasource = serializers.CharField()
    team = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True, help_text="When something was last published into it.")


class OverviewSerializer(KindsSerializer):
    at = serializers.DateTimeField()
    problems = NeedSerializer(many=True, help_text="What needs a person, the worst first.")
    records_per_s = serializers.FloatField(allow_null=True, help_text=RATE)
    capacity = CapacitySerializer(source="pool")
    day = DayPointSerializer(many=True, help_text="Of the last 24 hours, all sources summed.")
    teams = TeamShareSerializer(many=True, help_text="The same by team, by name.")
    freshness = FreshnessSerializer(many=True, help_text="Datasources, the freshest first.")


class OverviewView(HeadgateView):
    @extend_schema(operation_id="get_overview", tags=["site"], parameters=[OverviewQuery], responses=OverviewSerializer)
    def get(self, request: Request) -> Response:
        """What needs a person now, lag and rate of the day, supervisors by how they stand, datasources by freshness."""
        query = query_of(request, OverviewQuery)
        return Response(OverviewSerializer(overview(self.actor, query.get("team", ""))).data)
