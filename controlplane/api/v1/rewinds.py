"""Rewinds of a supervisor: stored records that are read again, and replace the segments that they were in."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of
from controlplane.api.v1.serializers import rewinds as serializers
from controlplane.datasources.masking import hidden_columns
from controlplane.supervisors import rewinds, selectors


class RewindsView(HeadgateView):
    @extend_schema(operation_id="list_rewinds", tags=["supervisors"], responses=serializers.RewindListSerializer)
    def get(self, request: Request, supervisor_id: str) -> Response:
        """A supervisor's rewinds with their parts, newest first, at most 100."""
        supervisor = selectors.get_supervisor(self.actor, supervisor_id)
        listed = {"rewinds": rewinds.rewinds_of(supervisor)[: rewinds.LISTED]}
        hidden = hidden_columns(self.actor, supervisor.datasource)
        return Response(serializers.RewindListSerializer(listed, context={"hidden": hidden}).data)

    @extend_schema(
        operation_id="begin_rewind",
        tags=["supervisors"],
        request=serializers.RewindBody,
        responses=serializers.RewindPlanSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Read stored records again, and replace the segments that they are in. Needs the role admin.

        With `preview`, only which segments and records that would be, and what can't be recomputed.
        """
        body = body_of(request, serializers.RewindBody)
        supervisor = selectors.get_supervisor(self.actor, supervisor_id)
        begin = rewinds.preview_rewind if body["preview"] else rewinds.start_rewind
        plan = begin(user=self.actor, supervisor=supervisor, asked=body["asked"])
        return Response(serializers.RewindPlanSerializer(plan).data)


class UndoRewindView(HeadgateView):
    @extend_schema(
        operation_id="undo_rewind",
        tags=["supervisors"],
        request=serializers.RewindNumberBody,
        responses=serializers.RewindSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Put the old segments of a rewind back into use in place of its own. Needs the role admin."""
        number = body_of(request, serializers.RewindNumberBody)["rewind"]
        rewind = rewinds.get_rewind(self.actor, selectors.get_supervisor(self.actor, supervisor_id), number)
        rewinds.undo_rewind(user=self.actor, rewind=rewind)
        return Response(serializers.RewindSerializer(rewind).data)


class CancelRewindView(HeadgateView):
    @extend_schema(
        operation_id="cancel_rewind",
        tags=["supervisors"],
        request=serializers.RewindNumberBody,
        responses=serializers.RewindSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Leave the parts of a rewind that wait. Parts that are done stay so. Needs the role admin."""
        number = body_of(request, serializers.RewindNumberBody)["rewind"]
        rewind = rewinds.get_rewind(self.actor, selectors.get_supervisor(self.actor, supervisor_id), number)
        rewinds.cancel_rewind(user=self.actor, rewind=rewind)
        return Response(serializers.RewindSerializer(rewind).data)
