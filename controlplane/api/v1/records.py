"""What became of a record; and validation of specs."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.v1.serializers import records as shapes
from controlplane.common.errors import FieldError, InvalidInput
from controlplane.connections.admission import check_connections
from controlplane.segments.selectors import record_fate
from controlplane.tasks.checking import read_spec
from controlplane.tasks.selectors import shown_spec
from controlplane.tasks.services import check_room
from ingestion.specs import SupervisorSpec, TaskSpec, parse_supervisor_spec, parse_task_spec


class RecordsView(HeadgateView):
    @extend_schema(
        operation_id="get_record", tags=["records"], parameters=[shapes.RecordQuery], responses=shapes.RecordSerializer
    )
    def get(self, request: Request) -> Response:
        """Where is my record? By topic, partition and offset: how it ended, and in which segments it is."""
        query = query_of(request, shapes.RecordQuery)
        fates = record_fate(self.actor, **query)
        return Response(shapes.RecordSerializer({**query, "fates": fates}).data)


class ValidateView(HeadgateView):
    @extend_schema(
        operation_id="validate_spec", tags=["records"], request=shapes.ValidateBody, responses=shapes.ValidSerializer
    )
    def post(self, request: Request) -> Response:
        """Check a spec without submitting it. Answers 400 with every fault."""
        body = body_of(request, shapes.ValidateBody)
        try:
            spec: TaskSpec | SupervisorSpec
            if body["kind"] == "task":
                spec = read_spec(self.actor, body["spec"], parse_task_spec)
            else:
                spec = read_spec(self.actor, body["spec"], parse_supervisor_spec)
            check_connections(body["spec"], spec.spec.ioConfig.consumerProperties, spec.spec.ioConfig.inputFormat)
        except InvalidInput as error:
            raise _in_body(error) from None
        check_room(spec.spec.ioConfig)
        return Response({"valid": True, "canonical": shown_spec(spec.canonical())})


def _in_body(error: InvalidInput) -> InvalidInput:
    """The pointers, from the spec's own to those into this endpoint's body."""
    return InvalidInput(error.detail, [FieldError(f"/spec{e.pointer}", e.message, e.path) for e in error.errors])
