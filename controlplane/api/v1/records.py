"""Outcomes of records, and validation of specs."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.v1.serializers import records as serializers
from controlplane.common.errors import FieldError, InvalidInput
from controlplane.connections.named_connections import admit
from controlplane.datasources.selectors import team_of_spec
from controlplane.publishing.selectors.fate import record_fate
from controlplane.records.lookup import RecordQuery, search
from controlplane.records.stored_rows import stored_rows
from controlplane.tasks.checking import read_spec
from controlplane.tasks.selectors import shown_spec
from controlplane.tasks.services import check_room
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec, TaskSpec, parse_supervisor_spec, parse_task_spec


class RecordsView(HeadgateView):
    @extend_schema(
        operation_id="get_record",
        tags=["records"],
        parameters=[serializers.RecordQuery],
        responses=serializers.RecordSerializer,
    )
    def get(self, request: Request) -> Response:
        """Find a record by topic, partition and offset: its outcome and its segments."""
        query = query_of(request, serializers.RecordQuery)
        fates = record_fate(self.actor, **query)
        return Response(serializers.RecordSerializer({**query, "fates": fates}).data)


class SearchView(HeadgateView):
    @extend_schema(
        operation_id="search_records",
        tags=["records"],
        parameters=[serializers.SearchRecordsQuery],
        responses=serializers.SearchedSerializer,
    )
    def get(self, request: Request) -> Response:
        """Find records by offset or key, in Kafka (needs the role operator) and in quarantine.

        The search in Kafka is limited. `looked` has the offsets that were not searched.
        """
        query = query_of(request, serializers.SearchRecordsQuery)
        key = query["key"].encode() if "key" in query else query.get("key_base64")
        target = RecordQuery(
            query["topic"], query.get("partition"), query.get("offset"), key, query.get("from"), query.get("to")
        )
        answer = search(user=self.actor, query=target, group=query.get("group", ""))
        return Response(serializers.SearchedSerializer(answer).data)


class StoredRowsView(HeadgateView):
    @extend_schema(
        operation_id="list_record_rows",
        tags=["records"],
        parameters=[serializers.RecordQuery],
        responses=serializers.StoredRowsSerializer,
    )
    def get(self, request: Request) -> Response:
        """The stored rows of a record, while Kafka still has it. Needs the role operator.

        The record is decoded with the spec that read it. Its rows are found by its time and dimensions.
        """
        query = query_of(request, serializers.RecordQuery)
        target = RecordQuery(query["topic"], query["partition"], query["offset"])
        rows = stored_rows(user=self.actor, query=target, group=query.get("group", ""))
        return Response(serializers.StoredRowsSerializer({"results": rows}).data)


class ValidateView(HeadgateView):
    @extend_schema(
        operation_id="validate_spec",
        tags=["records"],
        request=serializers.ValidateBody,
        responses=serializers.ValidSerializer,
    )
    def post(self, request: Request) -> Response:
        """Check a spec without submitting it. Answers 400 with all its errors."""
        body = body_of(request, serializers.ValidateBody)
        try:
            spec: TaskSpec | SupervisorSpec
            if body["kind"] == "task":
                spec = read_spec(self.actor, body["spec"], parse_task_spec)
            else:
                spec = read_spec(self.actor, body["spec"], parse_supervisor_spec)
            team = team_of_spec(self.actor, spec.datasource, self.team_name)
            admit(body["spec"], team, spec.spec.ioConfig)
        except InvalidInput as error:
            raise _as_body_fault(error) from None
        check_room(spec.spec.ioConfig, team)
        return Response({"valid": True, "canonical": shown_spec(spec.canonical())})


def _as_body_fault(error: InvalidInput) -> InvalidInput:
    """Changes pointers into the spec to pointers into the request's body."""
    return InvalidInput(error.detail, [FieldError(f"/spec{e.pointer}", e.message, e.path) for e in error.errors])
