"""Resets of a supervisor's stored offsets, and previews of them."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.v1.serializers import resets as serializers
from controlplane.api.v1.serializers.supervisors import SupervisorDetailSerializer
from controlplane.api.v1.supervisors import detail
from controlplane.supervisors import offset_reset, position_reset, selectors


class ResetView(HeadgateView):
    @extend_schema(
        operation_id="preview_reset",
        tags=["supervisors"],
        parameters=[serializers.ResetQuery],
        responses=serializers.ResetPlanSerializer,
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """What a reset to a position would do to each partition; nothing is changed.

        Only for supervisors of the type kafka. Needs the role admin.
        """
        position = query_of(request, serializers.ResetQuery)["position"]
        supervisor = selectors.get_supervisor(self.actor, supervisor_id)
        plan = position_reset.plan_reset(user=self.actor, supervisor=supervisor, position=position)
        return Response(serializers.ResetPlanSerializer(plan).data)

    @extend_schema(
        operation_id="reset_supervisor",
        tags=["supervisors"],
        request=serializers.ResetBody,
        responses=SupervisorDetailSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Set the stored offsets of some partitions, move all partitions to a position, or delete all stored offsets.

        Records may be skipped or stored twice.

        Only for supervisors of the type kafka. Needs the role admin.
        """
        body = body_of(request, serializers.ResetBody)
        supervisor = selectors.get_supervisor(self.actor, supervisor_id)
        if "position" in body:
            position_reset.reset_to(
                user=self.actor, supervisor=supervisor, position=body["position"], offsets=body.get("topics")
            )
        elif "partitions" in body:
            offset_reset.reset_offsets(user=self.actor, supervisor=supervisor, offsets=body["partitions"])
        else:
            offset_reset.reset(user=self.actor, supervisor=supervisor)
        return Response(detail(self.actor, supervisor_id))
