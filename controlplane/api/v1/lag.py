"""A supervisor's lag, now and over time."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, query_of
from controlplane.api.v1.serializers import lag as serializers
from controlplane.common.errors import InvalidInput
from controlplane.supervisors.drain import WITHIN, drain_of
from controlplane.supervisors.health_queries import health_facts
from controlplane.supervisors.lag import lag_now, lag_over_time
from controlplane.supervisors.selectors import get_supervisor
from controlplane.supervisors.unread_times import countdown_of


class LagView(HeadgateView):
    @extend_schema(
        operation_id="get_lag",
        tags=["supervisors"],
        parameters=[serializers.LagQuery],
        responses=serializers.LagSerializer,
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """The supervisor's lag, in total and by partition.

        The answer also says when the supervisor has caught up, how many indexers would do it sooner, and when Kafka may
        delete unread records.
        """
        supervisor = get_supervisor(self.actor, supervisor_id)
        by = query_of(request, serializers.LagQuery).get("by")
        within = WITHIN if by is None else (by - timezone.now(),)
        if within[0] <= timedelta():
            raise InvalidInput("The time `by` is over. Give a later one.")
        facts = health_facts(self.actor, [supervisor])[supervisor.pk]
        unread = countdown_of(supervisor)
        fields = {**vars(lag_now(supervisor)), "drain": drain_of(facts, supervisor, within), "unread": unread}
        return Response(serializers.LagSerializer(fields, context={"unread": unread}).data)


class LagSeriesView(HeadgateView):
    @extend_schema(
        operation_id="get_lag_series",
        tags=["supervisors"],
        parameters=[serializers.SeriesQuery],
        responses=serializers.LagSeriesSerializer,
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """Lag and rates over time: of the last hour, or of a window with at most 3000 points.

        Without `resolution`, the finest one that has data since `from`. With `partition`, the lag of that partition.
        """
        query = query_of(request, serializers.SeriesQuery)
        series = lag_over_time(
            get_supervisor(self.actor, supervisor_id),
            start=query.get("from"),
            end=query.get("to"),
            resolution=query.get("resolution", ""),
            partition=query.get("partition"),
        )
        return Response(serializers.LagSeriesSerializer(series).data)
