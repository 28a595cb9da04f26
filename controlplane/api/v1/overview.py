"""The data of the home page: what needs attention, and the state of everything else."""

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
    team = serializers.CharField(
        required=False, max_length=63, help_text="One of your teams. If left out, all your teams."
    )


class NeedSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField([Kind.FAILED.value, Kind.NEEDS_ATTENTION.value], source="health.kind")
    code = serializers.CharField(
        source="health.code", help_text="A health code, `quarantined`, `capacity_full`, or the kind of an event."
    )
    subject = serializers.ChoiceField(["supervisor", "datasource", "pool"])
    name = serializers.CharField(
        help_text="The id of the supervisor or the name of the datasource. Empty for the pool."
    )
    text = serializers.CharField(source="health.text", help_text="The cause, and what to do.")
    cause = serializers.CharField(source="health.cause", help_text="Why it is so.")
    action = serializers.CharField(source="health.action", help_text="What to do next.")
    since = serializers.DateTimeField(source="health.since", allow_null=True)
    last_at = serializers.DateTimeField(
        allow_null=True, help_text="When a repeating problem last occurred. Null for other problems."
    )
    event = serializers.IntegerField(
        allow_null=True,
        help_text="The id of an alarm's newest event, which you can acknowledge. Null for other problems.",
    )


class DayPointSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField(help_text="Start of the point's time range.")
    lag = serializers.IntegerField()
    records_per_s = serializers.FloatField()


RATE = "Records stored per second in the last minute. Null if no reader was observed."


class KindsSerializer(serializers.Serializer[Any]):
    """The fields that the overview and its part for one team have in common."""

    supervisors = serializers.SerializerMethodField(help_text="Number of supervisors by kind of health.")
    behind = serializers.IntegerField(help_text="The total lag: offsets that are not settled.")

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_supervisors(self, shown: Overview | TeamShare) -> dict[str, int]:
        return {kind.value: number for kind, number in shown.kinds.items()}


class TeamShareSerializer(KindsSerializer):
    """The overview of one team."""

    team = serializers.CharField(source="name")
    records_per_s = serializers.FloatField(allow_null=True, help_text=RATE)
    day = DayPointSerializer(many=True, help_text="Sums of the team's sources over the last 24 hours.")


class FreshnessSerializer(serializers.Serializer[Any]):
    datasource = serializers.CharField()
    team = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True, help_text="When the datasource last got a publish. Null if never.")


class OverviewSerializer(KindsSerializer):
    """The overview of all teams that you may see."""

    at = serializers.DateTimeField()
    problems = NeedSerializer(many=True, help_text="What needs attention, most severe first.")
    records_per_s = serializers.FloatField(allow_null=True, help_text=RATE)
    capacity = CapacitySerializer(source="pool")
    day = DayPointSerializer(many=True, help_text="Sums of all sources over the last 24 hours.")
    teams = TeamShareSerializer(many=True, help_text="The same data for each team, by name.")
    freshness = FreshnessSerializer(many=True, help_text="Datasources, most recently published first.")


class OverviewView(HeadgateView):
    @extend_schema(operation_id="get_overview", tags=["site"], parameters=[OverviewQuery], responses=OverviewSerializer)
    def get(self, request: Request) -> Response:
        """What needs attention, lag and rates of the last day, supervisors by health, datasources by last publish."""
        query = query_of(request, OverviewQuery)
        return Response(OverviewSerializer(overview(self.actor, query.get("team", ""))).data)
