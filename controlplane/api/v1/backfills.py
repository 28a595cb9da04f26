"""Backfills of a supervisor: what it has skipped, and known gaps, read beside it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of
from controlplane.api.v1.serializers import backfills as serializers
from controlplane.supervisors import backfills, selectors
from controlplane.supervisors.known_gaps import known_gaps


class BackfillsView(HeadgateView):
    @extend_schema(operation_id="list_backfills", tags=["supervisors"], responses=serializers.BackfillListSerializer)
    def get(self, request: Request, supervisor_id: str) -> Response:
        """A supervisor's backfills with their progress, newest first, at most 100; and gaps that none of them reads."""
        supervisor = selectors.get_supervisor(self.actor, supervisor_id)
        listed = {"backfills": backfills.backfill_statuses(supervisor), "gaps": known_gaps(supervisor)}
        return Response(serializers.BackfillListSerializer(listed).data)

    @extend_schema(
        operation_id="begin_backfill",
        tags=["supervisors"],
        request=serializers.BackfillBody,
        responses=serializers.BackfillPlanSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Begin a backfill: of what the supervisor skips with `skip`, or of unsettled offsets. Needs the role admin.

        With `dry_run`, only what it would read. No offset is stored twice.
        """
        body = body_of(request, serializers.BackfillBody)
        supervisor = selectors.get_supervisor(self.actor, supervisor_id)
        asked: dict[str, Any] = {"task_count": body.get("task_count"), "dry_run": body["dry_run"]}
        if body["skip"]:
            plan = backfills.skip_and_fill(user=self.actor, supervisor=supervisor, **asked)
        else:
            plan = backfills.fill(user=self.actor, supervisor=supervisor, wanted=body["wanted"], **asked)
        return Response(serializers.BackfillPlanSerializer(plan).data)
